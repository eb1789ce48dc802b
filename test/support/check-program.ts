// check-program.ts: a program that checks the database of its first argument in a thread, as a start does, and
// mends its logs.

import { join } from 'node:path'
import { checkInThread } from '../../src/storage/storage.ts'

const [, , path = ''] = process.argv
const asidePath = join(path, '../damaged/now')
await checkInThread(
  { path, logs: true, tables: 'none', verified: [], asidePath, mend: true },
  { onProgress: () => undefined, signal: new AbortController().signal },
)
