// Manifests, CURRENT and the directory of a real database, whole and damaged.

import { copyFile, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { logItems } from '../../../src/storage/level-files/log-reader.ts'
import { readStoreDirectory, type StoreDirectory } from '../../../src/storage/level-files/store-directory.ts'
import { newFolder } from '../../support/folders.ts'
import { writeKilledStore } from '../../support/killed-store.ts'

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

describe('a damaged directory', () => {
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

  test('reports a CURRENT that names a manifest which does not exist; then the newest complete one counts, else every table', async () => {
    const path = await killedStore()
    const whole = await readStoreDirectory(path)
    await writeFile(join(path, 'CURRENT'), 'MANIFEST-000001\n')
    // A compaction removed it from the database, and its file is still there.
    await copyFile(join(path, whole.tables[0]!.name), join(path, '000001.ldb'))
    const missing = { file: 'MANIFEST-000001', unit: 'manifest', what: 'the file is missing' }
    const found = await readStoreDirectory(path)
    expect(damageOf(found)).toEqual([missing])
    expect(found.tables).toEqual(whole.tables)
    expect(found.logs).toEqual(whole.logs)

    await rm(join(path, await manifestOf(path)))
    const other = await readStoreDirectory(path)
    expect(damageOf(other)).toEqual([missing])
    expect(other.manifest).toBeNull()
    expect(other.tables).toHaveLength(found.files.tables.length)
    expect(other.logs).toHaveLength(found.files.logs.length)
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
