// event.ts: what happened, as facts. The stages emit events; ops makes a log line, numbers and conditions of
// them (ops/events). No event is emitted per message: the owners count those.
//
// One line per event: its name and its fields. The type GatewayEvent and the documentation of the fields are
// derived from this table. Stages import the types only.

import type { EpochMs } from '../std/clock.ts'
import type { HeldReason } from './held.ts'
import type { BatchId, LaneId } from './ids.ts'
import type { FilledStore } from './kept-store.ts'
import {
  count,
  device,
  field,
  provider,
  requestId,
  source,
  why,
  type Field,
} from './event-fields/event-fields.ts'
import type { Outcome } from './outcome.ts'
import { clockEventFields } from './event-fields/clock-event.ts'
import { ingestEventFields, listenerEventFields } from './event-fields/ingest-event.ts'
import { alertEventFields, conditionEventFields, opsEventFields } from './event-fields/ops-event.ts'
import { spoolEventFields, type HoldReason } from './event-fields/spool-event.ts'

export type { HoldReason } from './event-fields/spool-event.ts'

/** Why a QoS 0 message could not be kept. */
export type DropReason = HoldReason | 'waiting_full' | `${FilledStore}_full`

const lane = field<LaneId>('number of the lane')
const batchId = field<BatchId>('id of the batch')
const payloadId = field<string>('id of the payload')
const payloads = count('payloads')
const messages = count('messages')
const devices = count('devices')
const deadLetters = count('dead letters')
const dead = count('those that became dead letters')
const bytes = field<number>('size in bytes')
const tookMs = field<number>('duration in ms')
const retryInMs = field<number>('time until the next try, in ms')
const reason = field<string>('stable code of the reason')
const detail = field<string>('the reason in words')
const topic = field<string>('topic of the message')
const clientId = field<string | null>('MQTT client id; null before CONNECT, and where it is not known')
const identity = field<string | null>('name that the client proved; null where it has proved none')
const userName = field<string | null>('MQTT user name; null where it gave none')
const address = field<string | null>('address of the client; null where it is not known')
const from = { clientId, userName, address }
const connectedMs = field<number>('how long it was connected, in ms')
const cause = field<string>('what caused the reload')

export const eventFields = {
  // spool
  ...spoolEventFields,

  dead_letters_requeued: { deadLetters, payloads },
  dead_letters_remapped: { deadLetters, payloads, refused: count('those that could not be mapped') },
  dead_letters_imported: { payloads, messages, duplicates: count('entries left out') },
  dead_letters_purged: {
    deadLetters,
    by: field<'operator' | 'age'>('command, or spool.dead_letters.retention'),
    reasons: field<string>('number by stage and reason'),
  },
  dead_letter_edited: {
    id: field<string>('id of the dead letter'),
    payloadId,
    previousPayloadId: field<string>('payloadId before the edit'),
  },

  // ingest
  config_warning: { what: field<string>('what the config allows'), advice: field<string>('what to do') },
  listener_opened: { url: field<string>('address of the listener') },
  listener_refused: {
    reason,
    detail,
    found: field<string | null>('of the last request for a WebSocket: its path, Origin or subprotocols'),
    count: count('connections since the last such event'),
    top: field<readonly string[]>('addresses or identities with the most of them, and their number'),
  },
  ...listenerEventFields,
  client_paused: {
    reason,
    detail,
    count: count('pauses since the last such event'),
    top: field<readonly string[]>('identities or client ids with the most of them, and their number'),
  },
  client_connected: { clientId, identity, address },
  client_disconnected: { reason, detail, clientId, identity, address, connectedMs },
  client_refused: { reason, detail, clientId, identity, address },
  client_dropped: { reason, detail, clientId, identity, address },
  auth_failures: {
    count: count('refused passwords, tokens and users since the last such event'),
    addresses: field<readonly string[]>('addresses with most, and how many since the first failure'),
    users: field<readonly string[]>('users with most; those that are not configured are not named'),
  },
  session_evicted: {
    clientId,
    owner: field<string | null>('identity or address that used it last; null where that is not known'),
    reason: field<'max_sessions' | 'max_unreleased_messages_total'>('limit that was reached'),
  },
  client_taken_over: { clientId, identity, address },
  client_id_shared: { clientId, identity, address, takeOvers: count('take-overs in the last minutes') },
  publish_refused: { reason, detail, clientId, identity, address, topic },
  messages_dropped: { reason: field<DropReason>(reason.meaning), detail, count: messages },
  message_unmappable: { source: field<string | null>(source.meaning), topic, reason, detail, ...from },
  message_quarantined: { source, device, topic, reason, detail, ...from },
  quarantine_released: { devices, messages, payloads, dead },
  quarantine_decided: {
    decision: field<'release' | 'restamp' | 'drop'>('what was decided'),
    device: field<string | null>('key of the device; null for several'),
    messages,
    payloads,
    dead,
  },
  clock_verdicts_corrected: {
    messages: count('messages that left the quarantine'),
    payloads,
    dead,
    keptAgain: count('messages that stay'),
  },

  // mapping
  mapping_reloaded: { cause, sources: count('sources'), tookMs },
  ...ingestEventFields,
  ...clockEventFields,
  // delivery
  batch_sealed: { provider, lane, batchId, payloads, bytes },
  submission_ended: {
    provider,
    lane,
    batchId,
    payloads,
    bytes,
    attempt: field<number>('number of the submission of this batch'),
    tookMs,
    outcome: field<Outcome>('result of the submission'),
  },
  batch_settled: {
    provider,
    lane,
    batchId,
    requestId,
    delivered: count('payloads accepted'),
    retried: count('payloads retried later'),
    dead,
  },
  batch_held: { provider, batchId, why, requestId, retryInMs },
  payloads_returned: { provider, payloads, reason },
  operator_action: {
    action: field<string>('subcommand of `batches`; `discard` for `drop --discard`'),
    by: field<string>('who, as the command reports it: OS user, and SUDO_USER'),
    selection: field<string>('batchIds or options that selected the batches'),
    batches: count('batches that were changed'),
    payloads,
    newBatches: count('new batches that replace them'),
    skipped: count('selected batches that stay as they are'),
  },
  payloads_discarded: { provider, batchId, payloads, by: field<string>('who discarded it') },
  held_batches_changed: {
    provider,
    reason: field<HeldReason>('why the batches are held'),
    batches: count('batches held for this reason now'),
    payloads,
  },
  endpoint_changed: {
    provider,
    state: field<'available' | 'unavailable' | 'unauthorized'>('what the endpoint is now'),
    why,
  },
  credentials_found: { provider, accessKeyId: field<string>('access key that signs from now on') },
  batch_split: { provider, batchId, parts: field<readonly number[]>('payloads of each new batch'), why },
  payload_dead_lettered: { provider, batchId, payloadId, reason, detail, requestId },
  answer_inconsistent: {
    provider,
    batchId,
    requestId,
    deviations: field<readonly string[]>('what is wrong with the answer'),
  },
  sender_thread_lost: {
    why,
    batches: count('batches that were being sent'),
    losses: count('losses in the last hour'),
  },
  body_changed: { batchId },
  lane_rotated: { provider, lane, payloads, why },

  ...conditionEventFields,
  ...opsEventFields,
  ...alertEventFields,

  // ledger
  ledger_opened: {
    records: count('settled payloads'),
    bytes,
    oldestAt: field<EpochMs | null>('time of the oldest record, Unix time in ms; null for none'),
    tookMs,
  },
  ledger_set_aside: { path: field<string>('where the old records are kept'), why },
  ledger_receipts_damaged: { receipts: count('receipts') },

  // life cycle
  gateway_starting: {
    version: field<string>('version of the gateway'),
    pid: field<number>('process id'),
    config: field<string>('path of the config file'),
  },
  gateway_ready: {
    tookMs,
    addresses: field<readonly string[]>('addresses of the listeners, of ops, and of the control socket'),
  },
  gateway_ended_unclean: {
    end: field<'unclean' | 'aborted'>(
      '`aborted`: by a signal of a fault or of the watchdog, or twice within ten minutes',
    ),
  },
  gateway_stopping: {
    reason: field<string>('signal or error that stops the gateway'),
    deadlineMs: field<number>('longest time that the stop takes, in ms'),
  },
  gateway_stop_overdue: { deadlineMs: field<number>('longest time that the stop takes, in ms') },
  gateway_stopped: {
    tookMs,
    pending: field<number | null>('payloads in the spool; null where it was not open'),
  },
} as const

export type EventName = keyof typeof eventFields

type ValueOf<AnyField> = AnyField extends Field<infer Value> ? Value : never

/** The event of a name: `kind` and its fields. */
export type EventOf<Name extends EventName> = {
  [Each in Name]: {
    [Key in 'kind' | keyof (typeof eventFields)[Each]]: Key extends keyof (typeof eventFields)[Each]
      ? ValueOf<(typeof eventFields)[Each][Key]>
      : Each
  }
}[Name]

export type GatewayEvent = EventOf<EventName>

export type Emit = (event: GatewayEvent) => void
