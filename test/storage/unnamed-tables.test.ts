import { copyFile, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { deleteUnnamedTables, openLevelStore } from '../../src/storage/storage.ts'
import { newFolder } from '../support/folders.ts'

const keyOf = (n: number) => Buffer.from(`key ${n}`)

/** A database with one table, and a copy of the table under a number that no manifest names. */
async function withUnnamedTable(): Promise<{
  folder: string
  store: string
  named: string
  unnamed: string
}> {
  const folder = await newFolder()
  const store = join(folder, 'store')
  const level = await openLevelStore(store)
  const ops = [1, 2, 3].map((n) => ({ type: 'put' as const, key: keyOf(n), value: Buffer.from(`${n}`) }))
  await level.write(ops, { sync: true })
  await level.compact({ gte: keyOf(0), lt: keyOf(9) })
  await level.close()
  const named = (await readdir(store)).find((name) => name.endsWith('.ldb')) ?? ''
  const unnamed = '000099.ldb'
  await copyFile(join(store, named), join(store, unnamed))
  return { folder, store, named, unnamed }
}

test('only tables that the manifest does not name are deleted', async () => {
  const { folder, store, named, unnamed } = await withUnnamedTable()
  expect(await deleteUnnamedTables(store, folder)).toBeGreaterThan(0)
  expect(await readdir(store)).toContain(named)
  expect(await readdir(store)).not.toContain(unnamed)
  const level = await openLevelStore(store)
  expect((await level.get(keyOf(2)))?.toString()).toBe('2')
  await level.close()
})

test('nothing is deleted where the manifest in force cannot be read', async () => {
  const { folder, store, named, unnamed } = await withUnnamedTable()
  await writeFile(join(store, 'CURRENT'), 'MANIFEST-000777\n')
  const manifest = (await readdir(store)).find((name) => name.startsWith('MANIFEST')) ?? ''
  await writeFile(join(store, manifest), Buffer.alloc(64, 0xff))
  expect(await deleteUnnamedTables(store, folder)).toBe(0)
  expect(await readdir(store)).toEqual(expect.arrayContaining([named, unnamed]))
})
