// delivery-facts.ts: the facts of delivery: providers, lanes and outcomes.

import { z } from 'zod'
import type { ProviderView } from '../../delivery/types.ts'
import type { LaneRole, LaneView } from '../../spool/spool.ts'
import { oldestOf } from '../lane-age.ts'
import {
  count,
  fact,
  list,
  maybe,
  offsetOrNull,
  secondsOrNull,
  text,
  textOrNull,
  time,
  timeOrNull,
  word,
} from './fact.ts'
import { listMax, type Seen } from './seen.ts'

export const providers = list(
  'Delivery, for each provider.',
  (seen: Seen) => seen.providers,
  {
    name: text('Its name in the config.'),
    endpoint: word('Whether the service takes its batches, fails, or refuses the signature.', [
      'available',
      'unavailable',
      'unauthorized',
    ]),
    since: time('Since when the endpoint has this state.'),
    lastRequestId: textOrNull('requestId of the last answer; null before the first.'),
    lastAcceptedAt: timeOrNull(
      'When the service last accepted one of its payloads, since the start.',
      'gateway_last_accepted_timestamp_seconds',
    ),
    clockOffsetMs: offsetOrNull(
      'Clock of the service minus clock of this machine, by the header `Date`.',
      'gateway_clock_offset_seconds',
    ),
    nextAttemptAt: timeOrNull('When the next submission may start; null: now.'),
    inFlight: count('Submissions that run now.', 'gateway_submissions_in_flight'),
    payloadsPerSecond: fact(
      z.number().min(0).describe('Payloads accepted, over the last minute.'),
      ({ ratePerS }) => ratePerS,
    ),
  },
  { provider: 'name' },
)

export const lanes = list(
  'Payloads that wait for delivery, in the order in which they drain.',
  (seen: Seen) => draining(seen.lanes, ratesOf(seen.providers)),
  {
    id: count('Its number. Numbers are never used again.'),
    provider: text('Whose payloads it has.'),
    urgency: word(
      'What is in it: fresh payloads, late ones, or failed ones that wait for their next try.',
      ['live', 'backfill', 'retry'],
      ({ role }) => role.kind,
    ),
    retry: maybe('Of a lane with failed payloads.', ({ role }) => (role.kind === 'retry' ? role : null), {
      schedule: text('Schedule of the tries.'),
      step: count('Step of the schedule, from 0.'),
    }),
    pending: count('Payloads that are in no batch yet.'),
    sealed: count('Payloads in sealed batches.'),
    held: count(
      'Payloads of held batches, which are sealed, too. They do not count for the time to drain.',
      null,
      ({ heldPayloads }) => heldPayloads,
    ),
    bytes: count(
      'JSON bytes of its payloads.',
      null,
      ({ pendingBytes, sealedBytes }) => pendingBytes + sealedBytes,
    ),
    openedAt: time('When it was opened.'),
    oldestAt: timeOrNull('When its oldest payload was stored; null: it is empty.'),
    secondsToDrain: secondsOrNull(
      'Until it is empty at the rate of the last minute, more urgent lanes first; null: nothing moves.',
    ),
  },
)

export const outcomes = list(
  'How submissions ended.',
  ({ delivery }: Seen) =>
    [...(delivery?.outcomes ?? [])]
      .slice(0, listMax)
      .map(([outcome, submissions]) => ({ outcome, submissions })),
  {
    outcome: text('The result, with the HTTP status or the reason: `unavailable_500`.'),
    submissions: count('Submissions since the start.'),
  },
)

const urgencies: readonly LaneRole['kind'][] = ['live', 'retry', 'backfill']

/**
 * A lane behind another one of its provider waits for that one too. `rates`: payloads per second of each
 * provider that delivers now; without one, the time to drain is not known.
 */
function draining(lanes: readonly LaneView[], rates: ReadonlyMap<string, number>) {
  const before = new Map<string, number>()
  return [...lanes]
    .sort((a, b) => urgencies.indexOf(a.role.kind) - urgencies.indexOf(b.role.kind) || a.id - b.id)
    .map((lane) => {
      const open = lane.pending + lane.sealed
      // Held batches wait for a person, or for hours: they do not drain at any rate.
      const drains = open - lane.heldPayloads
      const ahead = (before.get(lane.provider) ?? 0) + drains
      before.set(lane.provider, ahead)
      const ratePerS = rates.get(lane.provider) ?? 0
      const toDrain = ratePerS > 0 && drains > 0 ? Math.ceil(ahead / ratePerS) : null
      return { ...lane, oldestAt: oldestOf(lane), secondsToDrain: open === 0 ? 0 : toDrain }
    })
}

/** Of providers that deliver now. */
function ratesOf(providers: readonly ProviderView[]): ReadonlyMap<string, number> {
  return new Map(
    providers.map(({ name, endpoint, ratePerS }) => [name, endpoint === 'available' ? ratePerS : 0]),
  )
}
