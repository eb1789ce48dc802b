// alert-state.ts: what receivers know, kept in `<spool>/alerts.json` over restarts. It may be lost: then
// receivers get the open conditions once more, and no message that one was cleared.
//
// A write takes the state of its moment; writes during a write become one. A disk that hangs delays an alert
// by two seconds and stops none.

import { z } from 'zod'
import type { Clock } from '../std/clock.ts'
import { readRegular, replaceRegular } from '../std/file-system/regular-file.ts'

const severity = z.enum(['info', 'warning', 'error', 'critical'])

const reported = z.object({
  code: z.string(),
  key: z.string().nullable(),
  severity,
  since: z.number(),
  count: z.number(),
  what: z.string(),
  why: z.string(),
  act: z.string(),
  causes: z.array(z.string()).max(1000).default([]),
  sentAt: z.number(),
})

const senderState = z.object({
  /** Digest of type and target: another one knows nothing. It shows nothing of a secret address. */
  target: z.string(),
  reported: z.array(reported).max(1000),
  /** What a try had whose outcome is not known. */
  maybe: z.array(reported).max(1000),
  recent: z.array(z.object({ at: z.number(), codes: z.array(z.string()) })).max(1000),
  pending: z.object({ id: z.string(), key: z.string() }).nullable(),
  omitted: z.int().min(0),
  lastSentAt: z.number().nullable(),
  /** An alert said that changes wait because of the limit. */
  isLimitSaid: z.boolean().default(false),
  /** The day of the last summary, as a date. */
  digestDay: z.string().nullable().default(null),
})

const stateSchema = z.object({ version: z.literal(1), receivers: z.record(z.string(), senderState) })

export type SenderState = z.infer<typeof senderState>
export type AlertState = z.infer<typeof stateSchema>['receivers']

const writeMs = 2000

/** Anything that cannot be read is an empty state. */
export async function readAlertState(path: string): Promise<AlertState> {
  try {
    return stateSchema.parse(JSON.parse(await readRegular(path))).receivers
  } catch {
    return {}
  }
}

/** Returns the function that writes. It never rejects, and resolves after `writeMs` at the latest. */
export function createStateWriter(clock: Clock, path: string, state: () => AlertState): () => Promise<void> {
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
      writing = write().finally(() => {
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

  async function write(): Promise<void> {
    const text = JSON.stringify({ version: 1, receivers: state() })
    // The disk is full, or the spool is refused: both have conditions of their own.
    await replaceRegular(path, text, { isSynced: false }).catch(() => undefined)
  }
}
