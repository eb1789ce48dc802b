import { cp, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { openLevelFiles, type LevelFiles } from '../../../src/storage/level-files/level-files.ts'
import {
  openExistingStore,
  openLevelStore,
  type StoreEntry,
  type StoreOp,
} from '../../../src/storage/storage.ts'
import { newFolder } from '../../support/folders.ts'
import { killedStore } from '../../support/killed-store-copies.ts'
import { allKeys, keyOf, valueOf } from '../../support/level-tables.ts'
import { createRandom } from '../../support/random.ts'

async function entriesOf(pages: AsyncIterable<readonly StoreEntry[]>): Promise<[string, string][]> {
  const entries: [string, string][] = []
  for await (const page of pages)
    for (const [key, value] of page) entries.push([key.toString(), value.toString('base64')])
  return entries
}

/** What LevelDB reads on a copy. Opening a database changes its files. */
async function readByLevel(path: string): Promise<[string, string][]> {
  const copy = join(await newFolder(), 'copy')
  await cp(path, copy, { recursive: true })
  const store = await openExistingStore(copy)
  const entries = await entriesOf(store.pages(allKeys))
  await store.close()
  return entries
}

async function using<Result>(path: string, use: (files: LevelFiles) => Promise<Result>): Promise<Result> {
  const files = await openLevelFiles(path)
  try {
    return await use(files)
  } finally {
    await files.close()
  }
}

const readOwn = (path: string) => using(path, (files) => entriesOf(files.pages(allKeys)))

/** Keys that are overwritten and deleted, so that versions lie on several levels and in the log. */
async function usedStore(): Promise<string> {
  const path = join(await newFolder(), 'store')
  const store = await openLevelStore(path, { writeBufferBytes: 64 * 1024 })
  const { below } = createRandom(7)
  for (let round = 0; round < 400; round += 1) {
    const ops = Array.from({ length: 1 + below(30) }, (): StoreOp => {
      const key = keyOf(below(4000))
      if (below(3) === 0) return { type: 'del', key }
      return { type: 'put', key, value: valueOf(round, below(400), below(2) === 0) }
    })
    await store.write(ops, { sync: true })
    if (round === 150) await store.compact(allKeys)
  }
  await store.close()
  return path
}

describe('the files of a database', () => {
  test('give what LevelDB reads, from several levels and the log', async () => {
    const path = await usedStore()
    const expected = await readByLevel(path)
    await using(path, async (files) => {
      expect(new Set(files.tables.map(({ level }) => level)).size).toBeGreaterThan(1)
      // Two where LevelDB was closed before it had made a table of the first.
      expect(files.logs.length).toBeGreaterThan(0)
      expect(await entriesOf(files.pages(allKeys))).toEqual(expected)
      expect(files.damage).toEqual([])
      for (const table of files.tables) expect(await files.checkTable(table)).toEqual([])
      for (const [key, value] of expected.slice(0, 50))
        expect((await files.get(Buffer.from(key)))?.toString('base64')).toBe(value)
      expect(await files.get(Buffer.from('key 9'))).toBeUndefined()
    })
  })

  test('give a part of the keys, a limited number, and pages of a size', async () => {
    const path = await usedStore()
    const expected = await readByLevel(path)
    await using(path, async (files) => {
      for (const [from, until] of [
        [0, 1],
        [700, 1900],
        [3990, 9000],
        [9000, 9001],
      ] as const) {
        const range = { gte: keyOf(from), lt: keyOf(until) }
        const within = expected.filter(
          ([key]) => key >= keyOf(from).toString() && key < keyOf(until).toString(),
        )
        expect(await entriesOf(files.pages(range))).toEqual(within)
        expect(await entriesOf(files.pages(range, { limit: 3 }))).toEqual(within.slice(0, 3))
      }
      const sizes: number[] = []
      for await (const page of files.pages(allKeys, { pageBytes: 5000 })) sizes.push(page.length)
      expect(sizes.length).toBeGreaterThan(20)
      expect(Math.max(...sizes)).toBeLessThan(400)
    })
  })

  test.each([1, 2, 3, 4])('give what LevelDB reads after kill -9 of the process (%i)', async (seed) => {
    const path = await killedStore({
      seed,
      writes: 70 * seed,
      operationsMax: 20,
      valueBytesMax: 900,
      keys: 3000,
    })
    expect(await readOwn(path)).toEqual(await readByLevel(path))
  })

  test('show every version, the newest first, each once', async () => {
    const path = await usedStore()
    await using(path, async (files) => {
      const seen = new Map<string, number>()
      let versions = 0
      for await (const page of files.raw(allKeys))
        for (const { key, sequence } of page) {
          expect(sequence).toBeLessThan(seen.get(key.toString()) ?? Infinity)
          expect(sequence).toBeLessThanOrEqual(files.lastSequence)
          seen.set(key.toString(), sequence)
          versions += 1
        }
      expect(versions).toBeGreaterThan(seen.size)
    })
  })

  test.each(['CURRENT', 'MANIFEST'])('give everything without the file %s', async (name) => {
    const path = join(await newFolder(), 'store')
    const store = await openLevelStore(path, { writeBufferBytes: 64 * 1024 })
    for (let n = 0; n < 2000; n += 10)
      await store.write(
        Array.from({ length: 10 }, (_, i) => ({
          type: 'put',
          key: keyOf(n + i),
          value: valueOf(n, 200, false),
        })),
        { sync: true },
      )
    await store.close()
    const expected = await readByLevel(path)
    for (const file of await readdir(path)) if (file.startsWith(name)) await rm(join(path, file))
    await using(path, async (files) => {
      expect(await entriesOf(files.pages(allKeys))).toEqual(expected)
      expect(files.damage.length).toBeGreaterThan(0)
      expect(files.damage.filter(({ keys }) => keys !== null)).toEqual([])
    })
  })
})
