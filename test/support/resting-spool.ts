// resting-spool.ts: what a test does with the database of a spool that nobody has open.

import { join } from 'node:path'
import { openRestingSpool } from '../../src/spool/spool.ts'
import type { SpoolCheck } from '../../src/spool/views.ts'
import { openExistingStore, type StoreOp } from '../../src/storage/storage.ts'

/** Changes the records behind the back of the spool. */
export async function writeIn(path: string, ops: StoreOp[]): Promise<void> {
  const store = await openExistingStore(join(path, 'store'))
  await store.write(ops, { sync: true })
  await store.close()
}

export async function checkOf(path: string): Promise<SpoolCheck> {
  const resting = await openRestingSpool(path)
  try {
    return await resting.check(new AbortController().signal)
  } finally {
    await resting.close()
  }
}
