// event-log-lines.ts: each event as a log line: how serious it is, a plain sentence, and the facts as fields.
//
// One switch over all events, so that a new event does not compile until somebody decided how it reads.
// `repeats` names what counts as the same thing happening again: such lines are limited (logging.ts). What loses
// data is never below `error`; what succeeds for each batch is `debug`.

import { assertNever } from '../../std/assert.ts'
import { formatDuration, plural } from '../../std/quantity.ts'
import { bounded, quote } from '../../std/quote.ts'
import type { GatewayEvent } from '../../domain/event.ts'
import { recordsOf } from '../conditions/condition-texts.ts'
import { batchLine, endpointLine } from './delivery-log-lines.ts'
import { ledgerLine } from './ledger-log-lines.ts'
import { letterLine } from './dead-letter-log-lines.ts'
import { faultLine, line, type Line } from './log-line.ts'
import { mappingLine } from './mapping-log-lines.ts'

export function lineOf(event: GatewayEvent): Line {
  switch (event.kind) {
    case 'spool_recovered':
    case 'spool_held':
    case 'spool_resumed':
    case 'store_lost':
    case 'store_reopened':
    case 'store_reopen_failed':
    case 'chunk_damaged':
    case 'spool_compacted':
    case 'conservation_broken':
    case 'record_damaged':
    case 'records_unbalanced':
      return spoolLine(event)
    case 'dead_letters_full':
    case 'dead_letters_resumed':
    case 'dead_letters_requeued':
    case 'dead_letters_remapped':
    case 'dead_letter_edited':
    case 'dead_letters_imported':
    case 'dead_letters_purged':
      return letterLine(event)
    case 'listener_opened':
    case 'listener_failed':
    case 'client_refused':
    case 'client_dropped':
    case 'messages_dropped':
    case 'message_unmappable':
    case 'message_quarantined':
      return ingestLine(event)
    case 'mapping_reloaded':
    case 'mapping_refused':
    case 'restart_needed':
    case 'model_unknown':
    case 'clock_suspect':
    case 'clock_trusted':
    case 'expressions_failed':
    case 'expressions_resumed':
    case 'quarantine_released':
    case 'quarantine_decided':
      return mappingLine(event)
    case 'batch_sealed':
    case 'submission_ended':
    case 'batch_settled':
    case 'batch_held':
    case 'batch_stuck':
    case 'batch_unstuck':
    case 'payload_dead_lettered':
    case 'answer_inconsistent':
    case 'wrapper_refused':
    case 'batch_split':
    case 'lane_rotated':
      return batchLine(event)
    case 'endpoint_available':
    case 'endpoint_unavailable':
    case 'endpoint_unauthorized':
    case 'credentials_failed':
    case 'credentials_found':
    case 'credentials_stale':
    case 'credentials_refreshed':
    case 'service_clock_off':
    case 'service_clock_right':
    case 'provider_unknown':
      return endpointLine(event)
    case 'ledger_opened':
    case 'ledger_failed':
    case 'ledger_set_aside':
    case 'ledger_receipts_damaged':
      return ledgerLine(event)
    case 'gateway_starting':
    case 'gateway_ready':
    case 'gateway_stopping':
    case 'gateway_stopped':
      return lifeLine(event)
    default:
      return assertNever(event)
  }
}

type Of<Prefix extends string> = Extract<GatewayEvent, { kind: `${Prefix}_${string}` }>
type SpoolEvent = Of<'spool'> | Of<'store'> | Of<'chunk'> | Of<'conservation'> | Of<'record'> | Of<'records'>
type IngestEvent = Of<'listener'> | Of<'client'> | Of<'messages'> | Of<'message'>

function spoolLine(event: SpoolEvent): Line {
  switch (event.kind) {
    case 'spool_recovered':
      return line(
        'info',
        event,
        `The spool is open: ${plural(event.payloads, 'payload')} in ${plural(event.lanes, 'lane')}, ${plural(event.batches, 'sealed batch', 'sealed batches')}.`,
      )
    case 'spool_held':
      return line(
        event.reason === 'store_lost' ? 'error' : 'warn',
        event,
        `The spool takes nothing in: ${bounded(event.detail)} Acks are held; devices keep their messages.`,
        `held|${event.reason}`,
      )
    case 'spool_resumed':
      return line(
        'info',
        event,
        `The spool takes messages in again after ${formatDuration(event.heldMs)}.`,
        'resumed',
      )
    case 'store_lost':
      return faultLine(
        'error',
        event.fault,
        `${event.fault.what} Nothing is acknowledged until it is open again.`,
      )
    case 'store_reopened':
      return line('info', event, `The store is open again after ${formatDuration(event.lostMs)}.`)
    case 'store_reopen_failed':
      return faultLine('error', event.fault, `Attempt ${event.attempt} to reopen the store failed.`, {
        attempt: event.attempt,
      })
    case 'chunk_damaged':
      return line(
        'error',
        event,
        `${event.payloads} payloads of lane ${event.lane} from number ${event.firstSeq} are damaged and set aside.`,
        `damaged|${event.lane}`,
      )
    case 'spool_compacted':
      return line('debug', event, `Lane ${event.lane} drained; its disk was given back.`)
    case 'conservation_broken':
      return line(
        'error',
        event,
        `Lane ${event.lane} does not add up: ${event.appended} appended, ${event.settled} settled, ${event.open} open.`,
        `conservation|${event.lane}`,
      )
    case 'record_damaged':
      return line(
        'error',
        { ...event, name: bounded(event.name, 100) },
        `${recordsOf(event)} cannot be read whole: ${bounded(event.what)}.`,
        `record|${event.table}`,
      )
    case 'records_unbalanced':
      return line(
        'error',
        { ...event, name: bounded(event.name, 100) },
        `${recordsOf(event)} do not add up: ${event.known} should be there and ${event.found} are.`,
        `records|${event.table}`,
      )
    default:
      return assertNever(event)
  }
}

function ingestLine(event: IngestEvent): Line {
  switch (event.kind) {
    case 'listener_opened':
      return line('info', event, `Listening for devices on ${event.url}.`)
    case 'listener_failed':
      return faultLine('error', event.fault, event.fault.what)
    case 'client_refused':
    case 'client_dropped': {
      const done = event.kind === 'client_refused' ? 'refused' : 'dropped'
      const who = event.clientId === null ? 'A client' : `Client ${quote(event.clientId, 64)}`
      const cleaned = { ...event, clientId: event.clientId === null ? null : bounded(event.clientId, 64) }
      // Who it is does not name the repeat: a scanner with random ids would get a line per connection.
      return line('warn', cleaned, `${who} was ${done}. ${bounded(event.detail)}`, `${done}|${event.reason}`)
    }
    case 'messages_dropped':
      return line(
        'error',
        event,
        `${event.count} QoS 0 messages were lost. ${bounded(event.detail)}`,
        `messages|${event.reason}`,
      )
    case 'message_unmappable':
      return line(
        'warn',
        { ...event, topic: bounded(event.topic), detail: bounded(event.detail) },
        `A message on ${quote(event.topic, 100)} became a dead letter: ${event.reason}.`,
        `unmappable|${event.source ?? ''}|${event.reason}`,
      )
    case 'message_quarantined':
      return line(
        'warn',
        { ...event, topic: bounded(event.topic), detail: bounded(event.detail) },
        `A message on ${quote(event.topic, 100)} is kept in quarantine: ${event.reason}.`,
        `quarantined|${event.source}|${event.reason}`,
      )
    default:
      return assertNever(event)
  }
}

function lifeLine(event: Of<'gateway'>): Line {
  switch (event.kind) {
    case 'gateway_starting':
      return line('info', event, `Telemetry gateway ${event.version} starts.`)
    case 'gateway_ready':
      return line('info', event, `Ready after ${formatDuration(event.tookMs)}.`)
    case 'gateway_stopping':
      return line('info', event, `Stopping (${event.reason}); at most ${formatDuration(event.deadlineMs)}.`)
    case 'gateway_stopped':
      return line(
        'info',
        event,
        `Stopped after ${formatDuration(event.tookMs)}; ${event.pending} payloads wait in the spool.`,
      )
    default:
      return assertNever(event)
  }
}
