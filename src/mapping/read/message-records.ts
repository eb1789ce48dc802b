// message-records.ts: splits the value of a message into records. Each becomes a payload at once, or waits
// for others in the state of its source (../state/).
//
// Each record of a list stands alone: good ones become payloads, and bad ones are kept with the message
// (map-result.ts), so that one vehicle never holds the others. A message that was kept for some of its
// records is mapped for these alone. What lacks a lost field is sent and kept.

import type { Message, RecordMark } from '../../domain/message.ts'
import type { MappedPayload } from '../../domain/payload.ts'
import type { SourcePlan } from '../compile/source-plan.ts'
import type { DeviceEntry } from '../devices/devices.ts'
import { limitRejection } from '../expression/expression.ts'
import { notePrevious } from '../filters/remembered-values.ts'
import { digestOf, distinct, messageKeyOf, numbered, partKeyOf } from '../identity.ts'
import type { FieldView } from '../lost-fields/lost-fields.ts'
import { selectRecords, type SelectedRecords } from '../path/record-selection.ts'
import type { Route } from '../routing/routing.ts'
import { rootOf } from '../routing/source-choice.ts'
import type { MappingState, Pending, Taken } from '../state/state.ts'
import type { Decoded, MapResult, Place, Rejection } from '../types.ts'
import { identityOfDigest, nameOf, payloadOf } from '../write.ts'
import { admitRecord, deviceNameIn, readRecord, type ReadDeps } from './read.ts'
import {
  changedRecord,
  ignored,
  isMarked,
  isUnread,
  KeptRecords,
  markOf,
  rejected,
  unlisted,
  hintedRejection,
  type IsUnlisted,
  type KeptRejection,
} from './map-result.ts'
import { Reading, type Counts, type MessageAt } from './reading.ts'
import { position, type WatchedFields } from '../lost-fields/watched-fields.ts'

export type MessageRecordsDeps = {
  counts: Counts
  read: ReadDeps
  state: Pick<MappingState, 'of' | 'takeValue' | 'takeRecord' | 'partOf'>
  isUnlisted: IsUnlisted
  fieldView: FieldView | null
  /** Hears of each reading, for an explanation. */
  onReading: ((reading: Reading, source: SourcePlan) => void) | null
}

/** What the records of one message share. */
export type OfMessage = MessageAt & { readonly message: Message }

type DecodedValue = Extract<Decoded, { kind: 'value' }>

/** The result of a message that was decoded. */
export function mapRecords(
  at: OfMessage,
  route: Route,
  decoded: DecodedValue,
  deps: MessageRecordsDeps,
): MapResult {
  const { message } = at
  const { source } = route.runtime
  at.captures = route.captures
  let selected: SelectedRecords
  try {
    at.root = rootOf(source, route.captures, decoded.value, message, at)
    selected = selectRecords(source.each, at.root, at.captures, source.recordsMax)
  } catch (error) {
    return refused(limitRejection(error))
  }
  const { isList, records: found } = selected
  const { records: marks } = message
  const records = new MessageRecords(at, route, decoded, deps)
  if (!isList) {
    const only = found[0]!
    const mark = marks?.find((one) => isMarked(one, only.record))
    if (marks !== undefined && mark === undefined) return refused(changedRecord)
    records.map(only, 0, mark)
    return records.result()
  }
  const { length } = found
  if (length > source.recordsMax) {
    const detail = `The list has more than ${source.recordsMax} records (max_records of the source).`
    return refused({ kind: 'refused', reason: 'TOO_MANY', detail })
  }
  records.beginList(length)
  const count = marks?.length ?? length
  for (let place = 0; place < count; place += 1) {
    const mark = marks?.[place]
    const index = mark?.index ?? place
    const one = found[index] ?? nothing
    const isCured = mark !== undefined && source.each === null && isUnread(mark, length)
    if (mark !== undefined && !isCured && !isMarked(mark, one.record))
      records.keep(mark, changedRecord, route.entry)
    else records.map(one, index, mark)
  }
  at.isLossNoted = count > 0
  return records.result()

  function refused(rejection: Rejection): MapResult {
    return rejected(rejection, message, source, route.entry)
  }
}

/** What the records of one message become. */
class MessageRecords {
  readonly at: OfMessage
  readonly route: Route
  readonly source: SourcePlan
  readonly decoded: DecodedValue
  readonly deps: MessageRecordsDeps
  /** Of a list of records; null for a message that is one record. */
  length: number | null = null
  payloads: MappedPayload[] | null = null
  pending: Pending[] | null = null
  /** The devices of records that were handed to the state. */
  owners: { entry: DeviceEntry }[] | null = null
  /** Names of the payloads of a list. */
  names: Set<string> | null = null
  /** Why the last record that became nothing did; null while there is none. */
  skipped: string | null = null
  kept: KeptRecords | null = null
  /** What other controllers send was counted, once for all records. */
  hasCounted = false
  /** Of a message that is one record, and is kept or rejected with it. */
  whole: MapResult | null = null

  constructor(at: OfMessage, route: Route, decoded: DecodedValue, deps: MessageRecordsDeps) {
    this.at = at
    this.route = route
    this.source = route.runtime.source
    this.decoded = decoded
    this.deps = deps
  }

  beginList(length: number): void {
    this.length = length
    this.names = new Set()
  }

  result(): MapResult {
    const { whole, kept, source } = this
    if (whole !== null) return whole
    const main = this.#mainResult()
    return (kept === null ? main : kept.with(main)) ?? ignored(source, 'no records')
  }

  /** What became of the records that are not kept; null where there are none. */
  #mainResult(): MapResult | null {
    const { payloads, pending, owners, skipped, source, deps } = this
    const { name } = source
    if (pending !== null) {
      const { message, arrivedAt, offsetMs } = this.at
      const part = deps.state.partOf(pending, message, { at: arrivedAt, offsetMs })
      return { kind: 'part', source: name, ...part, records: owners ?? [] }
    }
    if (payloads !== null) return { kind: 'payloads', source: name, payloads }
    return skipped === null ? null : ignored(source, skipped)
  }

  /** Adds what one record becomes. `mark`: of one that was kept. */
  map({ record, up }: Place, index: number, mark: RecordMark | undefined): void {
    const { at, route, source, deps, decoded } = this
    const { runtime } = route
    const reading = new Reading(deps.counts, at, record, up)
    reading.index = index
    reading.mark = mark
    reading.badByteAt = decoded.badByteAt ?? 0
    reading.device = route.entry?.device ?? ''
    // Of a record that was sent in part, only other fields are read.
    if (mark?.sent !== undefined) reading.unwanted = source.watched.bitsOf(mark.sent)
    reading.notes = source.notes?.begin() ?? null
    deps.onReading?.(reading, source)
    let entry: DeviceEntry | null = null
    let isRead = false
    try {
      entry = admitRecord(route, reading, decoded.broken)
      if (entry !== null && !entry.ignored && !entry.quarantined)
        isRead = source.coalesce !== null || readRecord(reading, runtime, entry, deps.read)
    } catch (error) {
      reading.rejection = { ...limitRejection(error), isTimed: reading.isTimed }
    }
    if (at.others !== null && at.others.length > 0 && !this.hasCounted) this.#countOthers(reading, entry)
    if (entry !== null && isRead) this.#add(reading, entry)
    else if (entry?.ignored) this.#reject(reading, entry, { kind: 'ignored', reason: 'unknown device' })
    else if (entry?.quarantined) this.#reject(reading, entry, unlisted(entry, source))
    else {
      const owner = entry ?? route.entry
      this.#reject(reading, owner, hintedRejection(source, reading.rejection, reading, owner))
    }
  }

  /** Also for a message that is ignored because the values are not there. */
  #countOthers(reading: Reading, entry: DeviceEntry | null): void {
    const { rejection } = reading
    const { source, route } = this
    reading.device = (entry ?? route.entry)?.device ?? deviceNameIn(source, reading) ?? ''
    reading.countOthers(source.name)
    reading.rejection = rejection
    this.hasCounted = true
  }

  #add(reading: Reading, entry: DeviceEntry): void {
    const taken = this.#take(reading, entry)
    switch (taken.kind) {
      case 'payload':
        reading.payload = taken.payload
        ;(this.payloads ??= []).push(taken.payload)
        break
      case 'value':
      case 'record':
        ;(this.pending ??= []).push(taken)
        break
      case 'ignored':
      case 'refused':
      case 'quarantined':
      default:
        this.#reject(reading, entry, taken)
        return
    }
    this.#keepLacking(reading, entry, true)
  }

  #take(reading: Reading, entry: DeviceEntry): Taken {
    const { source, deps, names } = this
    const { message } = this.at
    const { index, mark } = reading
    const own = source.coalesce !== null || waits(source, mark) ? deps.state.of(source.name) : null
    const place = own === null ? index : (this.owners ??= []).push({ entry }) - 1
    if (own !== null && source.coalesce !== null) return deps.state.takeValue(own, reading, entry)
    const { laterSignals: signals, laterFields: fields } = reading
    const later = source.previous === null ? null : { signals, fields }
    const record = { entry, mapped: reading.mapped(source.name, entry), later }
    let name = nameOf(record, own === null ? timeMark(reading, message) : undefined)
    if (own === null && reading.isLastFix && names?.has(name) === true) {
      reading.omit(`${source.name}|gps|repeated fix`)
      return { kind: 'ignored', reason: 'repeated fix' }
    }
    if (names !== null) name = distinct(name, names, place)
    if (own === null && source.previous !== null) notePrevious(reading, source.previous, deps.read.memory)
    const digest = digestOf(name)
    const identity =
      record.mapped.time === null
        ? { windowKey: partKeyOf(messageKeyOf(message), place), duplicateRule: 'resend' as const }
        : identityOfDigest(digest)
    if (own !== null) return deps.state.takeRecord(own, record, { digest, identity, dup: message.dup })
    const payload = payloadOf(record, digest, identity)
    return payload === null ? { kind: 'ignored', reason: 'privacy' } : { kind: 'payload', payload }
  }

  #reject(reading: Reading, entry: DeviceEntry | null, rejection: Rejection): void {
    const { at, source, length } = this
    const { index, mark } = reading
    const isCopy = mark?.sent !== undefined && rejection.kind !== 'quarantined'
    if (rejection.kind === 'ignored' || isCopy) {
      const isKept = this.#keepLacking(reading, entry, false)
      if (isCopy && isKept) return
      this.skipped = isCopy || rejection.kind !== 'ignored' ? 'nothing was missing' : rejection.reason
      this.#lost(at.owner, 'ignored', this.skipped)
    } else if (length === null) this.whole = rejected(rejection, at.message, source, entry)
    else {
      this.keep(markOf(index, reading.record, mark), rejection, entry)
      this.#lost(
        entry ?? at.owner,
        rejection.kind === 'quarantined' ? 'quarantined' : 'dead',
        rejection.reason,
      )
    }
  }

  keep(mark: RecordMark, rejection: KeptRejection, entry: DeviceEntry | null): void {
    this.kept ??= new KeptRecords(this.source, this.at.message, this.deps.isUnlisted, this.length)
    this.kept.add(mark, rejection, entry)
  }

  /** A message that is one record is noted as a whole. */
  #lost(owner: MessageAt['owner'], kind: 'ignored' | 'quarantined' | 'dead', reason: string): void {
    if (owner !== null && this.length !== null) this.at.notes?.lost(owner, kind, this.source.name, reason)
  }

  /** Whether the record lacks something, will be asked for it again, and is kept for it. */
  #keepLacking(reading: Reading, entry: DeviceEntry | null, isSent: boolean): boolean {
    const { source, deps } = this
    const { index, mark } = reading
    const view = deps.fieldView
    const isCopy = mark?.sent !== undefined
    // A rule of the source keeps back what was read and is not sent.
    if (!isCopy && (view === null || (reading.isRead && !isSent))) return false
    const part = isCopy
      ? remainderOf(source, reading, view, mark)
      : partOf(source, reading, entry?.device, view, isSent)
    if (part !== null) this.keep(markOf(index, reading.record, part), rejectionOf(part), entry)
    return part !== null
  }
}

const nothing: Place = { record: undefined, root: undefined, up: undefined, captures: [] }

/** What stands behind the time in the name, and says which time it is. */
function timeMark({ isStoredTime, time }: Reading, { serial = 0, stored }: Message): string {
  if (isStoredTime) return numbered('stored', stored?.serial ?? 0)
  return Number.isNaN(time) ? numbered('arrival', serial) : ']'
}

// Records that lack a field which is lost (lost-fields/): what they have is sent, and the
// message is kept, too, with the names of the fields that were sent and of those that are lost. Mapped again,
// only fields that were not sent are read of it, so that nothing is sent twice. It stays until it has given
// all fields that were lost, or until devices of its source have sent the others again: then it has none.

/** What a record was sent with, and what it lacks. */
type SentInPart = Required<Pick<RecordMark, 'sent' | 'lost'>>

/** For the record at hand, which was read; null where it lacks nothing that is lost. */
function partOf(
  { name, watched }: SourcePlan,
  { present, judged }: Pick<Reading, 'present' | 'judged'>,
  device: string | undefined,
  view: FieldView | null,
  isSent: boolean,
): SentInPart | null {
  const lost = (view?.lostBits(name, device) ?? 0) & judged & ~present
  return lost === 0 ? null : { sent: isSent ? watched.namesOf(present) : [], lost: watched.namesOf(lost) }
}

/** What remains of a record that was sent in part, after it was read again; null where nothing does. */
function remainderOf(
  { name, watched }: SourcePlan,
  { present, judged, arrivedAt }: Pick<Reading, 'present' | 'judged' | 'arrivedAt'>,
  view: FieldView | null,
  { sent = [], lost = [] }: Pick<RecordMark, 'sent' | 'lost'>,
): SentInPart | null {
  // It could not be read.
  if (judged === 0) return { sent, lost }
  const found = presentNames(watched, present)
  const left = lost.filter(
    (field) => !found.includes(field) && view?.hasSince(name, field, arrivedAt) !== true,
  )
  return left.length === 0 ? null : { sent: [...sent, ...found], lost: left }
}

function presentNames(watched: WatchedFields, present: number): readonly string[] {
  return present === 0 ? [] : watched.namesOf(present)
}

function rejectionOf({ lost }: SentInPart): KeptRejection {
  const what = lost.map((field) => (field === position ? 'a position' : `the ${field}`)).join(', ')
  const detail = `It was sent without ${what}: the source found none in its messages then.`
  return { kind: 'refused', reason: 'FIELD_LOST', detail }
}

/** What is missing of a record that was sent is neither thinned nor merged. */
function waits({ thin, merge }: SourcePlan, mark: RecordMark | undefined): boolean {
  return (thin !== null || merge !== null) && mark?.sent === undefined
}
