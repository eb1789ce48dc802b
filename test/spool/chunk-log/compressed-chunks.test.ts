import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { seqKey, table } from '../../../src/spool/chunk-log/key-layout.ts'
import { openSalvage, type Batch, type Spool } from '../../../src/spool/spool.ts'
import type { LaneId } from '../../../src/domain/ids.ts'
import { openExistingStore } from '../../../src/storage/storage.ts'
import { bodyOf } from '../../support/batch-body.ts'
import {
  collect,
  deliverAll,
  ended,
  namesIn,
  openSpoolWorld,
  reopenTampered,
  sealAll,
} from '../../support/open-spool.ts'
import { payloadNamed } from '../../support/spool-world.ts'

const names = Array.from({ length: 30 }, (_, n) => `truck-${n}`)
const changes = { group: { chunkPayloadsMax: 100, chunkBytesMax: 64 * 1024 }, groupBytesMax: 64 * 1024 }
const key = seqKey(table.chunks, 1 as LaneId, 0)

/** A spool with one chunk of thirty payloads. */
async function openFilled() {
  const world = await openSpoolWorld({ changes })
  for (const name of names) {
    world.spool.append(payloadNamed(name, { padding: 200 }))
    if (name !== names.at(-1)) world.spool.endMessage(null)
  }
  expect(await ended(world.spool)).toBeNull()
  return world
}

async function bodyIn(spool: Spool, batch: Batch): Promise<string> {
  const loaded = await spool.load(batch)
  if (loaded.kind !== 'content') throw new Error('the batch is damaged')
  return bodyOf(loaded.content).toString()
}

describe('a chunk that is compressed on the disk', () => {
  test('gives a batch the same bytes from memory and from the disk', async () => {
    const world = await openFilled()
    const [batch] = await sealAll(world.spool)
    const before = await bodyIn(world.spool, batch!)
    const { spool, path } = await world.reopen()
    expect(await bodyIn(spool, spool.batches()[0]!)).toBe(before)
    await spool.close()
    const store = await openExistingStore(join(path, 'store'))
    const record = await store.get(key)
    await store.close()
    expect(record?.[0]).toBe(5)
    expect(record!.length).toBeLessThan(before.length / 3)
  })

  test('is cut where batches end', async () => {
    const { spool } = await (await openFilled()).reopen()
    const sealed: string[][] = []
    for (const lane of spool.lanes()) {
      for (;;) {
        const batch = await spool.seal(lane.id, { payloadsMax: 7, bodyBytesMax: 64 * 1024 })
        if (batch === null) break
        sealed.push(await namesIn(spool, batch))
      }
    }
    expect(sealed.map(({ length }) => length)).toEqual([7, 7, 7, 7, 2])
    expect(sealed.flat()).toEqual(names)
  })

  test('is set aside with all its payloads counted where it is damaged', async () => {
    const world = await openFilled()
    const { spool, eventsOf } = await reopenTampered(world, key, (value) => value.fill(0, 60, 70))
    expect(await deliverAll(spool)).toEqual([])
    expect(eventsOf('chunk_damaged')).toMatchObject([{ payloads: names.length }])
    expect(spool.totals().damaged).toBe(names.length)
  })

  test('is read by verify and salvage', async () => {
    const world = await openFilled()
    await world.spool.close()
    const salvage = await openSalvage(world.path, new AbortController().signal)
    const found = await collect(salvage.entries(new AbortController().signal))
    await salvage.close()
    expect(salvage.check.ok).toBe(true)
    const payloads = found.flatMap((one) => (one.kind === 'payload' ? [one.json] : []))
    expect(payloads).toHaveLength(names.length)
    for (const [n, json] of payloads.entries()) expect(json).toContain(`"${names[n]}"`)
  })
})
