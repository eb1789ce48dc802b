import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { readChunk } from '../../../src/spool/chunk-log/chunk-codec.ts'
import { laneOf, seqOf, table, tableRange } from '../../../src/spool/chunk-log/key-layout.ts'
import { decodeWindowKeys } from '../../../src/spool/chunk-log/record-codec.ts'
import { openExistingStore, type StoreEntry } from '../../../src/storage/storage.ts'
import { createHeldStore } from '../../support/held-store.ts'
import { ended, openSpoolWorld, type SpoolWorld } from '../../support/open-spool.ts'
import { deadLetterNamed, keptNamed, payloadNamed } from '../../support/spool-world.ts'

/** Closes the spool and reads one of its tables. */
async function recordsOf(
  { spool, path }: SpoolWorld,
  kind: Parameters<typeof tableRange>[0],
): Promise<StoreEntry[]> {
  await spool.close()
  const store = await openExistingStore(join(path, 'store'))
  const records: StoreEntry[] = []
  for await (const page of store.pages(tableRange(kind))) records.push(...page)
  await store.close()
  return records
}

async function chunksOf(world: SpoolWorld): Promise<string[]> {
  const records = await recordsOf(world, table.chunks)
  return records.map(([key, value]) => `lane ${laneOf(key)}: ${readChunk(value)?.count} from ${seqOf(key)}`)
}

describe('the messages of one commit', () => {
  test('make one chunk for each provider, in one write', async () => {
    const world = await openSpoolWorld()
    for (const [name, owner] of [
      ['a', 'one'],
      ['b', 'two'],
      ['c', 'one'],
    ] as const)
      world.spool.append(payloadNamed(name, { provider: owner }))
    await ended(world.spool)
    expect(world.spool.totals()).toMatchObject({ groups: 1, payloads: 3 })
    expect(await chunksOf(world)).toEqual(['lane 1: 2 from 0', 'lane 2: 1 from 0'])
  })

  test('start a new chunk where a full batch ends, also across commits', async () => {
    const world = await openSpoolWorld({ changes: { group: { chunkPayloadsMax: 4, chunkBytesMax: 1e6 } } })
    for (const names of ['abc', 'defghij', 'k']) {
      for (const name of names) world.spool.append(payloadNamed(name))
      await ended(world.spool)
    }
    expect(await chunksOf(world)).toEqual([
      'lane 1: 3 from 0',
      'lane 1: 1 from 3',
      'lane 1: 4 from 4',
      'lane 1: 2 from 8',
      'lane 1: 1 from 10',
    ])
  })

  test('start a new chunk at its bound in bytes', async () => {
    const world = await openSpoolWorld({ changes: { group: { chunkPayloadsMax: 100, chunkBytesMax: 500 } } })
    for (const name of ['a', 'b', 'c', 'd']) world.spool.append(payloadNamed(name, { padding: 200 }))
    await ended(world.spool)
    expect(await chunksOf(world)).toEqual(['lane 1: 2 from 0', 'lane 1: 2 from 2'])
  })

  test('are durable together: payloads, dead letters, kept messages and state', async () => {
    const held = createHeldStore()
    const before = await openSpoolWorld({ openStore: held.openStore })
    const { spool } = before
    const { deadLetter } = deadLetterNamed('dead')
    const kept = keptNamed('kept')
    spool.append(payloadNamed('a'))
    spool.addDeadLetter(deadLetter)
    spool.keepMessage(kept.message)
    spool.putState('key', Buffer.from('value'))
    await ended(spool)
    expect(spool.totals()).toMatchObject({
      groups: 1,
      payloads: 1,
      deadLetters: 1,
      quarantined: 1,
      stateEntries: 1,
    })
    const again = await before.reopen()
    expect(again.spool.totals()).toMatchObject({ deadLetters: 1, quarantined: 1, stateEntries: 1 })
    expect(again.spool.lanes()).toMatchObject([{ pending: 1 }])
  })

  test('count towards the totals only when they are durable, but their bytes at once', async () => {
    const held = createHeldStore()
    const { spool } = await openSpoolWorld({ openStore: held.openStore })
    held.hold()
    const payload = payloadNamed('a')
    spool.append(payload)
    const acked = ended(spool)
    expect(spool.totals()).toMatchObject({ payloads: 0, openBytes: payload.json.length })
    expect(spool.lanes()).toMatchObject([{ pending: 0, appended: 0 }])
    held.release()
    await acked
    expect(spool.totals()).toMatchObject({ payloads: 1, openBytes: payload.json.length })
    expect(spool.lanes()).toMatchObject([{ pending: 1, appended: 1 }])
  })
})

describe('the window keys of one commit', () => {
  test('are one record, with each key once', async () => {
    const world = await openSpoolWorld()
    const payload = payloadNamed('a')
    expect(world.spool.append(payload)).toBe('stored')
    expect(world.spool.append(payload)).toBe('duplicate')
    // Without a device time its bytes are no name: ingest decides by the packet identifier of the message.
    expect(world.spool.append({ ...payload, duplicateRule: 'resend' })).toBe('stored')
    expect(world.spool.append({ ...payload, duplicateRule: 'resend' })).toBe('stored')
    world.spool.append(payloadNamed('b'))
    await ended(world.spool)
    expect(world.spool.totals()).toMatchObject({ payloads: 4, duplicates: 1, windowIds: 2 })
    const records = await recordsOf(world, table.windowKeys)
    expect(records.map(([, value]) => decodeWindowKeys(value)?.keys.length)).toEqual([16])
  })

  test('expire with later commits, at most 64 records a write', async () => {
    const world = await openSpoolWorld({ changes: { window: { windowMs: 1000, keysMax: 1000 } } })
    for (let n = 0; n < 70; n += 1) await world.publish(`${n}`)
    expect(world.spool.totals().windowIds).toBe(70)
    await world.clock.advance(2000)
    await world.publish('later')
    expect(world.spool.totals().windowIds).toBe(7)
    await world.publish('last')
    expect(world.spool.totals().windowIds).toBe(2)
    expect(await recordsOf(world, table.windowKeys)).toHaveLength(2)
  })
})
