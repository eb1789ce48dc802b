// Late entries of the mapping state: one record for all that change with one group.

import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { stateKey, table, tableRange, textOf } from '../../../src/spool/chunk-log/key-layout.ts'
import type { SpoolOptions } from '../../../src/spool/spool.ts'
import type { LateState } from '../../../src/spool/types.ts'
import { openLevelStore } from '../../../src/storage/storage.ts'
import { killedCopy } from '../../support/killed-copy.ts'
import { ended, flipLastByte, openSpoolWorld, statesIn, type SpoolWorld } from '../../support/open-spool.ts'
import { writeIn } from '../../support/resting-spool.ts'
import { createRandom } from '../../support/random.ts'
import { exchangeOf } from '../../support/spool-world.ts'

/** A device, whose value changes with `now`. */
function device(key: string): LateState & { now: string } {
  return {
    key,
    now: '',
    isWaiting: false,
    get value() {
      return Buffer.from(this.now)
    },
  }
}

type Device = ReturnType<typeof device>

/** One group that changes these devices. */
async function send({ spool }: SpoolWorld, changes: readonly (readonly [Device, string])[]): Promise<void> {
  for (const [one, value] of changes) {
    one.now = value
    spool.putLateState(one)
  }
  expect(await ended(spool)).toBeNull()
}

async function killed(world: SpoolWorld, changes: Partial<SpoolOptions> = {}): Promise<SpoolWorld> {
  return openSpoolWorld({ path: await killedCopy(world.path), changes })
}

/** Of a spool that nobody has open. */
async function recordIn(path: string, key: Buffer): Promise<Buffer> {
  const store = await openLevelStore(join(path, 'store'))
  const value = await store.get(key)
  await store.close()
  if (value === undefined) throw new Error('there is no such record')
  return value
}

async function put(path: string, key: Buffer, value: Buffer): Promise<void> {
  await writeIn(path, [{ type: 'put', key, value }])
}

/** Names of the records in the database. */
async function keysIn(path: string): Promise<string[]> {
  const store = await openLevelStore(join(path, 'store'))
  const keys: string[] = []
  for await (const page of store.pages(tableRange(table.state)))
    for (const [key] of page) keys.push(textOf(key))
  await store.close()
  return keys.toSorted()
}

describe('entries that change with many messages', () => {
  test('take no more than their bound, whatever their size', async () => {
    const bytesMax = 10_000
    const world = await openSpoolWorld({ changes: { lateRecords: { recordsMax: 1000, bytesMax } } })
    const vans = Array.from({ length: 10 }, (_, index) => device(`van-${index}`))
    const sizes: number[] = []
    for (let n = 0; n < 200; n += 1) {
      await send(world, [[vans[n % 10]!, `${n}`.padEnd(900, '.')]])
      sizes.push(world.spool.totals().stateBytes)
    }
    // Ten entries of their own at the most, and heads.
    expect(Math.max(...sizes)).toBeLessThan(bytesMax + 10 * 1000 + 1000)
    const found = await statesIn((await killed(world)).spool)
    for (const [index, { key }] of vans.entries())
      expect(found[key]).toMatch(new RegExp(`^${190 + index}\\.`))
  })

  test.each([false, true])(
    'of before the start are not in force where a record comes back (a stop: %s)',
    async (stops) => {
      const lateRecords = { recordsMax: 10, bytesMax: 100_000 }
      const before = await openSpoolWorld({ changes: { lateRecords } })
      const bus = device('bus')
      for (let n = 0; n < 40; n += 1) await send(before, [[bus, `old ${n}`]])
      const key = stateKey('memory "" 9')
      const old = await recordIn(await killedCopy(before.path), key)
      const world = stops ? await before.reopen() : await killed(before, { lateRecords })
      await send(world, [[device('bus'), 'new']])
      await send(world, [[device('van'), 'new']])
      if (stops) await world.spool.close()
      const path = await killedCopy(world.path)
      await put(path, key, old)
      const after = await openSpoolWorld({ path, changes: { lateRecords } })
      expect(await statesIn(after.spool)).toEqual({ bus: 'new', van: 'new' })
    },
  )

  test.each([0, 2])(
    'of older records replace no newer ones where one is damaged (%d behind it)',
    async (more) => {
      const lateRecords = { recordsMax: 100, bytesMax: 100_000 }
      const world = await openSpoolWorld({ changes: { lateRecords } })
      const [bus, van] = [device('bus'), device('van')]
      await send(world, [[van, '1']])
      world.spool.putState('van', Buffer.from('2'))
      await ended(world.spool)
      for (let n = 0; n < more; n += 1) await send(world, [[bus, `${n}`]])
      const path = await killedCopy(world.path)
      const key = stateKey('memory "" 1')
      await put(path, key, flipLastByte(await recordIn(path, key)))
      const after = await openSpoolWorld({ path, changes: { lateRecords } })
      expect(after.eventsOf('record_damaged')).toMatchObject([{ table: 'state', name: 'memory "" 1' }])
      expect(await statesIn(after.spool)).toEqual({ van: '2', ...(more > 0 && { bus: '1' }) })
    },
  )

  test('that an exchange deletes are in no record on the disk any more', async () => {
    const world = await openSpoolWorld()
    const [bus, van] = [device('bus'), device('van')]
    await send(world, [
      [bus, 'secret'],
      [van, 'one'],
    ])
    await world.spool.exchange(exchangeOf({ stateChanges: [{ key: 'bus', value: null }] }))
    expect(await keysIn(await killedCopy(world.path))).toEqual(['van'])
    await send(world, [[van, 'two']])
    expect(await statesIn((await killed(world)).spool)).toEqual({ van: 'two' })
  })

  test.each([1, 2, 3])('are those of the last change over random histories (seed %d)', async (seed) => {
    const random = createRandom(seed)
    const lateRecords = { recordsMax: 1 + random.below(6), bytesMax: 200 + random.below(2000) }
    let world = await openSpoolWorld({ changes: { lateRecords } })
    let devices = new Map<string, Device>()
    const expected: Record<string, string> = {}
    for (let step = 0; step < 120; step += 1) {
      for (let n = random.below(5); n >= 0; n -= 1) {
        const key = `van-${random.below(12)}`
        const value = `${step}`.padEnd(random.below(120), '.')
        const one = devices.get(key) ?? device(key)
        devices.set(key, one)
        one.now = value
        if (random.chance(0.15)) {
          delete expected[key]
          world.spool.putState(key, null)
          continue
        }
        expected[key] = value
        if (random.chance(0.15)) world.spool.putState(key, Buffer.from(value))
        else world.spool.putLateState(one)
      }
      await ended(world.spool)
      if (random.chance(0.05)) {
        world = random.chance(0.5) ? await killed(world) : await world.reopen()
        devices = new Map()
      }
      expect(await statesIn(world.spool), `step ${step}`).toEqual(expected)
    }
    expect(await statesIn(world.spool)).toEqual(expected)
    await world.clock.advance(1000)
    expect(world.eventsOf('records_unbalanced')).toEqual([])
  })
})
