// One suite over every implementation of the store: what the spool relies on, real LevelDB and memory alike.

import { readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { openLevelStore, type OpenStore, type Store, type StoreOp } from '../../src/storage/storage.ts'
import { newFolder } from '../support/folders.ts'
import { createMemoryDisk } from '../support/memory-store.ts'

const key = (text: string) => Buffer.from(text)
const put = (name: string, value: string): StoreOp => ({
  type: 'put',
  key: key(name),
  value: Buffer.from(value),
})
const all = { gte: key('a'), lt: key('z') }

async function read(
  store: Store,
  options: Parameters<Store['pages']>[1] = {},
  range = all,
): Promise<string[]> {
  const found: string[] = []
  for await (const page of store.pages(range, options)) {
    for (const [name, value] of page) found.push(`${name.toString()}=${value.toString()}`)
  }
  return found
}

const implementations: [string, () => Promise<{ path: string; openStore: OpenStore }>][] = [
  ['LevelDB', async () => ({ path: await newFolder(), openStore: openLevelStore })],
  ['memory', async () => ({ path: 'memory', openStore: createMemoryDisk().boot() })],
]

describe.each(implementations)('a store on %s', (_name, world) => {
  test('returns entries in key order, forwards and backwards, within the range and the limit', async () => {
    const { path, openStore } = await world()
    const store = await openStore(path)
    await store.write([put('c', '3'), put('a', '1'), put('b', '2'), put('z', 'outside')], { sync: true })
    expect(await read(store)).toEqual(['a=1', 'b=2', 'c=3'])
    expect(await read(store, { reverse: true, limit: 2 })).toEqual(['c=3', 'b=2'])
    expect(await read(store, {}, { gte: key('b'), lt: key('c') })).toEqual(['b=2'])
    await store.close()
  })

  test('applies all operations of one write in their order', async () => {
    const { path, openStore } = await world()
    const store = await openStore(path)
    await store.write([put('a', '1'), { type: 'del', key: key('a') }, put('b', '1'), put('b', '2')], {
      sync: true,
    })
    expect(await read(store)).toEqual(['b=2'])
    await store.close()
  })

  test('keeps what was written after closing and opening', async () => {
    const { path, openStore } = await world()
    const first = await openStore(path)
    await first.write([put('a', '1')], { sync: true })
    await first.close()
    const second = await openStore(path)
    expect(await read(second)).toEqual(['a=1'])
    await second.close()
  })

  test('shows a reader the snapshot of its start', async () => {
    const { path, openStore } = await world()
    const store = await openStore(path)
    await store.write([put('a', '1'), put('b', '1')], { sync: true })
    const pages = store.pages(all)[Symbol.asyncIterator]()
    const first = pages.next()
    await store.write([put('a', '2'), put('c', '2')], { sync: true })
    const page = await first
    expect(page.done).toBe(false)
    expect((page.value as [Buffer, Buffer][]).map(([, value]) => value.toString())).toEqual(['1', '1'])
    await pages.return?.()
    await store.close()
  })

  test('does not keep the buffers of the caller', async () => {
    const { path, openStore } = await world()
    const store = await openStore(path)
    const value = Buffer.from('1')
    const written = store.write([{ type: 'put', key: key('a'), value }], { sync: true })
    value.fill('9')
    await written
    expect(await read(store)).toEqual(['a=1'])
    await store.close()
  })
})

describe('LevelDB', () => {
  test('rejects a second opener with SPOOL_LOCKED and what to stop', async () => {
    const path = await newFolder()
    const store = await openLevelStore(path)
    await expect(openLevelStore(path)).rejects.toMatchObject({
      code: 'SPOOL_LOCKED',
      act: expect.stringContaining('systemctl stop telemetry-gateway'),
    })
    await store.close()
  })

  test('is never created where CURRENT is missing beside its files', async () => {
    const path = await newFolder()
    const before = await openLevelStore(path)
    await before.write([put('a', '1')], { sync: true })
    await before.close()
    const names = await readdir(path)
    await rm(join(path, 'CURRENT'))
    await expect(openLevelStore(path)).rejects.toMatchObject({ code: 'SPOOL_DAMAGED' })
    expect(await readdir(path)).toEqual(names.filter((name) => name !== 'CURRENT'))
  })

  test('is created where a power cut left an empty log and no CURRENT', async () => {
    const path = await newFolder()
    await writeFile(join(path, '000003.log'), '')
    await (await openLevelStore(path)).close()
    expect(await readdir(path)).toContain('CURRENT')
  })

  test.each([0, 3, 8, 15])('reports a flipped bit in byte %i of CURRENT as damage', async (offset) => {
    const path = await newFolder()
    await (await openLevelStore(path)).close()
    const current = await readFile(join(path, 'CURRENT'))
    current[offset] = (current[offset] ?? 0) ^ 1
    await writeFile(join(path, 'CURRENT'), current)
    await expect(openLevelStore(path)).rejects.toMatchObject({ code: 'SPOOL_DAMAGED' })
  })
})
