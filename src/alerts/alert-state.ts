// alert-state.ts: what receivers know, kept in `<spool>/alerts.json` over restarts (kept-json.ts). It may be
// lost: then receivers get the open conditions once more, and no message that one was cleared.

import { z } from 'zod'
import { severities } from '../domain/cause.ts'
import { places } from './alert-limit.ts'

const severity = z.enum(severities)

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
  recent: z
    .array(
      z.object({
        at: z.number(),
        codes: z.array(z.string()),
        /** Builds before this one did not count them. */
        place: z.enum(places).default('any'),
      }),
    )
    .max(1000),
  pending: z.object({ id: z.string(), key: z.string() }).nullable(),
  omitted: z.int().min(0),
  lastSentAt: z.number().nullable(),
  /** An alert said that changes wait because of the limit. */
  isLimitSaid: z.boolean().default(false),
  /** The day of the last summary, as a date. */
  digestDay: z.string().nullable().default(null),
})

export const alertStateSchema = z.object({
  version: z.literal(1),
  receivers: z.record(z.string(), senderState),
})

export type SenderState = z.infer<typeof senderState>
export type AlertState = z.infer<typeof alertStateSchema>['receivers']
