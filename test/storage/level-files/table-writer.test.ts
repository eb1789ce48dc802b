import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { ClassicLevel } from 'classic-level'
import { describe, expect, test } from 'vitest'
import { openExistingStore, type StoreEntry } from '../../../src/storage/storage.ts'
import { internalKeyOf, userKeyOf } from '../../../src/storage/level-files/table-reader/block.ts'
import { openTable } from '../../../src/storage/level-files/table-reader/table-reader.ts'
import { createTable, type WrittenTable } from '../../../src/storage/level-files/table-writer.ts'
import { newFolder } from '../../support/folders.ts'
import { allKeys, keyOf, valueOf } from '../../support/level-tables.ts'

const name = '000005.ldb'

/** What LevelDB reads from a directory that has one table and nothing else. */
async function readByLevel(path: string): Promise<StoreEntry[]> {
  await ClassicLevel.repair(path)
  const store = await openExistingStore(path)
  const entries: StoreEntry[] = []
  for await (const page of store.pages(allKeys)) entries.push(...page)
  for (const [key, value] of entries) expect((await store.get(key))?.equals(value)).toBe(true)
  await store.close()
  return entries
}

const known = (written: WrittenTable) => ({
  name,
  bytes: written.bytes,
  smallest: userKeyOf(written.smallest),
  largest: userKeyOf(written.largest),
})

describe('a written table', () => {
  test.each([1, 15, 16, 17, 2000])(
    'with %i entries is read by LevelDB and by the own reader',
    async (count) => {
      const path = await newFolder()
      const writer = await createTable(join(path, name))
      const values = Array.from({ length: count }, (_, n) => valueOf(n, (n * 31) % 3000, true))
      for (const [n, value] of values.entries()) {
        if (n % 7 === 3) await writer.add(internalKeyOf(keyOf(n), 5000, 0), Buffer.alloc(0))
        await writer.add(internalKeyOf(keyOf(n), n + 1, 1), value)
      }
      const written = (await writer.finish())!
      expect((await stat(join(path, name))).size).toBe(written.bytes)
      const reader = await openTable(path, known(written))
      expect(await reader.check()).toEqual([])
      await reader.close()
      const read = await readByLevel(path)
      const expected = values.flatMap((value, n) => (n % 7 === 3 ? [] : [[keyOf(n), value]]))
      expect(read).toEqual(expected)
    },
  )

  test('is not made of nothing, nor over an existing file', async () => {
    const path = join(await newFolder(), name)
    const writer = await createTable(path)
    expect(await writer.finish()).toBeNull()
    expect(await readFile(path)).toHaveLength(0)
    await expect(createTable(path)).rejects.toMatchObject({ code: 'EEXIST' })
  })
})
