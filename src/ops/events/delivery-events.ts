// delivery-events.ts: the events of batches, submissions, lanes, endpoints and credentials.

import { plural } from '../../std/quantity.ts'
import { bounded, quote } from '../../std/quote.ts'
import type { EventName, EventOf } from '../../domain/event.ts'
import type { Outcome } from '../../domain/outcome.ts'
import { clause, nextTry, forProvider, providerKey, sentence } from './event-text.ts'
import type { EventTable } from './types.ts'

type DeliveryEvent = Extract<
  EventName,
  | 'held_batches_changed'
  | 'payloads_returned'
  | 'endpoint_changed'
  | 'credentials_found'
  | `${'batch' | 'submission' | 'payload' | 'answer' | 'lane' | 'sender' | 'body'}_${string}`
>

export const deliveryEvents: EventTable<DeliveryEvent> = {
  batch_sealed: {
    meaning: 'Payloads were sealed into a batch. Its content does not change any more.',
    level: 'debug',
    text: ({ payloads }) => `Sealed a batch of ${plural(payloads, 'payload')}.`,
  },
  submission_ended: {
    meaning: 'One HTTP request with a batch ended.',
    act: 'If failures repeat, see the condition of the endpoint.',
    level: { oneOf: ['debug', 'info'], of: ({ outcome }) => (isFine(outcome) ? 'debug' : 'info') },
    text: ({ payloads, outcome }) => {
      const submission = `Submission of ${plural(payloads, 'payload')}`
      return isFine(outcome)
        ? `${submission} ended: ${outcome.kind}.`
        : `${submission} failed: ${failureOf(outcome)}: ${quote(outcome.message)}`
    },
    repeats: ({ provider, outcome }) => (isFine(outcome) ? null : `${provider}|${failureOf(outcome)}`),
    fields: submissionFields,
  },
  batch_settled: {
    meaning: 'A batch was settled: each payload was delivered, is retried later, or became a dead letter.',
    level: {
      oneOf: ['debug', 'info'],
      of: ({ retried, dead }) => (retried + dead === 0 ? 'debug' : 'info'),
    },
    text: ({ delivered, retried, dead }) =>
      `Settled a batch: ${plural(delivered, 'payload')} delivered, ${retried} retried later, ` +
      `${plural(dead, 'dead letter')}.`,
    repeats: ({ provider, retried, dead }) => (retried + dead === 0 ? null : provider),
  },
  batch_held: {
    meaning:
      'The answer of the service does not settle a batch. The gateway keeps the batch and sends it ' +
      'again.',
    act: 'If this continues, ask the support of the service about the batchId.',
    level: 'warn',
    text: ({ why, retryInMs }) => `A batch is held: ${bounded(clause(why))}. ${nextTry(retryInMs)}`,
    repeats: ({ provider }) => provider,
  },
  held_batches_changed: {
    meaning: 'A batch is held because of the answers of the service to it, or is held no longer.',
    level: 'debug',
    text: ({ provider, reason, batches, payloads }) =>
      `Held${forProvider(provider)} (${reason}): ${plural(batches, 'batch', 'batches')} with ` +
      `${plural(payloads, 'payload')}.`,
  },
  endpoint_changed: {
    meaning:
      'The endpoint of a provider became available, unavailable or unauthorized, or for another reason.',
    level: 'debug',
    text: ({ provider, state, why }) =>
      `The endpoint${forProvider(provider)} is ${state}: ${bounded(sentence(why))}`,
    repeats: ({ provider, state }) => `${provider}|${state}`,
  },
  credentials_found: {
    meaning: 'The gateway signs with these credentials from now on.',
    level: 'info',
    text: ({ accessKeyId }) => `Signing with access key ${accessKeyId}.`,
    repeats: providerKey,
  },
  payloads_returned: {
    meaning:
      'Payloads were removed from the spool, because they are stored in the queue of parked entries of the ' +
      'engine (`PARKED`). They come back.',
    level: 'info',
    text: ({ payloads, reason }) => `Returned ${plural(payloads, 'payload')} (${reason}).`,
    repeats: ({ provider, reason }) => `${provider}|${reason}`,
  },
  batch_split: {
    meaning:
      'The gateway sends a batch in parts under new batchIds, to find the payload that the service ' +
      'refuses.',
    level: 'warn',
    text: ({ parts, why }) => `Split a batch into ${plural(parts.length, 'part')}: ${bounded(sentence(why))}`,
    repeats: ({ provider }) => provider,
  },
  payload_dead_lettered: {
    meaning: 'The service refused a payload finally. It is a dead letter now.',
    act: 'See DEAD_LETTERS.',
    level: 'error',
    text: ({ reason, detail }) => `A payload became a dead letter: ${bounded(reason, 64)}: ${quote(detail)}`,
    repeats: ({ provider, reason }) => `${provider}|${reason}`,
  },
  answer_inconsistent: {
    level: 'warn',
    repeats: ({ provider }) => provider,
    raises: {
      ANSWERS_INCONSISTENT: (event) => ({
        key: event.provider,
        what: inconsistency(event),
        why: `Batch ${event.batchId}: ${event.deviations.slice(0, 5).map(clause).join('; ')}.`,
        act: `Give the support of the service this requestId: ${event.requestId ?? 'none was sent'}.`,
      }),
    },
  },
  sender_thread_lost: {
    meaning: 'The thread that sends batches ended. Its batches are sent again, by a new thread.',
    act: 'Report it with the log if it repeats.',
    level: 'error',
    text: ({ batches, why }) =>
      `Lost the sender thread with ${plural(batches, 'batch', 'batches')}: ${bounded(sentence(why))} A new one starts.`,
    raises: {
      SENDER_THREAD_LOST: ({ losses, why }) =>
        losses < 2
          ? null
          : {
              what: `The sender thread was lost ${plural(losses, 'time')} in the last hour.`,
              why: `Latest: ${bounded(sentence(why))}`,
            },
    },
  },
  body_changed: {
    meaning:
      'The bytes of a batch changed in memory before they were sent. This is a defect of the gateway. ' +
      'Nothing was sent, and the batch is sent again.',
    act: 'Report it with the log.',
    level: 'error',
    text: ({ batchId }) => `Did not send batch ${batchId}: its bytes in memory changed. It is sent again.`,
  },
  lane_rotated: {
    meaning: 'Pending payloads became backfill, so that new payloads are sent before them.',
    level: 'info',
    text: ({ payloads, why }) =>
      `Moved ${plural(payloads, 'waiting payload')} behind new ones, as backfill: ${sentence(why)}`,
    repeats: ({ provider }) => provider,
  },
}

/** A deviation that is a whole sentence is about more than one answer, and says it best. */
function inconsistency({ provider, deviations }: EventOf<'answer_inconsistent'>): string {
  const whole = deviations.find((deviation) => /^[A-Z].*\.$/.test(deviation))
  return (
    whole ??
    `An answer of the service${forProvider(provider)} is inconsistent: ${clause(deviations[0] ?? 'unknown')}.`
  )
}

type Fine = Extract<Outcome, { kind: 'answered' | 'accepted_single' | 'aborted' }>

function isFine(outcome: Outcome): outcome is Fine {
  return outcome.kind === 'answered' || outcome.kind === 'accepted_single' || outcome.kind === 'aborted'
}

function failureOf(outcome: Exclude<Outcome, Fine>): string {
  return 'status' in outcome ? `${outcome.kind} ${outcome.status}` : outcome.kind
}

/** Of the outcome without its lists: those are as long as the batch. */
function submissionFields({ kind: _kind, outcome, ...event }: EventOf<'submission_ended'>) {
  const fields: Record<string, unknown> = { ...event, outcome: outcome.kind }
  for (const name of ['status', 'requestId', 'message', 'reason'] as const)
    if (name in outcome) fields[name] = (outcome as Record<string, unknown>)[name]
  if (outcome.kind === 'answered') {
    fields['accepted'] = outcome.accepted === 'all' ? event.payloads : outcome.accepted.length
    fields['failed'] = outcome.failed.length
  }
  return fields
}
