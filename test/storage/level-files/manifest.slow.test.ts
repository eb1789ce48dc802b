// Manifests, CURRENT and the directory of a real database, whole and damaged.

import { readdir, readFile, rm, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { logItems } from '../../../src/storage/level-files/log-reader.ts'
import { switchCurrent, writeManifest } from '../../../src/storage/level-files/manifest.ts'
import { readStoreDirectory, type StoreDirectory } from '../../../src/storage/level-files/store-directory.ts'
import { newFolder } from '../../support/folders.ts'
import { contentAfter, contentOf, writeKilledStore, writesOf } from '../../support/killed-store.ts'

/** Enough for several tables. */
const contents = { seed: 3, writes: 500, operationsMax: 12, valueBytesMax: 2500, keys: 3000 }

async function killedStore(): Promise<string> {
  const path = await newFolder()
  await writeKilledStore(path, contents)
  return path
}

async function manifestOf(path: string): Promise<string> {
  return (await readdir(path)).find((name) => name.startsWith('MANIFEST-')) ?? ''
}

const damageOf = ({ damage }: StoreDirectory) => damage.map(({ file, unit, what }) => ({ file, unit, what }))

describe('the directory of a killed database', () => {
  test('is opened by LevelDB with a manifest that the gateway wrote, with the same content', async () => {
    const path = await killedStore()
    const { manifest, files } = await readStoreDirectory(path)
    if (manifest === null) throw new Error('no manifest')
    const { nextFileNumber, logNumber, prevLogNumber, lastSequence, tables } = manifest
    const name = await writeManifest(path, nextFileNumber, {
      logNumber,
      prevLogNumber,
      lastSequence,
      nextFileNumber: nextFileNumber + 1,
      tables: tables.values(),
    })
    await switchCurrent(path, name)
    await rm(join(path, manifest.name))
    const again = await readStoreDirectory(path)
    expect(again.damage).toEqual([])
    expect(again.manifest?.tables).toEqual(tables)
    expect(files.manifests).not.toContain(nextFileNumber)
    expect(await contentOf(path)).toEqual(contentAfter(writesOf(contents)))
  })
})

describe('a damaged directory', () => {
  test('reports a missing CURRENT and finds the version in the manifest', async () => {
    const path = await killedStore()
    const whole = await readStoreDirectory(path)
    await rm(join(path, 'CURRENT'))
    const found = await readStoreDirectory(path)
    expect(damageOf(found)).toEqual([{ file: 'CURRENT', unit: 'CURRENT', what: 'the file is missing' }])
    expect(found.tables).toEqual(whole.tables)
    expect(found.logs).toEqual(whole.logs)
    expect(found.manifest?.isComplete).toBe(true)
  })

  test.each(['', 'MANIFEST-000002', 'MANIFEST-\n', 'nonsense\n', '../MANIFEST-000002\n', '\0'.repeat(16)])(
    'reports CURRENT with the content %j',
    async (content) => {
      const path = await killedStore()
      await writeFile(join(path, 'CURRENT'), content)
      const found = await readStoreDirectory(path)
      expect(damageOf(found)).toMatchObject([{ unit: 'CURRENT' }])
      expect(found.manifest?.isComplete).toBe(true)
    },
  )

  test('reports a CURRENT that names a manifest which does not exist; then every table counts', async () => {
    const path = await killedStore()
    await writeFile(join(path, 'CURRENT'), 'MANIFEST-099999\n')
    const found = await readStoreDirectory(path)
    expect(damageOf(found)).toEqual([
      { file: 'MANIFEST-099999', unit: 'manifest', what: 'the file is missing' },
    ])
    expect(found.manifest).toBeNull()
    expect(found.tables).toHaveLength(found.files.tables.length)
    expect(found.logs).toHaveLength(found.files.logs.length)
  })

  test('reports a missing table with the keys that are lost, and a table of another size', async () => {
    const path = await killedStore()
    const { tables } = await readStoreDirectory(path)
    const [first, second] = tables
    if (first === undefined || second === undefined) throw new Error('too few tables')
    await rm(join(path, first.name))
    await truncate(join(path, second.name), 1000)
    const found = await readStoreDirectory(path)
    expect(found.missing).toEqual([first.name])
    expect(found.damage).toMatchObject([
      { file: first.name, unit: 'table', keys: { until: first.largest } },
      { file: second.name, unit: 'table', offset: 1000, bytes: second.bytes - 1000 },
    ])
    const after = found.damage[0]?.keys?.after ?? Buffer.alloc(0)
    expect(Buffer.compare(after, first.smallest ?? Buffer.alloc(0))).toBe(-1)
  })

  test('never says that all is well where the manifest lost an edit that matters', async () => {
    const path = await killedStore()
    const whole = await readStoreDirectory(path)
    const name = await manifestOf(path)
    const bytes = await readFile(join(path, name))
    const edits = [...logItems(bytes)].filter(({ kind }) => kind === 'entry')
    expect(edits.length).toBeGreaterThan(3)
    for (const { offset } of edits) {
      await writeFile(join(path, name), bytes.subarray(0, offset + 3))
      const found = await readStoreDirectory(path)
      const numbers = new Set(found.tables.map(({ number }) => number))
      const isWhole = whole.tables.every(({ number }) => numbers.has(number))
      expect(found.damage.length > 0 || isWhole, `cut at ${offset}`).toBe(true)
      // Every table that holds something counts, whether the manifest names it or not.
      expect(isWhole, `cut at ${offset}`).toBe(true)
    }
  })

  test('reports a flipped bit anywhere in the manifest, never throws and keeps every table', async () => {
    const path = await killedStore()
    const whole = await readStoreDirectory(path)
    const name = await manifestOf(path)
    const bytes = await readFile(join(path, name))
    await fc.assert(
      fc.asyncProperty(fc.nat(bytes.length * 8 - 1), async (bit) => {
        const damaged = Buffer.from(bytes)
        damaged[bit >> 3] = (damaged[bit >> 3] ?? 0) ^ (1 << (bit & 7))
        await writeFile(join(path, name), damaged)
        const found = await readStoreDirectory(path)
        const numbers = new Set(found.tables.map(({ number }) => number))
        expect(whole.tables.every(({ number }) => numbers.has(number))).toBe(true)
        expect(found.logs).toEqual(expect.arrayContaining(whole.logs))
        // LevelDB takes a length that goes beyond the end of the file for a write that a kill interrupted.
        const isSilent = found.damage.length === 0
        expect(isSilent ? found.tables : whole.tables).toEqual(whole.tables)
      }),
      { numRuns: 80 },
    )
  })
})
