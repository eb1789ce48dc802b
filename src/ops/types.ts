// types.ts: what ops sees of the stages: their views and counters, and the commands that HTTP may give. Types
// only, so that ops works while any stage is missing and loads none of their code.

import type { DeviceState } from '../domain/device-state.ts'
import type { IsoTimes } from '../std/iso-times.ts'
import type { EpochMs } from '../std/clock.ts'
import type { AlertsStage } from '../alerts/types.ts'
import type { GatewayError } from '../std/gateway-error.ts'
import type { RecordCounters, RecordsStore } from '../device-records/device-records.ts'
import type { Delivery } from '../delivery/delivery.ts'
import type { BatchOperations, ProviderView } from '../delivery/types.ts'
import type { TimeView } from '../domain/arrival.ts'
import type { StateSource } from '../domain/condition-state.ts'
import type {
  ClientView,
  ClockVerdictCounters,
  DeferredCounters,
  Ingest,
  ReleaseCounters,
  RemapReport,
  RemapRequest,
  Taps,
  DecisionCounters,
  QuarantineDecisions,
} from '../ingest/ingest.ts'
export type { ClientView } from '../ingest/ingest.ts'
export type { DeviceMessage, DeviceView, MessageOutcome } from './http/answer-schemas/device-schemas.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { DeviceMessage, DeviceView } from './http/answer-schemas/device-schemas.ts'
import type { DeviceFields, WithheldField } from '../mapping/mapping.ts'
import type { DeadLetterOperations } from '../dead-letters/dead-letters.ts'
import type { Spool, SpoolCheck } from '../spool/spool.ts'

/** Each is null until it is attached: ops starts before the store is opened. */
export type StageViews = {
  ingest:
    | (Pick<Ingest, 'counters' | 'addresses'> &
        Partial<Pick<Ingest, 'clients' | 'messageSources' | 'custody' | 'states' | 'isShut'>>)
    | null
  spool:
    | (Pick<Spool, 'holdReason' | 'congested' | 'deadLettersFull' | 'lanes' | 'totals'> &
        Partial<Pick<Spool, 'writeState' | 'isWriting' | 'listen' | 'states'>>)
    | null
  delivery: (Pick<Delivery, 'providers' | 'counters'> & Partial<StateSource>) | null
  traffic?: StateSource | null
  /** Shows messages as they come. */
  certificates?: ({ certificates(): readonly CertificateView[] } & Partial<StateSource>) | null
  taps?: Pick<Taps, 'open'> | null
  mapping?: MappingStage | null
  /** To list the quarantine. */
  keptMessages?: Pick<Spool, 'shelves' | 'keptMessages'> | null
  /** Decisions about messages in quarantine. */
  quarantine?: Pick<QuarantineDecisions, 'release' | 'drop'> | null
  /** To list, requeue, edit, export and purge dead letters. */
  deadLetters?: DeadLetterOperations | null
  /** To list and change sealed batches. */
  batches?: BatchOperations | null
  /** Work of an operator on the whole spool. */
  spoolWork?: Pick<Spool, 'snapshot' | 'assignLane'> | null
  ledger?: (Pick<Ledger, 'query' | 'view'> & Partial<Pick<Ledger, 'forget'>>) | null
  control?: DaemonControl | null
  reload?: StateSource | null
  lostFields?: StateSource | null
  bridgeSessions?: StateSource | null
  http?: StateSource | null
  ourTime?: ({ view(): TimeView; now(): EpochMs; correctionMs(): number } & Partial<StateSource>) | null
  /** Where the history is kept. */
  records?: (RecordsStore & Partial<StateSource>) | null
  /** Receivers of alerts. */
  alerts?: AlertsStage | null
}

/** A certificate of the config. */
export type CertificateView = { use: string; name: string; notAfterMs: number }

/** Who sends a request. On the control socket the names are claims of the client. */
export type Caller =
  | { via: 'socket'; user: string | null; sudoUser: string | null }
  | { via: 'tcp'; user: string | null; address: string }

/** What can be changed over HTTP. */
export type DaemonControl = {
  /** `isConfirmed`: also where it ends the connections of most clients. */
  reload(cause: string, confirmed?: { isConfirmed: boolean }): Promise<ReloadReport>
  /** Closes the connections of a client id, user or address; their number. */
  kick(name: string): number
  /** Tries at once what waits for a back-off or a slow probe. */
  probe(signal: AbortSignal): Promise<ProbeReport>
  remap(request: RemapRequest, signal: AbortSignal): Promise<RemapReport>
  /**
   * Forgets a device: what the mapping remembers, and its record; or one of its signals alone. Null where the
   * records cannot be changed now: then nothing is forgotten.
   */
  forget(device: string, signal: string | null): Promise<Forgotten | null>
  /** Our time, by which `mute` ends. */
  now(): EpochMs
  /** The silence of a device is no problem until then; null: it is again. The number of its records. */
  mute(device: string, end: MuteEnd | null): Promise<number>
  /** Adds a row to the device table of the config, and reloads. Rejects where the table cannot be changed. */
  accept(row: DeviceFields): Promise<Accepted>
  /** Where snapshots go that are asked for over TCP. */
  readonly snapshotsFolder: string
  /** Reads every record of the spool. */
  check(signal: AbortSignal): Promise<SpoolCheck>
}

/** `isLength`: it was said as a length, so it moves when our time is corrected. */
export type MuteEnd = { at: EpochMs; isLength: boolean }
export type Accepted = { file: string; reload: ReloadReport }

/** Values that the mapping remembered, and records: one for each provider. */
export type Forgotten = { values: number; records: number }

/** The state after the try. */
export type ProbeReport = { now: EpochMs; providers: readonly ProviderView[] }

export type ReloadReport =
  | {
      kind: 'reloaded'
      sources: number
      tookMs: number
      restartNeeded: readonly string[]
      /** Of certificates. */
      warnings: readonly string[]
    }
  | { kind: 'refused'; fault: GatewayError }

/** The mapping in force, and what it has seen. */
export type MappingStage = {
  view(): MappingView
  /** Null for a device that is not listed, and was never seen. */
  device(key: string): DeviceView | null
  /** Its last messages, the newest first. */
  messages(key: string, options: { explain: boolean }, signal: AbortSignal): Promise<DeviceMessages>
  /** Messages of each of the last 24 hours, the oldest first; null where no message of it is known. */
  messagesByHour(key: string): readonly number[] | null
  /** All devices that are listed or were seen, in slices, so that a large fleet does not stop the loop. */
  devices(): AsyncIterable<readonly DeviceView[]>
  /** At the last check. */
  deviceTotals(): DeviceTotals
} & Partial<StateSource>

export type DeviceTotals = RecordCounters & {
  /** Rows of the device table. */
  listed: number
  states: Readonly<Record<DeviceState, number>>
  /** With clients that are those of no device. */
  total: number
  /** Those of which a message is known. */
  seen: number
  /** Null before the first check. */
  checkedAt: EpochMs | null
}

export type MappingView = {
  /** When it was put in force. */
  since: EpochMs
  sources: number
  /** Messages in open records. */
  openParts: number
  omitted: readonly WithheldField[]
  /** Fields that were sent although they are not plausible. */
  flagged: readonly WithheldField[]
  /** Device times that were checked since then. */
  clocks: {
    devices: number
    evictions: number
    future: number
    past: number
    unset: number
    old: number
    restamped: number
  }
  /**
   * Devices with values that are not plausible, and those whose positions look swapped; devices that make up
   * the fleet; values and comparisons of devices beyond these bounds.
   */
  watched: { devices: number; swapped: number; fleet: number; beyond: number }
  /** The worst clocks, at the last check. */
  skewed: readonly DeviceView[]
  release: ReleaseCounters
  decisions: DecisionCounters
  deferred: DeferredCounters
  /** Verdicts that were made again. */
  corrected: ClockVerdictCounters
}

/** `skipped`: messages that were not kept, because too many came in a second. */
export type DeviceMessages = { messages: readonly DeviceMessage[]; skipped: number }

export type DeviceClient = IsoTimes<ClientView>
