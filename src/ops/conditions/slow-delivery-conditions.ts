// slow-delivery-conditions.ts: the conditions of a delivery that stands still, or works and not well; and
// what a person can do for each reason.

import { zonedTime } from '../../std/clock.ts'
import { formatDuration, plural } from '../../std/quantity.ts'
import { bounded } from '../../std/quote.ts'
import type { StallReason } from '../../domain/condition-state.ts'
import type { StateFacts } from '../../domain/condition-state.ts'
import { forProvider, sentence } from '../../domain/events/event-text.ts'
import type { Cause } from '../../domain/cause.ts'
import type { ConditionTable } from './types.ts'

type SlowCode =
  | 'NOTHING_ACCEPTED'
  | 'SERVICE_HANGING'
  | 'SERVICE_SLOW'
  | 'REQUESTS_FAILING'
  | 'PAYLOADS_FAILING'
  | 'BACKLOG_GROWS'
  | 'DELIVERY_STALLED'
  | 'RATE_LIMITED'
  | 'RETRY_AFTER'

export const slowDeliveryConditions: ConditionTable<SlowCode> = {
  NOTHING_ACCEPTED: {
    severity: 'error',
    stops: 'delivery',
    meaning: 'The service answers 200 and accepts nothing: it lists every payload as failed.',
    act:
      'Correct what the service names: the mapping, the device table, or the registration of the assets. ' +
      'Payloads are retried by delivery.errors, then they become dead letters, which can be requeued.',
    cause: ({ provider, batches, why, requestId }) => ({
      key: provider,
      what:
        `The service accepted none of the last ${plural(batches, 'batch', 'batches')}` +
        `${forProvider(provider)}: ${bounded(sentence(why))}`,
      why: `It answered 200 and listed every payload as failed. Last requestId: ${requestId ?? 'none'}.`,
      present: batches,
    }),
  },
  SERVICE_HANGING: {
    severity: 'warning',
    delays: true,
    meaning: 'The service accepts requests and does not answer, or answers much later than before.',
    act:
      'Ask the support of the service. A request without an answer ends after delivery.timeout, and the ' +
      'same bytes are sent again.',
    cause: ({ provider, requests, oldestAt, url }) => ({
      key: provider,
      what:
        `The service does not answer${forProvider(provider)}: ${plural(requests, 'request')} to ` +
        `${bounded(url)} without an answer, the oldest since ${zonedTime(oldestAt)}.`,
      why: 'It takes more than twice as long as the last answers, or more than 30 s.',
      present: requests,
    }),
  },
  SERVICE_SLOW: {
    severity: 'warning',
    delays: true,
    meaning:
      'The service answers, and takes long for it: half of delivery.timeout, or 10 s. A slow line looks the same.',
    act:
      'Check the line, then ask the support of the service. While payloads wait, raise delivery.max_in_flight or delivery.batch.max_payloads, ' +
      'so that more is sent meanwhile.',
    cause: ({ provider, medianMs, answers, timeoutMs }) => ({
      key: provider,
      what:
        `The service answers late${forProvider(provider)}: half of the last ${answers} answers took ` +
        `${formatDuration(medianMs)} or more.`,
      why:
        `That is half of delivery.timeout (${formatDuration(timeoutMs)}) or 10 s, or more. The service is slow, ` +
        'or the line to it.',
      present: answers,
    }),
  },
  REQUESTS_FAILING: {
    severity: 'warning',
    delays: true,
    meaning: 'Three tenths of the requests to the service fail, or more, and others succeed.',
    act:
      'Nothing is lost: each batch is sent again. If this continues, check the network, and give the requestIds of ' +
      '`batches list` to the support of the service.',
    cause: ({ provider, failed, requests }) => ({
      key: provider,
      what: `${failed} of the last ${requests} requests failed${forProvider(provider)}. Others succeed.`,
      why: 'The service or the network is unreliable. `batches list` shows the last answers.',
      present: failed,
    }),
  },
  PAYLOADS_FAILING: {
    severity: 'warning',
    meaning: 'The service accepts some payloads, and lists a quarter or more as failed.',
    act:
      'Run `ledger --outcome retried` and `dead-letters list` to see which devices and why. Correct the mapping, ' +
      'the device table, or the registration of the assets.',
    cause: ({ provider, failed, payloads }) => ({
      key: provider,
      what:
        `The service did not accept ${failed} of the last ${payloads} payloads${forProvider(provider)} ` +
        `(${Math.round((100 * failed) / Math.max(1, payloads))} %).`,
      why: 'It listed them as failed. Each is tried again by delivery.errors, and then becomes a dead letter.',
      present: failed,
    }),
  },
  BACKLOG_GROWS: {
    severity: 'warning',
    delays: true,
    meaning:
      'More payloads come in than are delivered. Payloads wait for two minutes or more, those of backfill for 15.',
    act:
      'See whether the service answers slowly (SERVICE_SLOW, gateway_submission_duration_seconds) and how fast the ' +
      'line is. Raise delivery.max_in_flight or delivery.batch.max_payloads, and raise or remove delivery.limits.',
    cause: ({ provider, payloads, grownBy, oldestAt, ratePerS }) => ({
      key: provider,
      what:
        `The backlog grows${forProvider(provider)}: ${plural(payloads, 'payload')} ${payloads === 1 ? 'waits' : 'wait'}` +
        `${oldestAt === null ? '' : `, the oldest since ${zonedTime(oldestAt)}`}.`,
      why:
        `${ratePerS.toFixed(1)} payloads a second are delivered, and more come in: ` +
        `${grownBy} more wait than a minute ago.`,
      present: payloads,
    }),
  },
  DELIVERY_STALLED: {
    severity: 'error',
    stops: 'delivery',
    meaning: 'Batches are due, the endpoint is available, and nothing is delivered. Data is kept.',
    act: 'The gateway tries again automatically. `probe` tries again now.',
    cause: stallOf,
  },
  RATE_LIMITED: {
    severity: 'info',
    delays: true,
    meaning: 'Batches wait because of delivery.limits.',
    act: 'Nothing if the limit is intended. If not, raise or remove delivery.limits.',
    cause: stallOf,
  },
  RETRY_AFTER: {
    severity: 'warning',
    delays: true,
    meaning:
      'The service asked for a wait before the next request (Retry-After). The gateway waits at most 10 min.',
    act: 'Wait. `probe` tries again now. If the wait is much too long, ask the support of the service.',
    cause: ({ provider, askedMs, waitMs, untilAt, requestId }) => ({
      key: provider,
      what:
        `The service asked for a wait of ${formatDuration(askedMs)} (Retry-After)${forProvider(provider)}. ` +
        `The gateway waits ${formatDuration(waitMs)}, until ${zonedTime(untilAt)}.`,
      why: `${askedMs > waitMs ? 'The gateway waits at most 10 min. ' : ''}requestId ${requestId ?? 'none'}.`,
    }),
  },
}

const reasons: Record<StallReason, { why: string; act?: string }> = {
  rate_limit: { why: 'The limit in delivery.limits allows no request before then.' },
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

function stallOf(stall: StateFacts['DELIVERY_STALLED']): Cause {
  const { provider, reason, sinceAt, untilAt, lastAnswer } = stall
  const { why, act } = reasons[reason]
  const next = untilAt === null ? '' : ` Next try at ${zonedTime(untilAt)}.`
  const answer = lastAnswer === null ? '' : ` Last failure: ${bounded(sentence(lastAnswer))}`
  return {
    key: provider,
    what: `Nothing is delivered${forProvider(provider)} since ${zonedTime(sinceAt)}. Data is kept.${next}`,
    why: `${why}${answer}`,
    ...(act === undefined ? {} : { act }),
  }
}
