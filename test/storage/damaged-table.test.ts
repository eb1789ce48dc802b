import { hash } from 'node:crypto'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { codeOf } from '../../src/std/gateway-error.ts'
import { openLevelStore, type Store } from '../../src/storage/storage.ts'
import { newFolder } from '../support/folders.ts'

const keyOf = (n: number) => Buffer.from(`key ${String(n).padStart(4, '0')}`)
const count = 200

/** A store whose one table has 64 bytes in its middle that nobody can read. */
async function damagedStore(): Promise<Store> {
  const path = await newFolder()
  const before = await openLevelStore(path)
  const ops = Array.from({ length: count }, (_, n) => ({
    type: 'put' as const,
    key: keyOf(n),
    value: Buffer.from(hash('sha512', `${n}`, 'hex').repeat(4)),
  }))
  await before.write(ops, { sync: true })
  await before.compact({ gte: keyOf(0), lt: keyOf(count) })
  await before.close()
  const name = (await readdir(path)).find((file) => file.endsWith('.ldb')) ?? ''
  const bytes = await readFile(join(path, name))
  const middle = Math.floor(bytes.length / 2)
  await writeFile(join(path, name), bytes.fill(0xff, middle, middle + 64))
  return openLevelStore(path)
}

async function first(store: Store, n: number, reverse: boolean): Promise<Buffer | null> {
  const range = reverse ? { gte: keyOf(0), lt: keyOf(n + 1) } : { gte: keyOf(n), lt: keyOf(count) }
  for await (const [entry] of store.pages(range, { limit: 1, reverse })) return entry?.[0] ?? null
  return null
}

async function isReadable(work: Promise<unknown>): Promise<boolean> {
  try {
    await work
    return true
  } catch (error) {
    if (codeOf(error) !== 'LEVEL_CORRUPTION') throw error
    return false
  }
}

describe('a table with a damaged block', () => {
  test('returns every entry outside of the block, from both directions', async () => {
    const store = await damagedStore()
    const sound: number[] = []
    for (let n = 0; n < count; n += 1) if (await isReadable(store.get(keyOf(n)))) sound.push(n)
    expect(sound.length).toBeGreaterThan(count / 2)
    expect(sound.length).toBeLessThan(count)
    for (const n of sound) {
      expect((await first(store, n, false))?.toString()).toBe(keyOf(n).toString())
      expect((await first(store, n, true))?.toString()).toBe(keyOf(n).toString())
    }
    await store.close()
  })
})
