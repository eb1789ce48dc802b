// reading.ts: one record of a message, and what is found in it. All that reads or judges the record reports
// here; nothing else is shared between two records but what their message shares.
//
//   MessageAt   the message, its route, and what its records share
//   Reading     the record: where it stands, what was found, what is withheld, and why it is rejected

import {
  noSender,
  type Message,
  type MessageProperties,
  type RecordMark,
  type Sender,
  type Stored,
  type UserProperties,
} from '../../domain/message.ts'
import type { MappedPayload } from '../../domain/payload.ts'
import type { EpochMs } from '../../std/clock.ts'
import type { DeviceEntry } from '../devices/devices.ts'
import type { OtherController } from '../extract/j1939.ts'
import type { RecordNotes } from '../fields/field-notes.ts'
import type { DeviceMemory, PreviousNote } from '../memory/device-memory.ts'
import type { SuspectDevices } from '../plausibility/suspect-devices.ts'
import type { WithheldCounts } from '../plausibility/withheld-counts.ts'
import type { QuarantineReason, UnmappableReason } from '../reasons.ts'
import type {
  DeviceNotes,
  Finding,
  MapResult,
  NotedDevice,
  Place,
  RecordContext,
  Rejection,
  Up,
} from '../types.ts'
import type { MappedRecord } from '../write.ts'

/** Where values that are left out are counted. */
export type Counts = {
  withheld: Pick<WithheldCounts, 'omit' | 'implausible'>
  watched: Pick<SuspectDevices, 'omitted' | 'implausible'> | null
}

/** True time minus the time of an arrival or a tick; null while our own time is unknown. */
export type Moment = { at: EpochMs; offsetMs: number | null }

/** A message while it is mapped, or the several ones of a record that closes. */
export type MessageAt = {
  /** Null for a record of several messages. */
  readonly message: Message | null
  readonly arrivedAt: EpochMs
  /** It arrives now: it may change what is remembered. */
  readonly live: boolean
  /** Null for a message that does not arrive now, and where no notes are taken. */
  readonly notes: DeviceNotes | null
  readonly offsetMs: number | null
  /** Of its topic, and its value: known once it has a source and was decoded. */
  captures: readonly string[]
  root: unknown
  /** Values on a bus of it that are not selected; null where nothing is unpacked. */
  others: OtherController[] | null
  /** As in `Decoded`; null where nothing is doubtful. */
  flagged: string | null
  /** The device of the message, or of its last record; null while it is not known. */
  owner: NotedDevice | null
  /** The records that gave no payload are noted one by one. */
  isLossNoted: boolean
  /** What was known before its records were noted for later ones; null for nothing. */
  noted: PreviousNote[] | null
}

const noSignals: readonly string[] = []
const notYetRejected: Rejection = { kind: 'ignored', reason: '' }

export class Reading implements RecordContext {
  readonly at: MessageAt
  readonly record: unknown
  readonly root: unknown
  readonly up: Up
  readonly captures: readonly string[]
  badByteAt = 0
  /** Its place in the message. */
  index = 0
  /** Of a record that was kept. */
  mark: RecordMark | undefined

  device = ''
  entry: DeviceEntry | null = null
  rejection: Rejection = notYetRejected
  /** The reason of the rule of `refuse` that holds; whether `when` and `fix.valid` hold. */
  refusedBy: string | null = null
  isWanted: boolean | null = null
  isValid: boolean | null = null
  isTimed = false

  present = 0
  judged = 0
  unwanted = 0
  leftOut = false
  /** Null where the source has no counters. */
  counters: RecordContext['counters'] = null
  speed: number | null = null
  zeroPosition = false
  // Numbers without a value here are set before they are read. With one, each reading has a box for it.
  latitude!: number
  longitude!: number

  /** Its own time as the device says it; NaN where it has none. */
  ownTime!: EpochMs
  /** NaN where the arrival time is used instead. */
  time!: EpochMs
  /** The same, or its arrival: what is remembered of the device goes by it. */
  moment!: EpochMs
  /** `time` is the one at which a server had stored the message, which has none of its own. */
  isStoredTime = false
  /** When the position was taken; null or NaN where the record does not say it. */
  fixTime: EpochMs | null = null
  /** The arrival time is sent less this age of the position. */
  agedMs = 0
  /** Those of an old position that is kept; null and 0 without one. */
  oldTime: EpochMs | null = null
  oldAgeMs = 0
  /** `,"gps":{...}` or ''; null where it was not written. */
  gps: string | null = null
  /** The position cannot be used, and why. */
  positionFault: Rejection | null = null
  /** The position is written without its heading, as the last known one. */
  isLastKnown = false
  /** The position is valid and of the time of the message. */
  isCurrentFix = true
  /** The position is an old one, sent with its own time: records that repeat it are no new readings. */
  isLastFix = false
  /** The position is part of the name and is not sent, by what is remembered of the device. */
  isGpsWithheld = false
  signals: readonly string[] = noSignals
  /** The same list, or one with '' for signals that are named and not sent, by what is remembered. */
  sentSignals: readonly string[] = noSignals
  /** Extra fields; null where they were not read. */
  fields: string | null = null
  /** What reads previous values: behind the others, so that the ids of those do not depend on it. */
  laterSignals: readonly string[] = noSignals
  laterFields = ''
  /** Derived from the speed; null where it was not. */
  moving: boolean | null = null

  /** What is remembered of the device; null where nothing is, or its source remembers nothing. */
  memory: DeviceMemory | null = null
  /** The same with remembered values in the record. */
  full: Place = this
  /** It was read to its end. */
  isRead = false
  /** What it became; null where it has no payload, or none yet. */
  payload: MappedPayload | null = null

  readonly counts: Counts
  /** What its fields read; null where nothing is explained. */
  notes: RecordNotes | null = null

  constructor(counts: Counts, at: MessageAt, record: unknown, up: Up) {
    this.counts = counts
    this.at = at
    this.captures = at.captures
    this.root = at.root
    this.record = record
    this.up = up
  }

  get arrivedAt(): EpochMs {
    return this.at.arrivedAt
  }

  get offsetMs(): number | null {
    return this.at.offsetMs
  }

  get live(): boolean {
    return this.at.live
  }

  get sender(): Sender {
    return this.at.message?.sender ?? noSender
  }

  get recordSender(): Sender | null {
    return this.at.message?.sender ?? null
  }

  get userProperties(): UserProperties | null {
    return this.at.message?.userProperties ?? null
  }

  get properties(): MessageProperties | null {
    return this.at.message?.properties ?? null
  }

  get stored(): Stored | null {
    return this.at.message?.stored ?? null
  }

  /** Rejects the record with a reason of the mapping. */
  refuse(reason: UnmappableReason, detail: string): null {
    this.rejection = { kind: 'refused', reason, detail, isTimed: this.isTimed }
    return null
  }

  ignore(reason: string): null {
    this.rejection = { kind: 'ignored', reason }
    return null
  }

  quarantine(reason: QuarantineReason, detail: string): null {
    this.rejection = { kind: 'quarantined', reason, detail, isTimed: this.isTimed }
    return null
  }

  omit(key: string, ofDevice = key): undefined {
    this.notes?.omitted(key)
    const { watched, withheld } = this.counts
    if (this.live && this.entry !== null) watched?.omitted(this.entry, key, this.arrivedAt)
    withheld.omit(this.device, key, ofDevice)
    return undefined
  }

  implausible(finding: Finding, value: number): void {
    const { watched, withheld } = this.counts
    this.notes?.implausible(finding, value)
    if (!finding.isSent) this.leftOut = true
    if (this.live && this.entry !== null) watched?.implausible(this.entry, finding.key, this.arrivedAt)
    withheld.implausible(this.device, finding, value)
  }

  /** Counts the values of controllers that are not selected, where the selected ones send none. */
  countOthers(source: string): void {
    for (const { into, signal, why, isFound } of this.at.others ?? [])
      if (!isFound)
        this.omit(`${source}|${into}.${signal}|another controller`, `${source}|${into}.${signal}|${why}`)
  }

  /** What is stored of it, and written. */
  mapped(source: string, { device, provider }: DeviceEntry): MappedRecord {
    const { signals, sentSignals } = this
    const record: MappedRecord = {
      source,
      device,
      time: Number.isNaN(this.time) ? null : this.time,
      arrivedAt: this.arrivedAt - this.agedMs,
      gps: this.gps ?? '',
      signals,
      fields: this.fields ?? '',
      moving: this.moving,
      provider,
    }
    if (!this.isGpsWithheld && sentSignals === signals) return record
    const hidden = signals.filter((_signal, index) => sentSignals[index] === '')
    return { ...record, withheld: { gps: this.isGpsWithheld, signals: hidden } }
  }
}

/** The device of a message without a payload is known where its topic, or a record of it, names one. */
export function noteEnd({ notes, owner, isLossNoted }: MessageAt, result: MapResult): void {
  if (notes === null) return
  const { kind, source } = result
  if (owner === null) {
    if ('reason' in result) notes.unnamed(result)
    return
  }
  notes.ended(owner, kind)
  if (!isLossNoted && 'reason' in result)
    notes.lost(owner, result.kind === 'unmappable' ? 'dead' : result.kind, source, result.reason)
}
