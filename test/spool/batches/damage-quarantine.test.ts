import { hash } from 'node:crypto'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { seqKey, table, tableRange } from '../../../src/spool/chunk-log/key-layout.ts'
import type { LaneId } from '../../../src/domain/ids.ts'
import { openLevelStore } from '../../../src/storage/storage.ts'
import { payloadNamed } from '../../support/spool-world.ts'
import {
  ended,
  flipLastByte,
  namesIn,
  openSpoolWorld,
  sealAll,
  type SpoolWorld,
  deliverAll,
} from '../../support/open-spool.ts'

const lane = 1 as LaneId

/** Changes records behind the back of the spool, as a bad disk does. */
async function tamper(
  world: SpoolWorld,
  key: Buffer,
  change: (value: Buffer) => Buffer | null,
): Promise<void> {
  await world.spool.close()
  const store = await openLevelStore(join(world.path, 'store'))
  const value = await store.get(key)
  expect(value).toBeDefined()
  const changed = change(value ?? Buffer.alloc(0))
  await store.write([changed === null ? { type: 'del', key } : { type: 'put', key, value: changed }], {
    sync: true,
  })
  await store.close()
}

async function fiveMessages(): Promise<SpoolWorld> {
  const world = await openSpoolWorld()
  for (const name of ['one', 'two', 'three', 'four', 'five']) expect(await world.publish(name)).toBeNull()
  return world
}

/** Moves everything into tables and makes 64 bytes in the middle of each of them useless. */
async function damageTables(store: string): Promise<void> {
  const level = await openLevelStore(store)
  await level.compact({ gte: Buffer.from([0]), lt: Buffer.from([255]) })
  await level.close()
  for (const name of await readdir(store)) {
    if (!name.endsWith('.ldb')) continue
    const bytes = await readFile(join(store, name))
    const middle = Math.floor(bytes.length / 2)
    await writeFile(join(store, name), bytes.fill(0xff, middle, middle + 64))
  }
}

describe('a damaged spool', () => {
  test('a chunk with a wrong checksum is set aside and counted, and the others are delivered', async () => {
    const before = await fiveMessages()
    await tamper(before, seqKey(table.chunks, lane, 2), flipLastByte)
    const world = await before.reopen()
    expect(await deliverAll(world.spool)).toEqual(['one', 'two', 'four', 'five'])
    expect(world.eventsOf('chunk_damaged')).toMatchObject([{ lane: 1, firstSeq: 2, payloads: 1 }])
    expect(world.spool.totals()).toMatchObject({ damaged: 1, openBytes: 0 })
    const [view] = world.spool.lanes()
    expect(view).toMatchObject({ appended: 5, settled: 5, open: 0 })
    await world.spool.close()
    const store = await openLevelStore(join(world.path, 'store'))
    const aside: Buffer[] = []
    for await (const page of store.pages(tableRange(table.damaged)))
      aside.push(...page.map(([, value]) => value))
    await store.close()
    expect(aside.map(String)).toEqual([expect.stringContaining('three')])
  })

  test('a chunk that becomes damaged before it is cut is set aside too', async () => {
    let bad = false
    const key = seqKey(table.chunks, lane, 0)
    const world = await openSpoolWorld({
      changes: { recentBytesMax: 0 },
      openStore: async (path) => {
        const store = await openLevelStore(path)
        return {
          ...store,
          async *pages(range, options) {
            for await (const page of store.pages(range, options))
              yield page.map(([at, value]) => [at, bad && at.equals(key) ? flipLastByte(value) : value])
          },
        }
      },
    })
    world.spool.append(payloadNamed('one'))
    expect(await world.publish('two')).toBeNull()
    expect(await world.publish('three')).toBeNull()
    bad = true
    const batch = await world.spool.seal(lane, { payloadsMax: 1, bodyBytesMax: 64 * 1024 ** 2 })
    expect(batch && (await namesIn(world.spool, batch))).toEqual(['three'])
    expect(world.eventsOf('chunk_damaged')).toMatchObject([{ firstSeq: 0, payloads: 2 }])
  })

  test('damage inside a sealed batch gives the rest of it a new batchId, since its content changed', async () => {
    const before = await fiveMessages()
    const [sealed] = await sealAll(before.spool)
    await tamper(before, seqKey(table.chunks, lane, 1), flipLastByte)
    const world = await before.reopen()
    const [recovered] = world.spool.batches()
    expect(recovered).toMatchObject({ batchId: sealed?.batchId, payloads: 5, recovered: true })
    const loaded = await world.spool.load(recovered!)
    expect(loaded.kind).toBe('replaced')
    const left = world.spool.batches()
    expect(left.map(({ payloads }) => payloads)).toEqual([1, 3])
    expect(left.map(({ batchId }) => batchId)).not.toContain(sealed?.batchId)
    expect(await deliverAll(world.spool)).toEqual(['one', 'three', 'four', 'five'])
    expect(world.spool.totals()).toMatchObject({ damaged: 1, delivered: 4, openBytes: 0 })
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
    await damageTables(join(before.path, 'store'))
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
