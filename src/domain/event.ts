// event.ts: what happened, as facts. Parts of the house emit events; ops turns them into log lines,
// counters and conditions. No event is emitted per message: those are counted by their owners.

import type { EpochMs } from '../std/clock.ts'
import type { GatewayError } from '../std/gateway-error.ts'
import type { BatchId, LaneId, ProviderName } from './ids.ts'
import type { Outcome } from './outcome.ts'

export type Emit = (event: GatewayEvent) => void

/** Why the spool takes nothing in for now. `lost` means that a write failed and the store is being reopened. */
export type HoldReason =
  'spool_full' | 'disk_low' | 'quarantine_full' | 'deferred_full' | 'state_full' | 'store_lost'

/** Why a QoS 0 message could not be kept. */
export type DropReason = HoldReason | 'waiting_full' | 'dead_letters_full'

export type GatewayEvent =
  // spool
  | {
      kind: 'spool_recovered'
      lanes: number
      batches: number
      payloads: number
      bytes: number
      windowIds: number
      tookMs: number
    }
  | { kind: 'spool_held'; reason: HoldReason; detail: string }
  | { kind: 'spool_resumed'; heldMs: number }
  /** What would become one more waits, and keeps its acknowledgement waiting. */
  | { kind: 'dead_letters_full'; bytesMax: number }
  | { kind: 'dead_letters_resumed' }
  /** Dead letters went back on the road, because somebody asked for it. */
  | { kind: 'dead_letters_requeued'; deadLetters: number; payloads: number }
  | { kind: 'dead_letter_edited'; id: string; payloadId: string; previousPayloadId: string }
  /** What a file had was taken in: by payloads, and messages that were mapped. */
  | { kind: 'dead_letters_imported'; payloads: number; messages: number; duplicates: number }
  /** Data is lost now: by somebody's hand, or since they were older than dead_letters.retention. */
  | { kind: 'dead_letters_purged'; deadLetters: number; by: 'operator' | 'age'; reasons: string }
  /** What was received and what became of it differ and stay different, over all messages or payloads. */
  | { kind: 'store_lost'; fault: GatewayError }
  | { kind: 'store_reopened'; lostMs: number }
  | { kind: 'store_reopen_failed'; fault: GatewayError; attempt: number }
  | { kind: 'chunk_damaged'; lane: LaneId; firstSeq: number; payloads: number; what: string }
  | { kind: 'spool_compacted'; lane: LaneId; tookMs: number }
  | { kind: 'conservation_broken'; lane: LaneId; appended: number; settled: number; open: number }
  /** A record of mapping state or a kept message cannot be read; it is kept aside or where it is, never deleted. */
  | { kind: 'record_damaged'; table: 'state' | 'kept'; name: string; what: string }
  | { kind: 'records_unbalanced'; table: 'state' | 'kept'; name: string; known: number; found: number }
  // ingest
  | { kind: 'listener_opened'; url: string }
  | { kind: 'listener_failed'; fault: GatewayError }
  /** `reason` is a stable code and a label of the metrics, `detail` a sentence. */
  | {
      kind: 'client_refused' | 'client_dropped'
      reason: string
      detail: string
      clientId: string | null
      address: string | null
    }
  | { kind: 'messages_dropped'; reason: DropReason; detail: string; count: number }
  | { kind: 'message_unmappable'; source: string | null; topic: string; reason: string; detail: string }
  | {
      kind: 'message_quarantined'
      source: string
      device: string
      topic: string
      reason: string
      detail: string
    }
  | { kind: 'quarantine_released'; devices: number; messages: number; payloads: number; dead: number }
  /** What a person decided about messages in quarantine; `device` is null where it was not about one. */
  | {
      kind: 'quarantine_decided'
      decision: 'release' | 'restamp' | 'drop'
      device: string | null
      messages: number
      payloads: number
      /** Of the messages: are dead letters now. */
      dead: number
    }
  /** Dead letters were mapped once more, because somebody asked for it. */
  | { kind: 'dead_letters_remapped'; deadLetters: number; payloads: number; refused: number }
  /** The thread of the JSONata expressions cannot be started; their messages wait on the disk. */
  | { kind: 'expressions_failed'; why: string }
  | { kind: 'expressions_resumed' }
  // mapping
  | { kind: 'mapping_reloaded'; cause: string; sources: number; tookMs: number }
  /** The mapping of before goes on. `why` has a line for each problem, with its place. */
  | { kind: 'mapping_refused'; cause: string; fault: GatewayError }
  /** Sections of the config that changed and are not what runs; none: all is as it was started. */
  | { kind: 'restart_needed'; sections: readonly string[] }
  /** Devices of no known family, so that fields of theirs are left out; 0: none any more. */
  | { kind: 'model_unknown'; source: string; devices: number; what: string }
  /** Most devices are off by as much, so it is rather our clock that is wrong. */
  | { kind: 'clock_suspect'; skewMs: number; devices: number; judged: number }
  | { kind: 'clock_trusted' }
  // delivery
  | {
      kind: 'batch_sealed'
      provider: ProviderName
      lane: LaneId
      batchId: BatchId
      payloads: number
      bytes: number
    }
  | {
      kind: 'submission_ended'
      provider: ProviderName
      lane: LaneId
      batchId: BatchId
      payloads: number
      bytes: number
      attempt: number
      tookMs: number
      outcome: Outcome
    }
  | {
      kind: 'batch_settled'
      provider: ProviderName
      lane: LaneId
      batchId: BatchId
      requestId: string | null
      delivered: number
      retried: number
      dead: number
    }
  | {
      kind: 'batch_held'
      provider: ProviderName
      batchId: BatchId
      why: string
      requestId: string | null
      retryInMs: number
    }
  | { kind: 'batch_stuck'; provider: ProviderName; batchId: BatchId; failures: number }
  | { kind: 'batch_unstuck'; provider: ProviderName; batchId: BatchId }
  | {
      kind: 'payload_dead_lettered'
      provider: ProviderName
      batchId: BatchId
      payloadId: string
      reason: string
      detail: string
      requestId: string | null
    }
  | {
      kind: 'answer_inconsistent'
      provider: ProviderName
      batchId: BatchId
      requestId: string | null
      deviations: readonly string[]
    }
  /** A batch goes on as several under new batchIds, to find what the service refuses in it. */
  | { kind: 'batch_split'; provider: ProviderName; batchId: BatchId; parts: readonly number[]; why: string }
  /** The service refuses every batch as such: sending pauses, nothing is buried. */
  | {
      kind: 'wrapper_refused'
      provider: ProviderName
      why: string
      requestId: string | null
      retryInMs: number
    }
  /** What waits goes behind what is fresh. */
  | { kind: 'lane_rotated'; provider: ProviderName; lane: LaneId; payloads: number; why: string }
  | { kind: 'endpoint_available'; provider: ProviderName; unavailableMs: number }
  | {
      kind: 'endpoint_unavailable'
      provider: ProviderName
      failures: number
      why: string
      requestId: string | null
      retryInMs: number
      /** What a person can do, where the reason tells. */
      act?: string
    }
  | {
      kind: 'endpoint_unauthorized'
      provider: ProviderName
      status: number
      requestId: string | null
      message: string
      clockOffsetMs: number | null
      accessKeyId: string | null
      retryInMs: number
    }
  | { kind: 'credentials_failed'; provider: ProviderName; why: string }
  | { kind: 'credentials_found'; provider: ProviderName; accessKeyId: string }
  /** They cannot be refreshed; the old ones serve until `expiresAt`. */
  | { kind: 'credentials_stale'; provider: ProviderName; why: string; expiresAt: EpochMs | null }
  | { kind: 'credentials_refreshed'; provider: ProviderName }
  /** Our clock is off by a minute or more; what is signed is corrected by it. */
  | { kind: 'service_clock_off'; provider: ProviderName; offsetMs: number }
  | { kind: 'service_clock_right'; provider: ProviderName; offsetMs: number }
  /** Payloads wait for a provider that the config does not have; 0: none any more. */
  | { kind: 'provider_unknown'; provider: ProviderName; payloads: number }
  // ledger; nothing depends on it
  | { kind: 'ledger_opened'; records: number; bytes: number; oldestAt: EpochMs | null; tookMs: number }
  | { kind: 'ledger_failed'; fault: GatewayError; retryInMs: number }
  | { kind: 'ledger_set_aside'; path: string; why: string }
  | { kind: 'ledger_receipts_damaged'; receipts: number }
  // life cycle
  | { kind: 'gateway_starting'; version: string; pid: number; config: string }
  | { kind: 'gateway_ready'; tookMs: number; addresses: readonly string[] }
  | { kind: 'gateway_stopping'; reason: string; deadlineMs: number }
  | { kind: 'gateway_stopped'; tookMs: number; pending: number }
