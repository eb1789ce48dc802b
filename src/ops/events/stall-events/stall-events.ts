// stall-events.ts: the events of what stands still although each part works: deliveries, and messages that
// map to nothing; and what a person can do for each reason. Devices that are silent: silence-events.ts. What
// works, and not well: poor-events.ts.

import { formatDuration, plural } from '../../../std/quantity.ts'
import { bounded } from '../../../std/quote.ts'
import type { EventName, EventOf } from '../../../domain/event.ts'
import type { StallReason } from '../../../domain/event-fields/stall-event.ts'
import { forProvider, noKey, providerKey, sentence } from '../event-text.ts'
import type { EventTable } from '../types.ts'

type StallEvent = Extract<
  EventName,
  | 'nothing_accepted'
  | 'acceptance_resumed'
  | 'nothing_mapped'
  | 'nothing_mapped_ended'
  | `${'requests' | 'retry' | 'delivery'}_${string}`
>

const iso = (at: number) => new Date(at).toISOString()

const reasons: Record<StallReason, { why: string; act?: string }> = {
  rate_limit: {
    why: 'delivery.limits allows no request before then.',
    act: 'Nothing if the limit is intended. If not, raise or remove delivery.limits.',
  },
  no_place: {
    why: 'Other providers use the places of delivery.max_in_flight_total.',
    act: 'Raise delivery.max_in_flight_total.',
  },
  preparing: {
    why: 'A batch is being prepared: the credentials or the spool take long.',
    act: 'Check the source that delivery.credentials names, and the disk of the spool.',
  },
  batches_full: { why: 'The table of sealed batches is full. The next ones wait for their next try.' },
  failing: { why: 'Each sealed batch failed and waits for its next try.' },
  forbidden_trial: {
    why: 'A batch was answered 401 or 403. Other batches are needed to show whether that is about it.',
    act: 'Check the credentials. `probe` tries again now.',
  },
  isolation: { why: 'The service refused batches. They wait until another one is taken apart.' },
  acceptance: { why: 'The service refused payloads. They wait until the service accepts something else.' },
  dead_letters_full: {
    why: 'Payloads would become dead letters, and the dead letters are full.',
    act: 'Requeue or purge dead letters, or raise their limit.',
  },
  unknown: {
    why: 'The cause is not known.',
    act: 'Run `probe`. If it does not help, report it with the log.',
  },
}

export const stallEvents: EventTable<StallEvent> = {
  nothing_accepted: {
    level: { oneOf: ['debug', 'error'], of: ({ first }) => (first ? 'error' : 'debug') },
    repeats: providerKey,
    raises: {
      NOTHING_ACCEPTED: ({ provider, batches, why, requestId }) => ({
        key: provider,
        what:
          `The service accepted none of the last ${plural(batches, 'batch', 'batches')}` +
          `${forProvider(provider)}: ${bounded(sentence(why))}`,
        why: `It answered 200 and listed every payload as failed. Last requestId: ${requestId ?? 'none'}.`,
        present: batches,
      }),
    },
  },
  acceptance_resumed: {
    meaning: 'The service accepts payloads again.',
    level: 'info',
    text: () => 'The service accepts payloads again.',
    repeats: providerKey,
    clears: { NOTHING_ACCEPTED: providerKey },
  },
  requests_hanging: {
    level: { oneOf: ['debug', 'warn'], of: ({ first }) => (first ? 'warn' : 'debug') },
    repeats: providerKey,
    raises: {
      SERVICE_HANGING: ({ provider, requests, oldestAt, url }) => ({
        key: provider,
        what:
          `The service does not answer${forProvider(provider)}: ${plural(requests, 'request')} to ` +
          `${bounded(url)} without an answer, the oldest since ${iso(oldestAt)}.`,
        why: 'It takes more than twice as long as the last answers, or more than 30 s.',
        present: requests,
      }),
    },
  },
  requests_answered: {
    meaning: 'The service answers again.',
    level: 'info',
    text: ({ hungMs }) => `No request is late any more, after ${formatDuration(hungMs)}.`,
    repeats: providerKey,
    clears: { SERVICE_HANGING: providerKey },
  },
  delivery_stalled: {
    level: { oneOf: ['debug', 'warn'], of: ({ first }) => (first ? 'warn' : 'debug') },
    repeats: ({ provider, reason }) => `${provider}|${reason}`,
    raises: {
      DELIVERY_STALLED: (event) => (event.reason === 'rate_limit' ? null : stallOf(event)),
      RATE_LIMITED: (event) => (event.reason === 'rate_limit' ? stallOf(event) : null),
    },
    clears: {
      DELIVERY_STALLED: ({ provider, reason }) => (reason === 'rate_limit' ? provider : undefined),
      RATE_LIMITED: ({ provider, reason }) => (reason === 'rate_limit' ? undefined : provider),
    },
  },
  delivery_moves: {
    meaning: 'Batches are settled again, or another condition says why not.',
    level: 'info',
    text: () => 'Delivery does not stand still any more.',
    repeats: providerKey,
    clears: { DELIVERY_STALLED: providerKey, RATE_LIMITED: providerKey },
  },
  retry_after_waits: {
    level: { oneOf: ['debug', 'warn'], of: ({ first }) => (first ? 'warn' : 'debug') },
    repeats: providerKey,
    raises: {
      RETRY_AFTER: ({ provider, askedMs, waitMs, untilAt, requestId }) => ({
        key: provider,
        what:
          `The service asked for a wait of ${formatDuration(askedMs)} (Retry-After)${forProvider(provider)}. ` +
          `The gateway waits ${formatDuration(waitMs)}, until ${iso(untilAt)}.`,
        why: `${askedMs > waitMs ? 'The gateway waits at most 10 min. ' : ''}requestId ${requestId ?? 'none'}.`,
      }),
    },
  },
  retry_after_ended: {
    meaning: 'The wait that the service asked for is over.',
    level: 'info',
    text: () => 'The wait that the service asked for is over.',
    repeats: providerKey,
    clears: { RETRY_AFTER: providerKey },
  },
  nothing_mapped: {
    level: 'warn',
    raises: {
      NOTHING_MAPPED: ({ messages, duplicates, spanMs, reasons }) => ({
        what:
          duplicates === messages
            ? `Devices send, and nothing new comes: each of the last ${plural(messages, 'message')} in ` +
              `${formatDuration(spanMs)} is a duplicate.`
            : `The last ${plural(messages, 'message')} in ${formatDuration(spanMs)} became no new payload.`,
        why: `${reasons}.`,
        present: messages,
      }),
    },
  },
  nothing_mapped_ended: {
    meaning: 'A message became a new payload again.',
    level: 'info',
    text: () => 'Messages become payloads again.',
    clears: { NOTHING_MAPPED: noKey },
  },
}

function stallOf({ provider, reason, sinceAt, untilAt, lastAnswer }: EventOf<'delivery_stalled'>) {
  const { why, act } = reasons[reason]
  const next = untilAt === null ? '' : ` Next try at ${iso(untilAt)}.`
  const answer = lastAnswer === null ? '' : ` Last failure: ${bounded(sentence(lastAnswer))}`
  return {
    key: provider,
    what: `Nothing is delivered${forProvider(provider)} since ${iso(sinceAt)}. Data is kept.${next}`,
    why: `${why}${answer}`,
    ...(act === undefined ? {} : { act }),
    present: 1,
  }
}
