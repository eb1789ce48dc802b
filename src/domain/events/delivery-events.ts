// delivery-events.ts: the events of batches, submissions, lanes, endpoints and credentials.

import { plural } from '../../std/quantity.ts'
import { bounded, quote } from '../../std/quote.ts'
import type { HeldReason } from '../held.ts'
import type { ProviderName } from '../ids.ts'
import type { Outcome } from '../outcome.ts'
import {
  batchId,
  bytes,
  count,
  dead,
  detail,
  event,
  field,
  lane,
  payloadId,
  payloads,
  provider,
  reason,
  requestId,
  retryInMs,
  tookMs,
  why,
} from './events.ts'
import { clause, nextTry, forProvider, providerKey, sentence } from './event-text.ts'

export const deliveryEvents = {
  batch_sealed: event({
    fields: { provider, lane, batchId, payloads, bytes },
    meaning: 'Payloads were sealed into a batch. Its content does not change any more.',
    level: 'debug',
    text: ({ payloads }) => `Sealed a batch of ${plural(payloads, 'payload')}.`,
  }),
  submission_ended: event({
    fields: {
      provider,
      lane,
      batchId,
      payloads,
      bytes,
      attempt: field<number>('number of the submission of this batch'),
      tookMs,
      outcome: field<Outcome>('result of the submission'),
    },
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
    logged: submissionFields,
  }),
  batch_settled: event({
    fields: {
      provider,
      lane,
      batchId,
      requestId,
      delivered: count('payloads accepted'),
      retried: count('payloads retried later'),
      dead,
    },
    meaning: 'A batch was settled: each payload was delivered, is retried later, or became a dead letter.',
    level: {
      oneOf: ['debug', 'info'],
      of: ({ retried, dead }) => (retried + dead === 0 ? 'debug' : 'info'),
    },
    text: ({ delivered, retried, dead }) =>
      `Settled a batch: ${plural(delivered, 'payload')} delivered, ${retried} retried later, ` +
      `${plural(dead, 'dead letter')}.`,
    repeats: ({ provider, retried, dead }) => (retried + dead === 0 ? null : provider),
  }),
  batch_held: event({
    fields: { provider, batchId, why, requestId, retryInMs },
    meaning:
      'The answer of the service does not settle a batch. The gateway keeps the batch and sends it ' +
      'again.',
    act: 'If this continues, ask the support of the service about the batchId.',
    level: 'warn',
    text: ({ why, retryInMs }) => `A batch is held: ${bounded(clause(why))}. ${nextTry(retryInMs)}`,
    repeats: ({ provider }) => provider,
  }),
  held_batches_changed: event({
    fields: {
      provider,
      reason: field<HeldReason>('why the batches are held'),
      batches: count('batches held for this reason now'),
      payloads,
    },
    meaning: 'A batch is held because of the answers of the service to it, or is held no longer.',
    level: 'debug',
    text: ({ provider, reason, batches, payloads }) =>
      `Held${forProvider(provider)} (${reason}): ${plural(batches, 'batch', 'batches')} with ` +
      `${plural(payloads, 'payload')}.`,
  }),
  endpoint_changed: event({
    fields: {
      provider,
      state: field<'available' | 'unavailable' | 'unauthorized'>('what the endpoint is now'),
      why,
    },
    meaning:
      'The endpoint of a provider became available, unavailable or unauthorized, or for another reason.',
    level: 'debug',
    text: ({ provider, state, why }) =>
      `The endpoint${forProvider(provider)} is ${state}: ${bounded(sentence(why))}`,
    repeats: ({ provider, state }) => `${provider}|${state}`,
  }),
  credentials_found: event({
    fields: { provider, accessKeyId: field<string>('access key that signs from now on') },
    meaning: 'The gateway signs with these credentials from now on.',
    level: 'info',
    text: ({ accessKeyId }) => `Signing with access key ${accessKeyId}.`,
    repeats: providerKey,
  }),
  payloads_returned: event({
    fields: { provider, payloads, reason },
    meaning:
      'Payloads were removed from the spool, because they are stored in the queue of parked entries of the ' +
      'engine (`PARKED`). They come back.',
    level: 'info',
    text: ({ payloads, reason }) => `Returned ${plural(payloads, 'payload')} (${reason}).`,
    repeats: ({ provider, reason }) => `${provider}|${reason}`,
  }),
  batch_split: event({
    fields: { provider, batchId, parts: field<readonly number[]>('payloads of each new batch'), why },
    meaning:
      'The gateway sends a batch in parts under new batchIds, to find the payload that the service ' +
      'refuses.',
    level: 'warn',
    text: ({ parts, why }) => `Split a batch into ${plural(parts.length, 'part')}: ${bounded(sentence(why))}`,
    repeats: ({ provider }) => provider,
  }),
  payload_dead_lettered: event({
    fields: { provider, batchId, payloadId, reason, detail, requestId },
    meaning: 'The service refused a payload finally. It is a dead letter now.',
    act: 'See DEAD_LETTERS.',
    level: 'error',
    text: ({ reason, detail }) => `A payload became a dead letter: ${bounded(reason, 64)}: ${quote(detail)}`,
    repeats: ({ provider, reason }) => `${provider}|${reason}`,
  }),
  answer_inconsistent: event({
    fields: {
      provider,
      batchId,
      requestId,
      deviations: field<readonly string[]>('what is wrong with the answer'),
    },
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
  }),
  sender_thread_lost: event({
    fields: {
      why,
      batches: count('batches that were being sent'),
      losses: count('losses in the last hour'),
    },
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
  }),
  lane_rotated: event({
    fields: { provider, lane, payloads, why },
    meaning: 'Pending payloads became backfill, so that new payloads are sent before them.',
    level: 'info',
    text: ({ payloads, why }) =>
      `Moved ${plural(payloads, 'waiting payload')} behind new ones, as backfill: ${sentence(why)}`,
    repeats: ({ provider }) => provider,
  }),
}

/** A deviation that is a whole sentence is about more than one answer, and says it best. */
function inconsistency({
  provider,
  deviations,
}: {
  provider: ProviderName
  deviations: readonly string[]
}): string {
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
function submissionFields({ outcome, ...event }: { outcome: Outcome; payloads: number }) {
  const fields: Record<string, unknown> = { ...event, outcome: outcome.kind }
  for (const name of ['status', 'requestId', 'message', 'reason'] as const)
    if (name in outcome) fields[name] = (outcome as Record<string, unknown>)[name]
  if (outcome.kind === 'answered') {
    fields['accepted'] = outcome.accepted === 'all' ? event.payloads : outcome.accepted.length
    fields['failed'] = outcome.failed.length
  }
  return fields
}
