// totals-schema.ts: the part of /status that only grows: what happened since the start. Messages, payloads,
// and what is neither, are counted apart.

import { z } from 'zod'
import { keptStoreNames } from '../../domain/kept-store.ts'
import { count, record, timeOrNull } from './value-types.ts'

export const totals = record({
  since: z.literal('start').describe('The totals begin at the start of the process.'),
  messages: count().describe('Messages received.'),
  acked: count().describe('Messages acknowledged.'),
  ignored: count().describe(
    'Messages that a rule of the config ignores, or that their client may not publish.',
  ),
  unmappable: count().describe('Messages that became dead letters, because they could not be mapped.'),
  quarantined: count().describe('Messages put into quarantine.'),
  released: count().describe('Messages that left the quarantine.'),
  dropped: count().describe('Messages lost: QoS 0 while nothing could be stored.'),
  returned: count().describe(
    'Messages that had to wait and got no acknowledgement. Their devices still have them.',
  ),
  resent: count().describe(
    'Messages that were sent again and were stored before: acknowledged, not stored again.',
  ),
  resendsStored: count().describe(
    'Messages without a device time that came again with DUP and were stored. Some may be second copies.',
  ),
  payloads: count().describe('Payloads stored.'),
  duplicates: count().describe(
    'Payloads with a payloadId of the dedup window: acknowledged, not stored again.',
  ),
  delivered: count().describe('Payloads that the service accepted.'),
  retried: count().describe('Failed payloads that were put into a retry lane.'),
  dead: count().describe(
    'Payloads that became dead letters, because the service refused them and no retry is left.',
  ),
  payloadsReturned: count().describe(
    'Payloads removed from the spool, because the server that their messages came from has them again.',
  ),
  damaged: count().describe('Payloads that were acknowledged and could not be read from the disk.'),
  recordsMissing: count().describe(
    'Kept messages, dead letters and entries of the mapping state that were counted and are missing.',
  ),
  submissions: count().describe('HTTP requests with a batch.'),
  evicted: z
    .array(
      record({
        store: z.enum(keptStoreNames).describe('The store.'),
        messages: count().describe('Kept messages or dead letters deleted to make room.'),
      }),
    )
    .describe('What full stores deleted.'),
})

export const reasons = z
  .array(
    record({
      kind: z
        .enum(['ignored', 'unmappable', 'quarantined'])
        .describe('What became of the messages, as in `totals`.'),
      source: z.string().nullable().describe('The source; null where none takes the topic.'),
      reason: z.string().describe('Why, as a code or in words.'),
      messages: count().describe('Messages since the start.'),
    }),
  )
  .describe('Messages that gave no payload, by source and reason. At most 200 of each kind.')

export const outcomes = z
  .array(
    record({
      outcome: z.string().describe('The result, with the HTTP status or the reason: `unavailable_500`.'),
      submissions: count().describe('Submissions since the start.'),
    }),
  )
  .describe('How submissions ended.')

const withheld = z.array(
  record({
    source: z.string().describe('The source.'),
    field: z.string().describe('The field or signal type.'),
    reason: z.string().describe('Why.'),
    values: count().describe('Values since `since`.'),
  }),
)

export const mapping = record({
  since: timeOrNull().describe('When the mapping was put in force: the start or the last reload.'),
  sources: count().describe('Sources in it.'),
  omitted: withheld.describe('Values left out of payloads. At most 200.'),
  flagged: withheld.describe('Values that were sent although they are not plausible. At most 200.'),
  clocks: record({
    future: count().describe('Device times in the future.'),
    unset: count().describe('Device times of a clock that was never set.'),
    old: count().describe('Device times older than the source allows.'),
    restamped: count().describe('Device times replaced by the time of arrival.'),
  }).describe('Verdicts about device times since `since`.'),
})
