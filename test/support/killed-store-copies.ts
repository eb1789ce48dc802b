// killed-store-copies.ts: copies of databases as `kill -9` leaves them. Each database is written once for a test
// file, because that takes a process of its own and up to seconds.

import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll } from 'vitest'
import { newFolder } from './folders.ts'
import { writeKilledStore, type Contents } from './killed-store.ts'

const bases = new Map<Contents, string>()

afterAll(async () => {
  for (const base of bases.values()) await rm(base, { recursive: true })
  bases.clear()
})

/** Resolves with the directory of a copy, which the caller may damage. */
export async function killedStore(contents: Contents): Promise<string> {
  let base = bases.get(contents)
  if (base === undefined) {
    base = await mkdtemp(join(tmpdir(), 'gateway-test-'))
    bases.set(contents, base)
    await writeKilledStore(base, contents)
  }
  const path = join(await newFolder(), 'store')
  await cp(base, path, { recursive: true })
  return path
}
