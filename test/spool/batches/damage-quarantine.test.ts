import { hash } from 'node:crypto'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { seqKey, table } from '../../../src/spool/chunk-log/key-layout.ts'
import type { LaneId } from '../../../src/domain/ids.ts'
import { type OpenStore } from '../../../src/storage/storage.ts'
import { eventually } from '../../support/eventually.ts'
import { createHeldStore } from '../../support/held-store.ts'
import { compacted } from '../../support/damaged-spool.ts'
import { payloadNamed } from '../../support/spool-world.ts'
import { spoolWords, startSpool } from '../../support/spool-steps.ts'
import { stepCases } from '../../support/step-cases.ts'
import { ended, flipLastByte, openSpoolWorld, deliverAll } from '../../support/open-spool.ts'

/** `newest`: behind what can be read and is sealed. They get their keys back, where one bit has flipped. */
type Flips = { flipped: number[]; newest?: number[]; damaged?: number[]; sealed?: number }

/** To a high number, to a low one of another lane, to one within reach of those that follow; and two bits. */
const flips = [
  { byte: 9, bit: 0x10, hasTotals: true },
  { byte: 4, bit: 0x40, hasTotals: true },
  { byte: 12, bit: 0x08, hasTotals: true },
  { byte: 9, bit: 0x10, hasTotals: false },
  { byte: 9, bit: 0x30, hasTotals: true },
  { byte: 9, bit: 0x30, hasTotals: false },
]

stepCases(import.meta.filename, startSpool, {
  ...spoolWords,
  /** Of six chunks of a payload each; the totals of a lane are there from its first settle on. */
  eachFlip: async (_: unknown, { flipped, newest = [], damaged = [], sealed = 0 }: Flips) => {
    for (const { byte, bit, hasTotals } of flips) {
      const one = await startSpool({ changes: { recentBytesMax: 0 } })
      const first = hasTotals ? 1 : 0
      if (hasTotals) await spoolWords.publish(one, ['0'])
      if (hasTotals) await spoolWords.deliverPending(one, ['0'])
      const names = ['a', 'b', 'c', 'd', 'e', 'f']
      await spoolWords.publish(one, names)
      if (sealed > 0) await spoolWords.seal(one, { payloadsMax: sealed })
      await spoolWords.atRest(one, {
        damage: damaged.map((seq) => `chunk ${seq + first}`),
        flipKeys: flipped.map((seq) => [seq + first, byte, bit]),
      })
      const isOneBit = (bit & (bit - 1)) === 0
      const lost = [...flipped, ...damaged].filter((seq) => !isOneBit || !newest.includes(seq))
      await spoolWords.deliverPending(
        one,
        names.filter((_name, seq) => !lost.includes(seq)),
      )
      spoolWords.totals(one, { damaged: lost.length, openBytes: 0 })
      await spoolWords.publish(one, ['g'])
      await spoolWords.deliverPending(one, ['g'])
      spoolWords.nothingLeft(one)
      await spoolWords.reopen(one)
      spoolWords.nothingLeft(one)
      await spoolWords.noChunks(one)
    }
  },
})

const lane = 1 as LaneId

/** Moves everything into tables and makes 64 bytes in the middle of each of them useless. */
async function damageTables(path: string): Promise<void> {
  await compacted(path)
  const store = join(path, 'store')
  for (const name of await readdir(store)) {
    if (!name.endsWith('.ldb')) continue
    const bytes = await readFile(join(store, name))
    const middle = Math.floor(bytes.length / 2)
    await writeFile(join(store, name), bytes.fill(0xff, middle, middle + 64))
  }
}

const oneEach = { payloadsMax: 1, bodyBytesMax: 1e9 }

/** A world whose first chunk is damaged on the disk from `damageNow` on. */
async function withLateDamage(openStore: OpenStore) {
  let isBad = false
  const key = seqKey(table.chunks, lane, 0)
  const world = await openSpoolWorld({
    changes: { recentBytesMax: 0 },
    openStore: async (path, options) => {
      const store = await openStore(path, options)
      return {
        ...store,
        async *pages(range, how) {
          for await (const page of store.pages(range, how))
            yield page.map(([at, value]) => [at, isBad && at.equals(key) ? flipLastByte(value) : value])
        },
      }
    },
  })
  return { world, damageNow: () => void (isBad = true) }
}

describe('a damaged spool', () => {
  test('is reported before the write that counts it, so that no end of the process hides it', async () => {
    const held = createHeldStore()
    const { world, damageNow } = await withLateDamage(held.openStore)
    world.spool.append(payloadNamed('one'))
    expect(await world.publish('two')).toBeNull()
    damageNow()
    held.hold()
    const sealing = world.spool.seal(lane, oneEach)
    await eventually(() => held.waiting() === 1)
    expect(world.eventsOf('chunk_damaged')).toMatchObject([{ firstSeq: 0, payloads: 2 }])
    expect(world.spool.totals().damaged).toBe(0)
    held.release()
    await sealing
    expect(world.spool.totals().damaged).toBe(2)
  })

  test('a damaged block of a table costs only its own payloads, and the rest is delivered in order', async () => {
    const changes = { recentBytesMax: 0 }
    const before = await openSpoolWorld({ changes })
    const names = Array.from({ length: 400 }, (_, n) => `${n} ${hash('sha512', `${n}`, 'hex').repeat(3)}`)
    for (const [n, name] of names.entries()) {
      before.spool.append(payloadNamed(name))
      if (n % 10 === 9) await ended(before.spool)
    }
    expect(before.spool.totals().payloads).toBe(names.length)
    await before.spool.close()
    await damageTables(before.path)
    const world = await openSpoolWorld({ changes, path: before.path })
    const found = await deliverAll(world.spool)
    const [first = 0] = names.flatMap((name, n) => (found.includes(name) ? [] : [n]))
    const lost = names.length - found.length
    expect(found).toEqual(names.toSpliced(first, lost))
    // A block has 16 KiB.
    expect(lost).toBeGreaterThan(0)
    expect(lost).toBeLessThan(50)
    expect(world.spool.totals()).toMatchObject({ damaged: lost, delivered: 400 - lost, openBytes: 0 })
  })
})
