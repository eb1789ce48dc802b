import { hash } from 'node:crypto'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { seqKey, table } from '../../../src/spool/chunk-log/key-layout.ts'
import type { LaneId } from '../../../src/domain/ids.ts'
import { openLevelStore } from '../../../src/storage/storage.ts'
import { compacted } from '../../support/damaged-spool.ts'
import { payloadNamed } from '../../support/spool-world.ts'
import {
  ended,
  flipLastByte,
  namesIn,
  openSpoolWorld,
  deliverAll,
  reopenTampered,
} from '../../support/open-spool.ts'

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

describe('a damaged spool', () => {
  test('a lane whose only chunk is damaged takes no bytes of the limit afterwards', async () => {
    const before = await openSpoolWorld()
    await before.publish('one')
    const world = await reopenTampered(before, seqKey(table.chunks, lane, 0), flipLastByte)
    expect(await deliverAll(world.spool)).toEqual([])
    expect(world.spool.totals()).toMatchObject({ damaged: 1, payloads: 0, openBytes: 0 })
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
