// history-schemas.ts: the shape of /history.

import { z } from 'zod'
import { answerKinds, historySpans } from '../../history/history.ts'
import { count, record, seconds, time } from '../../status-schema/value-types.ts'

const counts = () => z.array(count().nullable())

export const historySchema = record({
  now: time().describe('When the answer was made, by the clock of the machine.'),
  span: z.enum(historySpans).describe('The span that was asked for.'),
  from: time().describe('Where it begins.'),
  stepSeconds: seconds().describe('What a sample covers; the one that grows now covers less.'),
  atSeconds: z
    .array(z.number())
    .describe(
      'The end of each sample, the oldest first, in seconds since 1970. Each other array has as many values; null: not known. Where the gateway did not run, one sample is null in each of them.',
    ),
  seconds: z
    .array(seconds().nullable())
    .describe('How long each sample is, by a clock that nobody sets: divide counts by it for a rate.'),
  messages: counts().describe('Messages received.'),
  payloads: counts().describe('Payloads stored.'),
  accepted: counts().describe('Payloads that the service accepted.'),
  retried: counts().describe('Payloads that failed and wait for another try.'),
  dead: counts().describe('Payloads that became dead letters because the service refused them.'),
  answers: z
    .array(
      record({
        kind: z
          .enum(answerKinds)
          .describe(
            '`answered`: with a result for each payload. `refused`: 400, 413. `repeated`: 409. `unauthorized`: 401, 403. `unavailable`: 408, 425, 429, 5xx. `unreachable`: no answer. `other`: no readable answer.',
          ),
        submissions: counts().describe('Submissions that ended so.'),
      }),
    )
    .describe('How submissions ended; kinds that occurred.'),
  waiting: counts().describe('Payloads that waited, at most.'),
  oldestAgeSeconds: counts().describe('Age of the oldest of them, at most; null: none waited.'),
  spoolBytes: counts().describe('What counts for the limit of the spool.'),
  diskBytes: counts().describe('Its files on the disk.'),
  freeBytes: counts().describe('Free on its file system.'),
  connections: counts().describe('Open connections of clients.'),
})
