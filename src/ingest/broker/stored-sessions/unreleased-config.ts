// unreleased-config.ts: fields of `ingest.broker.limits`: QoS 2 messages that were received and not released.

import { z } from 'zod'

export const unreleasedFields = {
  max_unreleased_messages: z
    .int()
    .min(1)
    .max(65_535)
    .default(10_000)
    .describe(
      'QoS 2 messages of one session without PUBREL. A client that sends more is disconnected. Each takes about ' +
        '60 bytes of memory and an entry in the spool.',
    ),
  max_unreleased_messages_total: z
    .int()
    .min(1000)
    .max(100_000_000)
    .default(1_000_000)
    .describe(
      'The same of all sessions. At the limit, sessions without a connection are removed, reported and counted, ' +
        'those with most messages first. Where that is not enough, a client that sends another one is disconnected.',
    ),
}
