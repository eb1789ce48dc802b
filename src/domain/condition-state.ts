// condition-state.ts: what can be wrong for a while, as facts. A stage says on request which of these
// states hold; ops compares the answers, so that a condition is open exactly while its state holds
// (ops/conditions). A stage remembers of a state only what it needs to judge it, and not what it said.
//
// One entry per code of a condition: its facts. The texts of them are in ops/conditions.

import type { EpochMs } from '../std/clock.ts'
import type { HeldReason } from './held.ts'
import type { GatewayError } from '../std/gateway-error.ts'
import type { BatchId, LaneId, ProviderName } from './ids.ts'
import type { KeptStore } from './kept-store.ts'

/** Why nothing of a provider moves although its endpoint is available. */
export type StallReason =
  | 'rate_limit'
  | 'no_place'
  | 'preparing'
  | 'batches_full'
  | 'failing'
  | 'forbidden_trial'
  | 'acceptance'
  | 'dead_letters_full'
  | 'unknown'

/** The median gap, the pauses of the last days, the setting; `new`: too few messages to know. */
export type SilenceBasis = 'median' | 'days' | 'setting' | 'new'

/** What devices that fell silent together have in common: the address of their clients, a bridge, ... */
export type SilentPart = 'address' | 'bridge' | 'source' | 'provider' | 'all'

export type SilentDevice = { readonly device: string; readonly assetId: string; readonly lastAt: EpochMs }

/** What the server of a message source would lose, strand or delay. */
export type SourceRisk =
  | 'clean_session'
  | 'short_expiry'
  | 'qos_0'
  | 'expiry_reduced'
  | 'qos_0_granted'
  | 'filter_refused'
  | 'session_lost'
  | 'small_window'
  | 'short_connections'
  | 'sessions_left'
  | 'group_restarted'
  | 'oversized'
  | 'bad_topic'
  | 'queue_missing'
  | 'queue_differs'
  | 'exchange_missing'
  | 'not_declared'
  | 'engine_lost_messages'
  | 'stream_settings'
  | 'durable_missing'
  | 'durable_differs'
  | 'durable_created'
  | 'custody_deleted'
  | 'mapping_differs'
  | 'mapping_behind'
  | 'partition_mixed'
  | 'member_twice'
  | 'partitions_differ'
  | 'partition_left'
  | 'not_ready'

/** `connections`: how many it has. */
export type SourceLinks = { messageSource: string; clientIds: readonly string[]; connections: number }

type Failing = {
  provider: ProviderName
  /** Failed submissions in a row. */
  failures: number
  why: string
  requestId: string | null
  /** What to do; null where the cause does not tell. */
  act: string | null
}

type Stalled = {
  provider: ProviderName
  reason: StallReason
  /** Since when nothing moves, and when the next try is due; null where that is not known. */
  sinceAt: EpochMs
  untilAt: EpochMs | null
  /** Last answer of the service that was a failure; null without one. */
  lastAnswer: string | null
}

type HeldBatches = {
  provider: ProviderName
  reason: HeldReason
  batches: number
  payloads: number
  /** Since when the oldest one is held. */
  oldestAt: EpochMs
  /** Of the one that was held last. */
  batchId: BatchId
  why: string
  requestId: string | null
}

export type StateFacts = {
  // delivery
  ENDPOINT_UNAVAILABLE: Failing
  ENDPOINT_UNAUTHORIZED: {
    provider: ProviderName
    status: number
    requestId: string | null
    /** Answer of the service. */
    message: string
    /** Clock of the service minus clock of this machine; null while unknown. */
    clockOffsetMs: number | null
    /** Access key that signed; null where it is not known. */
    accessKeyId: string | null
    /** Between two probes. */
    probeEveryMs: number
  }
  WRAPPER_REFUSED: { provider: ProviderName; why: string; requestId: string | null; probeEveryMs: number }
  CREDENTIALS_MISSING: { provider: ProviderName; why: string }
  /** `expiresAt`: of the old credentials; null for never. */
  CREDENTIALS_STALE: { provider: ProviderName; why: string; expiresAt: EpochMs | null }
  /** Clock of the service minus clock of this machine. */
  CLOCK_OFF: { provider: ProviderName; offsetMs: number }
  PROVIDER_UNKNOWN: { provider: ProviderName; payloads: number }
  BATCHES_HELD: HeldBatches
  BATCH_STUCK: HeldBatches
  NOTHING_ACCEPTED: { provider: ProviderName; batches: number; why: string; requestId: string | null }
  /** `oldestAt`: since when the first of the requests waits. */
  SERVICE_HANGING: { provider: ProviderName; requests: number; oldestAt: EpochMs; url: string }
  /** Median of the last answers, with the upload. `timeoutMs`: delivery.timeout. */
  SERVICE_SLOW: { provider: ProviderName; medianMs: number; answers: number; timeoutMs: number }
  REQUESTS_FAILING: { provider: ProviderName; failed: number; requests: number }
  PAYLOADS_FAILING: { provider: ProviderName; failed: number; payloads: number }
  /** Payloads that wait, without retries, and how many more than a minute ago. */
  BACKLOG_GROWS: {
    provider: ProviderName
    payloads: number
    grownBy: number
    oldestAt: EpochMs | null
    /** Delivered payloads per second within the last minute. */
    ratePerS: number
  }
  DELIVERY_STALLED: Stalled
  RATE_LIMITED: Stalled
  /** The wait that the service asked for, that of the gateway, and its end. */
  RETRY_AFTER: {
    provider: ProviderName
    askedMs: number
    waitMs: number
    untilAt: EpochMs
    requestId: string | null
  }

  // spool
  SPOOL_FULL: { detail: string }
  DISK_LOW: { detail: string }
  STATE_FULL: { detail: string }
  QUARANTINE_FULL: { store: KeptStore; bytesMax: number }
  DEAD_LETTERS_FULL: { store: KeptStore; bytesMax: number }
  /** `attempt`: the last one to open the store again; 0 before the first. */
  STORE_LOST: { fault: GatewayError; attempt: number }
  SPOOL_WRITE_HANGING: { sinceAt: EpochMs; ageMs: number }
  /** The duration that one write in 100 reaches, and the writes of the last 30 s. */
  SPOOL_WRITE_SLOW: { p99Ms: number; writes: number }
  MARK_UNWRITABLE: { why: string }
  SPOOL_NEW: { path: string; at: EpochMs }
  LANE_UNKNOWN: { lane: LaneId; payloads: number }
  SPOOL_DAMAGED: { fault: GatewayError }
  SPOOL_UNUSABLE: { fault: GatewayError }
  /** `path`: where the first of them is kept. */
  SPOOL_SET_ASIDE: { path: string; spoolPath: string; stores: number }

  // devices
  /** `sinceAt`: when the last message came; null where none ever came. `quiet`: a quiet hour or day. */
  DEVICES_SILENT: {
    sinceAt: EpochMs | null
    /** In this run. */
    silentMs: number
    limitMs: number
    basis: SilenceBasis
    quiet: boolean
  }
  /** The longest silence first, at most 200; `of`: devices that are known. */
  DEVICE_SILENT: { devices: readonly SilentDevice[]; total: number; of: number }
  FLEET_PART_SILENT: {
    part: SilentPart
    /** Empty where they have nothing in common. */
    name: string
    devices: number
    /** Devices of the part that sent in the hour before, and all that are known. */
    of: number
    total: number
    /** When the last of them sent, and the time between the last messages of the first and the last one. */
    lastAt: EpochMs
    withinMs: number
    examples: string
  }
  /** `reasons`: the most frequent ones, with their numbers. */
  NOTHING_MAPPED: { messages: number; duplicates: number; spanMs: number; reasons: string }
  /** `isMany`: they are a tenth of those that send, or more. */
  DEVICES_REPEATING: { devices: number; sending: number; example: string; isMany: boolean }
  DEVICES_NOT_MAPPED: {
    devices: number
    sending: number
    example: string
    reasons: string
    isMany: boolean
    /** Those that were mapped before, or are listed, and whose messages are kept. */
    named: readonly string[]
  }
  MODEL_UNKNOWN: { source: string; devices: number; what: string }
  /** Of `device`: the field, why, and of how many of its records. `devices`: all that have such a field. */
  VALUES_WITHHELD: {
    source: string
    devices: number
    device: string
    field: string
    reason: string
    withheld: number
    records: number
  }
  POSITIONS_SWAPPED: { source: string; device: string; devices: number }
  /** Clock of this machine minus that of the devices. */
  CLOCK_SUSPECT: { skewMs: number; devices: number; judged: number }
  FIELD_LOST: {
    source: string
    /** Position, a signal, or another field of the mapping. */
    field: string
    /** When the mapping was changed, or the first device without the field was noticed. */
    since: EpochMs
    /** Devices that had the field, and sent a record without it; of all that had it. */
    devices: number
    of: number
    /** In their messages, probably meant; null where there is none. */
    key: string | null
    /** The mapping reads it, and its value is of another kind than before. */
    isKeyRead: boolean
    /** The mapping of the source was changed before. */
    isByMapping: boolean
    /** Messages without the field are kept. */
    isKept: boolean
  }
  /** Arrival minus device time: whole hours, or hours and a half. */
  DEVICES_HOURS_OFF: { offsetMs: number; devices: number; example: string }

  // listeners
  /** `isShut`: no message can come, by another listener or a bridge neither. */
  LISTENER_FAILED: { listener: string; fault: GatewayError; isShut: boolean }
  HTTP_LISTENER_FAILED: { listener: string; fault: GatewayError }
  /** Failures since the last CONNECT, the last one in words, and the addresses with the most of them. */
  TLS_HANDSHAKES_FAIL: { listener: string; detail: string; count: number; top: readonly string[] }

  // message sources
  /** `clientIds`: its connections that are not open. Of the first one: why, in words, and what to do. */
  MESSAGE_SOURCE_DISCONNECTED: SourceLinks & { detail: string; act: string }
  /** `about`: each thing that has the risk. Of the first one: the connection that saw it, and it in words. */
  MESSAGE_SOURCE_AT_RISK: {
    messageSource: string
    risk: SourceRisk
    about: readonly string[]
    clientId: string
    detail: string
    /** Null where the risk says it. */
    act: string | null
  }
  /** `clientIds`: its connections that take nothing. */
  MESSAGE_SOURCE_PAUSED: SourceLinks
  /** `reason`: as RabbitMQ says it. */
  ENGINE_BLOCKED: { messageSource: string; reason: string }
  /** `clientId`: of the connection; null for all of the source. `neverHeard`: none came since the start. */
  MESSAGE_SOURCE_SILENT: {
    messageSource: string
    clientId: string | null
    quietMs: number
    neverHeard: boolean
  }

  // custody `delivered`
  /** Messages that are not acknowledged to the engine, the age of the oldest, and what that waits for. */
  CUSTODY_WAITING: { messages: number; waitedMs: number; waitsFor: string }
  /** Time in which the ingestion API accepted nothing. */
  CUSTODY_OUTAGE: { waitedMs: number }
  /** The queue that did not confirm. */
  CUSTODY_STORE_FAILED: { messageSource: string; queue: 'parked' | 'dead'; why: string; retryInMs: number }

  // the config
  MAPPING_STALE: { fault: GatewayError }
  ACCESS_STALE: { fault: GatewayError }
  /** Changed options that are not in force. */
  RESTART_NEEDED: { options: readonly string[] }

  // the gateway
  CLOCK_UNKNOWN: object
  LEDGER_UNAVAILABLE: { fault: GatewayError }
  /** `isAtSpool`: its place is the directory of the spool, or the one around it. */
  CONTROL_SOCKET_FAILED: { fault: GatewayError; isAtSpool: boolean }
  /** `path`: of its directory. */
  AUDIT_LOG_FAILED: { path: string; why: string }
  /** `certificate`: what it is for, and the address or name of that. `endsSoon`: it has not ended yet. */
  CERTIFICATE_EXPIRES: { certificate: string; detail: string; endsSoon: boolean }
  /** Those whose certificate ends first; all of them are `total`, of which `expired` have ended. */
  CLIENT_CERTIFICATES_EXPIRE: {
    clients: readonly { clientId: string; endsAt: EpochMs }[]
    total: number
    expired: number
  }
  /** `failures`: tries in a row; 0 where a mail relay took the alert and refused some recipients. */
  ALERTS_FAILING: { receiver: string; failures: number; why: string; act: string }
}

export type StateCode = keyof StateFacts

export type State<Code extends StateCode = StateCode> = {
  [Each in Code]: { code: Each } & StateFacts[Each]
}[Code]

/** A stage, or a part of one. */
export type StateSource = { states(): Iterable<State> }
