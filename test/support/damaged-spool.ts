// damaged-spool.ts: a spool with tables, as a kill leaves it, and damage to its files.

import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { openLevelStore } from '../../src/storage/storage.ts'
import { openSpoolWorld } from './open-spool.ts'
import { payloadNamed } from './spool-world.ts'

export const pageBytes = 4096

/** Fills the spool at `path` with payloads, in tables, and leaves the marker of a daemon that was killed. */
export async function killedSpool(path: string, payloads: number): Promise<void> {
  const wide = {
    bytesMax: 1024 ** 3,
    uncommittedBytesMax: 64 * 1024 ** 2,
    groupBytesMax: 1024 ** 2,
    group: { chunkPayloadsMax: 50, chunkBytesMax: 64 * 1024 },
  }
  const { spool } = await openSpoolWorld({ path, changes: wide })
  for (let n = 0; n < payloads; n += 1) {
    // Payloads without a device time bypass the dedup window of the test options.
    spool.append(payloadNamed(`device-${n}`, { deviceTime: null, padding: 200 }))
    if (n < payloads - 1) spool.endMessage(null)
  }
  await new Promise((resolve) => {
    spool.endMessage(resolve)
  })
  await spool.close()
  await compacted(path)
  await writeFile(join(path, 'in-use'), '{"pid":1}')
}

/** Moves everything into tables. */
export async function compacted(path: string): Promise<void> {
  const store = await openLevelStore(join(path, 'store'))
  await store.compact({ gte: Buffer.alloc(0), lt: Buffer.from([0xff]) })
  await store.close()
}

/** The largest table of the store. */
export async function tableOf(path: string): Promise<string> {
  const names = (await readdir(join(path, 'store'))).filter((name) => name.endsWith('.ldb'))
  const sized = await Promise.all(
    names.map(async (name) => ({ name, bytes: (await readFile(join(path, 'store', name))).length })),
  )
  const [largest] = sized.toSorted((a, b) => b.bytes - a.bytes)
  if (largest === undefined) throw new Error('the store has no table')
  return join(path, 'store', largest.name)
}

/** Zeroes a page of a file. Returns what brings the file back. */
export async function zeroPage(file: string, page: number): Promise<() => Promise<void>> {
  const whole = await readFile(file)
  const damaged = Buffer.from(whole)
  damaged.fill(0, page * pageBytes, (page + 1) * pageBytes)
  if (damaged.equals(whole)) throw new Error('the page holds only zeros')
  await writeFile(file, damaged)
  return () => writeFile(file, whole)
}
