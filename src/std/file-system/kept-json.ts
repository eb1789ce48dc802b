// kept-json.ts: a small file of JSON that may be lost. What cannot be read is as if nothing was kept. What
// cannot be written is not: the disk is full, or the spool is gone, and both have conditions of their own.
//
// It is written by rename and without fsync. A write takes the state of its moment; writes during a write
// become one. On a disk that hangs, a caller waits two seconds at most and then goes on.

import type { z } from 'zod'
import type { Clock } from '../clock.ts'
import { readRegular, replaceRegular } from './regular-file.ts'

const writeMs = 2000

export async function readKept<Schema extends z.ZodType>(
  path: string,
  schema: Schema,
  nothing: z.output<Schema>,
): Promise<z.output<Schema>> {
  try {
    return schema.parse(JSON.parse(await readRegular(path)))
  } catch {
    return nothing
  }
}

/** Returns the function that writes. It never rejects, and resolves after `writeMs` at the latest. */
export function createKeptWriter(clock: Clock, path: string, state: () => unknown): () => Promise<void> {
  let writing: Promise<void> | null = null
  let next: Promise<void> | null = null
  return () =>
    new Promise((resolve) => {
      const cancel = clock.after(writeMs, resolve)
      void written().then(() => {
        cancel()
        resolve()
      })
    })

  function written(): Promise<void> {
    if (writing === null) {
      writing = replaceRegular(path, JSON.stringify(state()), { isSynced: false })
        .catch(() => undefined)
        .finally(() => {
          writing = null
        })
      return writing
    }
    next ??= writing.then(() => {
      next = null
      return written()
    })
    return next
  }
}
