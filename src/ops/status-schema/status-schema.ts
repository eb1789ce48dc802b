// status-schema.ts: the schema of /status, version 1. It is the type of the document, its reference
// (docs/status.md) and its part of the OpenAPI document, so they cannot differ. status.ts makes the document;
// a test compares the answer of a running daemon with this schema.
//
//   totals-schema.ts      what happened since the start, and why
//   state-schema.ts       how things are now
//   internals-schema.ts   for engineers
//
// Rules: times are ISO 8601 strings, null for never. Durations end in `Ms` or `Seconds`. Lists are lists of
// objects; no key has a name of the config in it. Keys are added, and neither renamed nor removed, below
// `internals` excepted.

import { z } from 'zod'
import { severities } from '../conditions/condition-catalogue.ts'
import { verdicts } from '../gateway-verdict/gateway-verdict.ts'
import { internals } from './internals-schema.ts'
import { clients, clock, custody, devices, ledger, messageSource, spool, waiting } from './state-schema.ts'
import { mapping, outcomes, reasons, totals } from './totals-schema.ts'
import { bytes, count, record, seconds, time, timeOrNull } from './value-types.ts'

const provider = record({
  name: z.string().describe('Its name in the config.'),
  endpoint: z
    .enum(['available', 'unavailable', 'unauthorized'])
    .describe('Whether the service takes its batches, fails, or refuses the signature.'),
  since: time().describe('Since when the endpoint has this state.'),
  lastRequestId: z.string().nullable().describe('requestId of the last answer; null before the first.'),
  lastAcceptedAt: timeOrNull().describe(
    'When the service last accepted one of its payloads, since the start.',
  ),
  clockOffsetMs: z.number().nullable().describe('Clock of the service minus ours, by the header `Date`.'),
  nextAttemptAt: timeOrNull().describe('When the next submission may start; null: now.'),
  inFlight: count().describe('Submissions that run now.'),
  payloadsPerSecond: z.number().min(0).describe('Payloads accepted, over the last minute.'),
})

const lane = record({
  id: count().describe('Its number. Numbers are never used again.'),
  provider: z.string().describe('Whose payloads it has.'),
  urgency: z
    .enum(['live', 'backfill', 'retry'])
    .describe('What is in it: fresh payloads, late ones, or failed ones that wait for their next try.'),
  retry: record({
    schedule: z.string().describe('Schedule of the tries.'),
    step: count().describe('Step of the schedule, from 0.'),
  })
    .nullable()
    .describe('Of a lane with failed payloads.'),
  pending: count().describe('Payloads that are in no batch yet.'),
  sealed: count().describe('Payloads in sealed batches.'),
  held: count().describe(
    'Payloads of held batches, which are sealed, too. They do not count for the time to drain.',
  ),
  bytes: bytes().describe('JSON bytes of its payloads.'),
  openedAt: time().describe('When it was opened.'),
  oldestAt: timeOrNull().describe('When its oldest payload was stored; null: it is empty.'),
  secondsToDrain: seconds()
    .nullable()
    .describe(
      'Until it is empty at the rate of the last minute, more urgent lanes first; null: nothing moves.',
    ),
})

const condition = record({
  code: z.string().describe('Stable code: [list](events-and-conditions.md).'),
  key: z.string().nullable().describe('What it is about, such as a provider or a lane; null: the gateway.'),
  severity: z.enum(severities).describe('How bad it is.'),
  since: time().describe('When it began.'),
  lastAt: time().describe('When it last happened.'),
  count: count().describe('How often it happened since it began.'),
  what: z.string().describe('What is wrong.'),
  why: z.string().describe('Why, as far as it is known.'),
  act: z.string().describe('What to do.'),
  causes: z
    .array(z.string())
    .describe('Each thing that has the problem, such as a device, where one more is news; at most 200.'),
  known: record({
    untilAt: time().describe('Until then it is not sent again.'),
    by: z.string().describe('Who acknowledged it.'),
    saidAt: time().describe('When.'),
  })
    .nullable()
    .describe(
      'Who acknowledged it, with `conditions acknowledge`, and for how long; null: it is not acknowledged.',
    ),
})

export const statusSchema = record({
  version: z.string().describe('Version of the gateway.'),
  verdict: z.enum(verdicts).describe('Whether it works: [what they mean](operations.md#the-verdict).'),
  sentence: z
    .string()
    .describe('The verdict in words, with the ages of the last message and of the last accepted payload.'),
  ready: z
    .boolean()
    .describe('As `/readyz`: false while it starts or stops, and while all acknowledgements are held.'),
  notReady: z.string().nullable().describe('Why it is not ready.'),
  pid: count().describe('Process id.'),
  startedAt: time().describe('When the process started.'),
  now: time().describe('When this document was made, by the clock of the machine.'),
  addresses: z.array(z.string()).describe('Where devices connect.'),
  lastMessageAt: timeOrNull().describe('When the last message came, since the start.'),
  lastMessageAgeSeconds: seconds().nullable().describe('How long ago that is.'),
  lastAcceptedAt: timeOrNull().describe('When the service last accepted a payload, since the start.'),
  lastAcceptedAgeSeconds: seconds().nullable().describe('How long ago that is.'),
  providers: z.array(provider).describe('Delivery, for each provider.'),
  lanes: z.array(lane).describe('Payloads that wait for delivery, in the order in which they drain.'),
  waiting,
  totals: totals.describe('What happened since the start. A restart begins at 0.'),
  reasons,
  outcomes,
  mapping: mapping.describe('The mapping in force, and what it left out.'),
  devices,
  clients,
  messageSources: z.array(messageSource).describe('Where messages come from.'),
  custody: custody.nullable().describe('Custody `delivered`; null in custody `spool`.'),
  spool,
  clock,
  ledger,
  conditions: z.array(condition).describe('Problems that exist now, the worst first.'),
  conditionsHidden: count().describe('Conditions beyond the limit of the list.'),
  internals,
})

export { answerShape } from './value-types.ts'

export type Status = z.output<typeof statusSchema>
