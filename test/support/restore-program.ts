// restore-program.ts: a program that restores the snapshot of its first argument over the spool of its second.

import { restoreSpool } from '../../src/spool/spool.ts'

const [, , from = '', path = ''] = process.argv
await restoreSpool(from, path, {
  replace: true,
  now: () => Date.now(),
  newId: () => crypto.randomUUID(),
  signal: new AbortController().signal,
})
