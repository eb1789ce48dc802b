// The check of a database that kill -9 left: what it reports, what it mends, what it leaves alone.

import { copyFile, mkdir, readdir, readFile, rm, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { logItems } from '../../../src/storage/level-files/log-reader.ts'
import { encodeLog } from '../../../src/storage/level-files/log-writer.ts'
import { checkFiles } from '../../../src/storage/store-check/check-files.ts'
import { checkInThread, type CheckReport, type CheckRequest } from '../../../src/storage/storage.ts'
import { newFolder } from '../../support/folders.ts'
import { contentAfter, contentOf, writeKilledStore, writesOf } from '../../support/killed-store.ts'
import { killedStore } from '../../support/killed-store-copies.ts'

const small = { seed: 11, writes: 40, operationsMax: 4, valueBytesMax: 3000, keys: 50 }
const large = { seed: 12, writes: 500, operationsMax: 12, valueBytesMax: 2500, keys: 3000 }
const signal = new AbortController().signal

function requestFor(path: string, changes: Partial<CheckRequest> = {}): CheckRequest {
  const asidePath = join(path, '../damaged/now')
  return { path, logs: true, tables: 'none', verified: [], asidePath, mend: true, ...changes }
}

const check = (path: string, changes: Partial<CheckRequest> = {}) =>
  checkInThread(requestFor(path, changes), { onProgress: () => undefined, signal })

async function filesEnding(path: string, ending: string): Promise<string[]> {
  return (await readdir(path)).filter((name) => name.endsWith(ending)).toSorted()
}

const unitsOf = ({ damage }: CheckReport) => damage.map(({ unit }) => unit)

async function flipBit(file: string, at: number): Promise<void> {
  const bytes = await readFile(file)
  bytes[at] = (bytes[at] ?? 0) ^ 4
  await writeFile(file, bytes)
}

describe('the check of a database', () => {
  test('finds nothing in one that a kill left, and knows its last sequence', async () => {
    const path = await killedStore(small)
    const operations = writesOf(small).flat().length
    expect(await check(path)).toMatchObject({
      kind: 'ok',
      damage: [],
      mendedLogs: [],
      lastSequence: operations,
    })
  })

  test('calls a missing, empty or cut manifest, table and CURRENT damage', async () => {
    const base = await killedStore(large)
    const [table = ''] = await filesEnding(base, '.ldb')
    const manifest = (await readdir(base)).find((name) => name.startsWith('MANIFEST')) ?? ''
    for (const [name, unit] of [
      ['CURRENT', 'CURRENT'],
      [manifest, 'manifest'],
      [table, 'table'],
    ] as const) {
      const whole = await readFile(join(base, name))
      const damagers: (() => Promise<void>)[] = [
        () => rm(join(base, name)),
        () => writeFile(join(base, name), ''),
        () => truncate(join(base, name), Math.floor(whole.length / 2)),
      ]
      for (const damager of damagers) {
        await damager()
        const report = await check(base)
        expect(report.kind, name).toBe('damaged')
        expect(unitsOf(report), name).toContain(unit)
        await writeFile(join(base, name), whole)
      }
    }
    expect(await check(base)).toMatchObject({ kind: 'ok', damage: [] })
  })

  test('reads every block of the tables that are not known to be whole', async () => {
    const path = await killedStore(large)
    const first = await check(path, { tables: 'unverified' })
    expect(first).toMatchObject({ kind: 'ok', damage: [] })
    // The kill can leave a table that LevelDB was still writing, which does not count.
    const tables = (await filesEnding(path, '.ldb')).filter((table) =>
      first.verified.some(({ number }) => number === Number.parseInt(table, 10)),
    )
    expect(tables.length).toBeGreaterThan(0)
    expect(first.verified).toHaveLength(tables.length)
    const [name = ''] = tables
    const { length } = await readFile(join(path, name))
    const place = Math.floor(length / 2)
    await flipBit(join(path, name), place)
    expect(await check(path)).toMatchObject({ kind: 'ok', verified: [] })
    const damage = [{ file: name, unit: 'block', keys: {} }]
    // The file has another time now, so it is read again.
    const again = await check(path, { tables: 'unverified', verified: first.verified })
    expect(again).toMatchObject({ kind: 'damaged', damage })
    expect(again.verified).toHaveLength(tables.length - 1)
    const { offset = 0, bytes = 0, keys } = again.damage[0] ?? {}
    expect(offset <= place && place < offset + bytes).toBe(true)
    expect(Buffer.isBuffer(keys?.until)).toBe(true)
  })

  test('reports its progress and ends when it is aborted', async () => {
    const path = await killedStore(large)
    const seen: number[] = []
    const onProgress = ({ bytesTotal }: { bytesTotal: number }) => void seen.push(bytesTotal)
    await checkInThread(requestFor(path), { onProgress, signal })
    expect(seen[0]).toBeGreaterThan(100_000)
    const stop = new AbortController()
    const running = checkInThread(requestFor(path), { onProgress: () => stop.abort(), signal: stop.signal })
    await expect(running).rejects.toThrow('abort')
    const before = checkInThread(requestFor(path), { onProgress, signal: AbortSignal.abort() })
    await expect(before).rejects.toThrow('abort')
  })

  test('rejects with the code of the file system where a file cannot be read', async () => {
    const path = await killedStore(small)
    const [log = ''] = await filesEnding(path, '.log')
    const asidePath = join(path, log, 'not-a-directory')
    await flipBit(join(path, log), 100)
    await expect(check(path, { asidePath })).rejects.toMatchObject({ code: 'ENOTDIR' })
  })
})

describe('a log that is bad before its end', () => {
  test('is mended: all writes but the damaged one are there, and the damaged file is kept', async () => {
    const path = await killedStore(small)
    const [name = ''] = await filesEnding(path, '.log')
    const bytes = await readFile(join(path, name))
    const entries = [...logItems(bytes)].filter(({ kind }) => kind === 'entry')
    const writes = writesOf(small)
    await flipBit(join(path, name), (entries[7]?.offset ?? 0) + 40)
    const damaged = await readFile(join(path, name))
    const aside = join(path, '../damaged/now', name)
    expect(await check(path)).toMatchObject({
      kind: 'ok',
      damage: [],
      mendedLogs: [
        {
          file: name,
          aside,
          lostOperations: writes[7]?.length,
          keptBatches: 39,
          damage: [{ unit: 'log record' }],
        },
      ],
    })
    expect(await readFile(aside)).toEqual(damaged)
    expect((await check(path)).mendedLogs).toEqual([])
    expect(await contentOf(path)).toEqual(contentAfter(writes.filter((_write, index) => index !== 7)))
  })

  test('is mended whatever bits are flipped, and LevelDB opens what is left', async () => {
    const base = await killedStore(small)
    const [name = ''] = await filesEnding(base, '.log')
    const bytes = await readFile(join(base, name))
    const entries = [...logItems(bytes)].filter(({ kind }) => kind === 'entry')
    const writes = writesOf(small)
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(bytes.length - 1), { minLength: 1, maxLength: 4 }), async (places) => {
        const path = join(await newFolder(), 'store')
        await mkdir(path)
        for (const file of await readdir(base)) await copyFile(join(base, file), join(path, file))
        for (const place of new Set(places)) await flipBit(join(path, name), place)
        await checkFiles(requestFor(path))
        const isHit = ({ offset, bytes: length }: { offset: number; bytes: number }) =>
          places.some((place) => offset <= place && place < offset + length)
        const kept = writes.filter((_write, index) => {
          const entry = entries[index]
          return entry !== undefined && !isHit(entry)
        })
        expect(await contentOf(path)).toEqual(contentAfter(kept))
      }),
      { numRuns: 30 },
    )
  })

  test('is reported where the log behind it shows that its end is missing', async () => {
    const path = await newFolder()
    await writeKilledStore(path, small)
    const [name = ''] = await filesEnding(path, '.log')
    const bytes = await readFile(join(path, name))
    const entries = [...logItems(bytes)].filter(({ kind }) => kind === 'entry')
    const third = entries[3]?.offset ?? 0
    const half = entries[20]?.offset ?? 0
    // The second half of the writes in a log of its own, and the end of the first log cut off.
    const rest = [...logItems(bytes)].flatMap((item) =>
      item.kind === 'entry' && item.offset >= half ? [item.content] : [],
    )
    await writeFile(join(path, '000900.log'), encodeLog(rest))
    await truncate(join(path, name), third + 9)
    const lost = writesOf(small).slice(3, 20).flat().length
    expect(await check(path)).toMatchObject({
      kind: 'ok',
      mendedLogs: [{ file: name, lostOperations: lost, lostBytes: 9, keptBatches: 3 }],
    })
  })
})
