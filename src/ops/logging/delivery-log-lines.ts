// delivery-log-lines.ts: the log lines of delivery: batches, submissions and endpoints. See event-log-lines.ts.

import { assertNever } from '../../std/assert.ts'
import { formatDuration } from '../../std/quantity.ts'
import { bounded, quote } from '../../std/quote.ts'
import type { GatewayEvent } from '../../domain/event.ts'
import type { Outcome } from '../../domain/outcome.ts'
import { offsetText } from '../conditions/condition-texts.ts'
import { line, type Line } from './log-line.ts'

type Of<Prefix extends string> = Extract<GatewayEvent, { kind: `${Prefix}_${string}` }>
type BatchEvent = Of<'batch'> | Of<'submission'> | Of<'payload'> | Of<'answer'> | Of<'wrapper'> | Of<'lane'>
type EndpointEvent = Of<'endpoint'> | Of<'credentials'> | Of<'service'> | Of<'provider'>

export function batchLine(event: BatchEvent): Line {
  switch (event.kind) {
    case 'batch_sealed':
      return line('debug', event, `Batch of ${event.payloads} payloads sealed.`)
    case 'submission_ended':
      return submissionLine(event)
    case 'batch_settled': {
      const { delivered, retried, dead } = event
      if (retried + dead === 0) return line('debug', event, `Batch delivered: ${delivered} payloads.`)
      const text = `Batch settled: ${delivered} payloads delivered, ${retried} to be retried, ${dead} dead.`
      return line('info', event, text, `settled|${event.provider}`)
    }
    case 'batch_held':
      return line(
        'warn',
        { ...event, why: bounded(event.why) },
        `A batch is held and goes again in ${formatDuration(event.retryInMs)}: ${bounded(event.why)}`,
        `held|${event.provider}`,
      )
    case 'batch_stuck':
      return line(
        'warn',
        event,
        `A batch failed ${event.failures} times while others succeeded; it steps aside.`,
        `stuck|${event.batchId}`,
      )
    case 'batch_unstuck':
      return line('info', event, 'A batch that was stuck got through.')
    case 'payload_dead_lettered':
      return line(
        'error',
        { ...event, detail: bounded(event.detail), reason: bounded(event.reason, 64) },
        `A payload became a dead letter: ${bounded(event.reason, 64)}: ${quote(event.detail)}`,
        `died|${event.provider}|${event.reason}`,
      )
    case 'answer_inconsistent':
      return line(
        'warn',
        { ...event, deviations: event.deviations.slice(0, 10).map((deviation) => bounded(deviation)) },
        'The answer to a batch contradicts itself or the specification; its lists are believed, `failed` first.',
        `odd|${event.provider}`,
      )
    case 'wrapper_refused':
      return line(
        'error',
        { ...event, why: bounded(event.why) },
        `Ingestion API refuses whatever is sent: ${bounded(event.why)} Sending pauses, nothing is lost.`,
        `wrapper|${event.provider}`,
      )
    case 'batch_split':
      return line(
        'warn',
        { ...event, why: bounded(event.why) },
        `A batch goes on in ${event.parts.length} parts: ${bounded(event.why)}`,
        `split|${event.provider}`,
      )
    case 'lane_rotated':
      return line(
        'info',
        event,
        `${event.payloads} payloads that wait became backfill, so that what is fresh goes first: ${event.why}`,
        `rotated|${event.provider}`,
      )
    default:
      return assertNever(event)
  }
}

function submissionLine(event: Extract<GatewayEvent, { kind: 'submission_ended' }>): Line {
  const { outcome, provider, lane, batchId, payloads, bytes, attempt, tookMs } = event
  const facts = outcomeFields(outcome, payloads)
  const fields = { provider, lane, batchId, payloads, bytes, attempt, tookMs, ...facts }
  const fine = outcome.kind === 'answered' || outcome.kind === 'accepted_single' || outcome.kind === 'aborted'
  if (fine) {
    const text = `Submission of ${payloads} payloads ended: ${outcome.kind}.`
    return { level: 'debug', text, fields, repeats: null }
  }
  const status = 'status' in outcome ? ` ${outcome.status}` : ''
  return {
    level: 'info',
    text: `Submission of ${payloads} payloads failed: ${outcome.kind}${status}: ${quote(outcome.message)}`,
    fields,
    repeats: `submission|${provider}|${outcome.kind}${status}`,
  }
}

/** The facts of an outcome without its lists: those are as long as the batch. */
function outcomeFields(outcome: Outcome, payloads: number): Record<string, unknown> {
  const fields: Record<string, unknown> = { outcome: outcome.kind }
  if ('status' in outcome) fields['status'] = outcome.status
  if ('requestId' in outcome) fields['requestId'] = outcome.requestId
  if ('message' in outcome) fields['message'] = bounded(outcome.message)
  if ('reason' in outcome) fields['reason'] = outcome.reason
  if (outcome.kind === 'answered') {
    fields['accepted'] = outcome.accepted === 'all' ? payloads : outcome.accepted.length
    fields['failed'] = outcome.failed.length
  }
  return fields
}

export function endpointLine(event: EndpointEvent): Line {
  const repeats = `${event.kind}|${event.provider}`
  switch (event.kind) {
    case 'endpoint_available': {
      const text = `Ingestion API takes batches again after ${formatDuration(event.unavailableMs)}.`
      return line('info', event, text, repeats)
    }
    case 'endpoint_unavailable':
      return line(
        'warn',
        { ...event, why: bounded(event.why) },
        `Ingestion API is unavailable: ${bounded(event.why)} Sending pauses, the spool keeps filling.`,
        repeats,
      )
    case 'endpoint_unauthorized':
      return line(
        'error',
        { ...event, message: bounded(event.message) },
        `Ingestion API answered ${event.status}: signature, account or clock is wrong. Sending pauses, nothing is lost.`,
        repeats,
      )
    case 'credentials_failed':
      return line(
        'error',
        { ...event, why: bounded(event.why) },
        `No credentials: ${bounded(event.why)}`,
        repeats,
      )
    case 'credentials_found':
      return line('info', event, `Signing with access key ${event.accessKeyId}.`, repeats)
    case 'credentials_stale':
      return line(
        'warn',
        { ...event, why: bounded(event.why) },
        `Credentials cannot be refreshed, the old ones go on to serve: ${bounded(event.why)}`,
        repeats,
      )
    case 'credentials_refreshed':
      return line('info', event, 'Credentials can be refreshed again.', repeats)
    case 'service_clock_off':
      return line(
        'warn',
        event,
        `Our clock is ${offsetText(event.offsetMs)} the service; signatures are made with its time.`,
        repeats,
      )
    case 'service_clock_right':
      return line('info', event, 'Our clock agrees with the service again.', repeats)
    case 'provider_unknown': {
      const { provider, payloads } = event
      if (payloads === 0)
        return line('info', event, `Nothing waits for the unknown provider ${provider} any more.`)
      const text = `${payloads} payloads wait for provider ${provider}, which the config does not have. They are kept.`
      return line('error', event, text)
    }
    default:
      return assertNever(event)
  }
}
