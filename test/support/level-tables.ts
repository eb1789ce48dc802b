// level-tables.ts: tables that LevelDB wrote, and damage to their bytes.

import { hash } from 'node:crypto'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openLevelStore, type StoreEntry } from '../../src/storage/storage.ts'
import type { KnownTable } from '../../src/storage/level-files/table-reader/table-reader.ts'

export const allKeys = { gte: Buffer.from([0]), lt: Buffer.from([255]) }

export const keyOf = (n: number) => Buffer.from(`key ${String(n).padStart(6, '0')}`)

/** A value that Snappy can compress, or one that it cannot. */
export function valueOf(n: number, bytes: number, compresses: boolean): Buffer {
  const unit = hash('sha512', `${n}`, 'buffer')
  return compresses
    ? Buffer.from(
        unit
          .toString('hex')
          .repeat(Math.ceil(bytes / 128))
          .slice(0, bytes),
      )
    : Buffer.concat(
        Array.from({ length: Math.ceil(bytes / 64) }, (_, i) => hash('sha512', `${n} ${i}`, 'buffer')),
      )
}

export type WrittenByLevel = { entries: StoreEntry[]; table: KnownTable; bytes: Buffer }

/** One table that LevelDB wrote, with what it reads from it. */
export async function tableOf(values: readonly Buffer[]): Promise<WrittenByLevel> {
  const path = await mkdtemp(join(tmpdir(), 'gateway-test-'))
  try {
    return await writtenTo(path, values)
  } finally {
    await rm(path, { recursive: true })
  }
}

async function writtenTo(path: string, values: readonly Buffer[]): Promise<WrittenByLevel> {
  const store = await openLevelStore(path)
  const ops = values.map((value, n) => ({ type: 'put' as const, key: keyOf(n), value }))
  await store.write(ops, { sync: true })
  await store.compact(allKeys)
  const entries: StoreEntry[] = []
  for await (const page of store.pages(allKeys)) entries.push(...page)
  await store.close()
  const [name = '', ...more] = (await readdir(path)).filter((file) => file.endsWith('.ldb'))
  if (more.length > 0) throw new Error('LevelDB wrote more than one table')
  const bytes = await readFile(join(path, name))
  const table = { name, bytes: bytes.length, smallest: keyOf(0), largest: keyOf(values.length - 1) }
  return { entries, table, bytes }
}

/** Damage to bytes from `from` up to `until`, or a cut at `from`. */
export type Damage = { kind: 'flip' | 'zero' | 'cut'; from: number; until: number; bit: number }

export function damaged(bytes: Buffer, damages: readonly Damage[]): Buffer {
  let changed = Buffer.from(bytes)
  for (const { kind, from, until, bit } of damages) {
    if (kind === 'flip' && from < changed.length) changed[from]! ^= 1 << bit
    if (kind === 'zero') changed.fill(0, Math.min(from, changed.length), Math.min(until, changed.length))
    if (kind === 'cut') changed = changed.subarray(0, from)
  }
  return changed
}
