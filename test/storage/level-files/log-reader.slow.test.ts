// A log of LevelDB under damage: what a reader of its own finds in it, whatever was hit.

import { open, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { logItems } from '../../../src/storage/level-files/log-reader.ts'
import { encodeLog } from '../../../src/storage/level-files/log-writer.ts'
import {
  encodeWriteBatch,
  readLogBatches,
  type LogBatch,
} from '../../../src/storage/level-files/write-batch.ts'
import { newFolder } from '../../support/folders.ts'
import { writeKilledStore } from '../../support/killed-store.ts'

const contents = { seed: 7, writes: 60, operationsMax: 5, valueBytesMax: 9000, keys: 90 }

async function killedLog(given = contents): Promise<{ path: string; log: string; bytes: Buffer }> {
  const path = await newFolder()
  await writeKilledStore(path, given)
  const logs = (await readdir(path)).filter((name) => name.endsWith('.log'))
  const log = join(path, logs[logs.length - 1] ?? '')
  return { path, log, bytes: await readFile(log) }
}

async function batchesOf(file: string): Promise<LogBatch[]> {
  const handle = await open(file)
  const found: LogBatch[] = []
  for await (const item of readLogBatches(handle)) found.push(item)
  await handle.close()
  return found
}

/** Entries with their places, of bytes in memory. */
function entriesOf(bytes: Buffer): { offset: number; end: number; content: Buffer }[] {
  return [...logItems(bytes)].flatMap((item) =>
    item.kind === 'entry'
      ? [{ offset: item.offset, end: item.offset + item.bytes, content: item.content }]
      : [],
  )
}

/** Short, because comparing large buffers is slow. */
const placesOf = (entries: ReturnType<typeof entriesOf>) =>
  entries.map(({ offset, end, content }) => `${offset} to ${end}: ${crc32(content)}`)

describe('a log with damage', () => {
  test('loses the write of a flipped bit and no other, wherever the bit is', async () => {
    const { bytes } = await killedLog()
    const sound = entriesOf(bytes)
    fc.assert(
      fc.property(fc.nat(bytes.length * 8 - 1), (bit) => {
        const at = bit >> 3
        const damaged = Buffer.from(bytes)
        damaged[at] = (damaged[at] ?? 0) ^ (1 << (bit & 7))
        const hit = sound.findIndex(({ offset, end }) => offset <= at && at < end)
        const expected = sound.filter((_entry, index) => index !== hit)
        expect(placesOf(entriesOf(damaged))).toEqual(placesOf(expected))
        const others = [...logItems(damaged)].filter(({ kind }) => kind !== 'entry')
        const isLast = hit === sound.length - 1
        expect(others.map(({ kind }) => kind)).toEqual(hit === -1 ? [] : [isLast ? 'torn' : 'damage'])
      }),
      { numRuns: 200 },
    )
  })

  test('loses what is behind a cut and calls the rest torn, not damaged', async () => {
    const { bytes } = await killedLog()
    const sound = entriesOf(bytes)
    fc.assert(
      fc.property(fc.nat(bytes.length), (length) => {
        const cut = bytes.subarray(0, length)
        expect(placesOf(entriesOf(cut))).toEqual(placesOf(sound.filter(({ end }) => end <= length)))
        expect([...logItems(cut)].filter(({ kind }) => kind === 'damage')).toEqual([])
      }),
      { numRuns: 200 },
    )
  })

  test('calls zeros behind the last write torn: a power cut can leave them', async () => {
    const { bytes } = await killedLog()
    const items = [...logItems(Buffer.concat([bytes, Buffer.alloc(100_000)]))]
    expect(items.flatMap((item) => (item.kind === 'entry' ? [] : [item]))).toEqual([
      { kind: 'torn', offset: bytes.length, bytes: 100_000, isCut: true },
    ])
  })

  test('is read without an error whatever the bytes are', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 70_000 }), (bytes) => {
        const items = [...logItems(Buffer.from(bytes))]
        for (const item of items) expect(item.bytes).toBeGreaterThan(0)
      }),
      { numRuns: 150 },
    )
  })

  test('does not take bytes of a value for a write, where they look like one', async () => {
    const folder = await newFolder()
    const key = Buffer.from('key')
    const put = (sequence: number, value: Buffer) =>
      encodeWriteBatch({ sequence, operations: [{ key, value }] })
    const inner = encodeLog([put(1_000_000, Buffer.from('inner'))])
    const log = encodeLog([
      put(1, Buffer.from('a')),
      put(2, Buffer.concat([Buffer.alloc(50, 7), inner])),
      put(3, Buffer.from('c')),
    ])
    const second = entriesOf(log)[1]?.offset ?? 0
    log[second + 10] = (log[second + 10] ?? 0) ^ 1
    await writeFile(join(folder, 'log'), log)
    const batches = (await batchesOf(join(folder, 'log'))).flatMap((item) =>
      item.kind === 'batch' ? [item.batch.sequence] : [],
    )
    expect(batches).toEqual([1, 3])
  })
})

describe('a log that the gateway wrote', () => {
  test('has records of every size at the end of a block', async () => {
    fc.assert(
      fc.property(fc.array(fc.nat(70_000), { minLength: 1, maxLength: 6 }), (sizes) => {
        const entries = sizes.map((size, index) => Buffer.alloc(size, index + 1))
        expect(entriesOf(encodeLog(entries)).map(({ content }) => content)).toEqual(entries)
      }),
      { numRuns: 200 },
    )
    for (let rest = 0; rest < 16; rest += 1) {
      const entries = [Buffer.alloc(32_768 - 7 - rest, 1), Buffer.alloc(50, 2)]
      expect(entriesOf(encodeLog(entries)).map(({ content }) => content)).toEqual(entries)
    }
  })
})
