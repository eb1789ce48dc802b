// status-schema.ts: the state of the daemon as one JSON document, version 1: `/status`, the command `status`,
// other programs. Its facts make the document, its type, its schema, its reference (docs/status.md) and its
// part of the OpenAPI document, and the metrics of its numbers, so they cannot differ. Entry file of this
// folder.
//
//   fact.ts              the form of a fact
//   seen.ts              what facts are read from
//   totals-facts.ts      what happened since the start, and why
//   ...-facts.ts         how things are now
//   internals-facts.ts   for engineers
//
// Rules: times are ISO 8601 strings, null for never. Durations end in `Ms` or `Seconds`. Lists are lists of
// objects; no key has a name of the config in it. Keys are added, and neither renamed nor removed, below
// `internals` excepted.

import { z } from 'zod'
import type { EpochMs } from '../../std/clock.ts'
import { formatDuration } from '../../std/quantity.ts'
import { severities } from '../../domain/cause.ts'
import { specOf } from '../conditions/condition-catalogue.ts'
import type { Condition } from '../conditions/conditions.ts'
import { lastAcceptedOf, verdictOf, verdicts } from '../gateway-verdict/gateway-verdict.ts'
import { lanes, outcomes, providers } from './delivery-facts.ts'
import {
  count,
  fact,
  flag,
  group,
  list,
  maybe,
  secondsOrNull,
  text,
  textOrNull,
  time,
  timeOrNull,
  word,
} from './fact.ts'
import { clients, custody, messageSources, reasons, waiting } from './ingest-facts.ts'
import { internals } from './internals-facts.ts'
import { clock, devices, mapping } from './mapping-facts.ts'
import { notReadyOf, seenOf, verdictSource, type Seen, type StatusSource } from './seen.ts'
import { ledger, spool } from './spool-facts.ts'
import { totals } from './totals-facts.ts'

const conditions = list(
  'Problems that exist now, the worst first.',
  (seen: Seen) => seen.conditions.map((one) => ({ ...one, what: one.what + nextTryOf(one, seen) })),
  {
    code: text('Stable code: [list](events-and-conditions.md).'),
    key: textOrNull('What it is about, such as a provider or a lane; null: the gateway.'),
    severity: word('How bad it is.', severities),
    since: time('When it began.'),
    lastAt: time('When it last happened.'),
    count: count('How often it happened since it began.'),
    what: text('What is wrong.'),
    why: text('Why, as far as it is known.'),
    act: text('What to do.'),
    causes: fact(
      z
        .array(z.string())
        .describe('Each thing that has the problem, such as a device, where one more is news; at most 200.'),
      ({ causes }) => [...causes],
    ),
    known: maybe(
      'Who acknowledged it, with `conditions acknowledge`, and for how long; null: it is not acknowledged.',
      ({ known }) => known,
      {
        untilAt: time('Until then it is not sent again.', null, undefined, { isOurs: true }),
        by: text('Who acknowledged it.'),
        saidAt: time('When.', null, undefined, { isOurs: true }),
      },
    ),
  },
)

const statusFacts = group('', (seen: Seen) => seen, {
  version: text('Version of the gateway.'),
  verdict: word(
    'Whether it works: [what they mean](operations.md#the-verdict).',
    verdicts,
    (seen) => verdictOf(verdictSource(seen)).verdict,
  ),
  sentence: text(
    'The verdict in words, with the ages of the last message and of the last accepted payload.',
    (seen) => verdictOf(verdictSource(seen)).sentence,
  ),
  ready: flag(
    'Whether it is ready, as `/readyz` says it: not while it starts or stops, nor while all acknowledgements are held.',
    'gateway_ready',
    (seen) => notReadyOf(seen) === null,
  ),
  notReady: textOrNull('Why it is not ready.', notReadyOf),
  pid: count('Process id.'),
  startedAt: time('When the process started.'),
  now: time('When this document was made, by the time of the gateway.'),
  addresses: fact(z.array(z.string()).describe('Where devices connect.'), ({ stages }) => [
    ...(stages.ingest?.addresses() ?? []),
  ]),
  lastMessageAt: timeOrNull(
    'When the last message came. Nothing before the first since the start.',
    'gateway_last_message_timestamp_seconds',
    ({ ingest }) => ingest?.lastMessageAt,
  ),
  lastMessageAgeSeconds: secondsOrNull('How long ago that is.', null, ({ ingest, now }) =>
    ageOf(ingest?.lastMessageAt ?? null, now),
  ),
  lastAcceptedAt: timeOrNull('When the service last accepted a payload, since the start.', null, (seen) =>
    lastAcceptedOf(seen.providers),
  ),
  lastAcceptedAgeSeconds: secondsOrNull('How long ago that is.', null, (seen) =>
    ageOf(lastAcceptedOf(seen.providers), seen.now),
  ),
  providers,
  lanes,
  waiting,
  totals,
  reasons,
  outcomes,
  mapping,
  devices,
  clients,
  messageSources,
  custody,
  spool,
  clock,
  ledger,
  conditions,
  conditionsHidden: count('Conditions beyond the limit of the list.'),
  internals,
})

export const statusSchema = statusFacts.schema

/** Of the numbers that have one. */
export const statusMetrics = statusFacts.metrics('')

export type Status = z.output<typeof statusSchema>

export function buildStatus(source: StatusSource): Status {
  return statusFacts.read(seenOf(source), '', source.stages.ourTime?.correctionMs() ?? 0)
}

/** The clock may have been set back since. */
function ageOf(at: EpochMs | null, now: EpochMs): number | null {
  return at === null ? null : Math.max(0, Math.round((now - at) / 100) / 10)
}

/** When delivery tries again, as it is now: the condition itself is as old as its last cause. */
function nextTryOf({ code, key }: Condition, { providers, now }: Seen): string {
  const provider = specOf(code).showsNextTry ? providers.find(({ name }) => name === key) : undefined
  if (provider === undefined) return ''
  if (provider.inFlight > 0) return ' A try is running.'
  const waitMs = (provider.nextAttemptAt ?? now) - now
  return waitMs > 0 ? ` Next try in ${formatDuration(waitMs)}.` : ' Next try with the next payload.'
}

export { answerShape } from './value-types.ts'
