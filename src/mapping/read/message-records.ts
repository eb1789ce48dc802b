// message-records.ts: splits the value of a message into records. Each becomes a payload at once, or waits
// for others in the state of its source (../state/).
//
// Each record of a list stands alone: good ones become payloads, and bad ones are kept with the message
// (map-result.ts), so that one vehicle never holds the others. A message that was kept for some of its
// records is mapped for these alone. What lacks a lost field is sent and kept (sent-in-part.ts).

import type { Message, RecordMark } from '../../domain/message.ts'
import type { MappedPayload } from '../../domain/payload.ts'
import type { SourcePlan } from '../compile/source-plan.ts'
import { deviceNamed } from '../devices/device-rule.ts'
import type { DeviceEntry } from '../devices/devices.ts'
import { limitDetail, takeLimitReached } from '../expression/expression.ts'
import { notePrevious } from '../filters/previous-values.ts'
import { digestOf, distinct, messageKeyOf, numbered, partKeyOf } from '../identity.ts'
import type { FieldView } from '../lost-fields/lost-fields.ts'
import { addPacketProperties } from '../path/packet-properties.ts'
import type { Route } from '../routing/routing.ts'
import type { MappingState, Pending, Taken } from '../state/state.ts'
import type { Decoded, MapResult, Rejection, Up } from '../types.ts'
import { identityOfDigest, nameOf, payloadOf } from '../write.ts'
import { admitRecord } from './admission.ts'
import {
  changedRecord,
  ignored,
  isMarked,
  isUnread,
  KeptRecords,
  markOf,
  rejected,
  unlisted,
  type IsUnlisted,
} from './map-result.ts'
import { readRecord, type ReadDeps } from './read.ts'
import { Reading, type Counts, type MessageAt } from './reading.ts'
import { partOf, rejectionOf, remainderOf, waits } from './sent-in-part.ts'

export type MessageRecordsDeps = {
  counts: Counts
  read: ReadDeps
  state: Pick<MappingState, 'of' | 'takeValue' | 'takeRecord' | 'partOf'>
  isUnlisted: IsUnlisted
  fieldView: FieldView | null
  /** Hears of each reading, for an explanation. */
  onReading: ((reading: Reading, source: SourcePlan) => void) | null
}

type DecodedValue = Extract<Decoded, { kind: 'value' }>

/** A record in its message. */
type Placed = { index: number; record: unknown; up: Up; mark: RecordMark | undefined }

/** What the records of one message became until now. */
type Found = {
  /** Null for a message that is one record. */
  readonly length: number | null
  payloads: MappedPayload[]
  pending: Pending[]
  /** The devices of records that were handed to the state. */
  owners: { entry: DeviceEntry }[]
  /** Names of the payloads of a list. */
  names: Set<string> | null
  /** Why the last record that became nothing did; null while there is none. */
  skipped: string | null
  kept: KeptRecords
  /** Of a message that is one record, and is kept or rejected with it. */
  whole: MapResult | null
}

/** The result of a message that was decoded. */
export function mapRecords(
  at: MessageAt,
  route: Route,
  { value, badByteAt = 0, broken }: DecodedValue,
  deps: MessageRecordsDeps,
): MapResult {
  const { message } = at
  const { source } = route.runtime
  // Collected values are unpacked when their record is complete.
  const unpack = source.coalesce === null ? source.extract : null
  if (unpack !== null && source.readsProperties) addPacketProperties(value, message)
  const root = unpack === null ? value : unpack(value, value, route.captures)
  if (source.readsProperties) addPacketProperties(root, message)
  const { each } = source
  const chain = each?.kind === 'chain' ? each.expand(root, source.recordsMax) : null
  if (chain !== null && takeLimitReached()) return refused('EXPRESSION_LIMIT', limitDetail)
  const chosen = chain ?? (each?.kind === 'one' ? each.read(root, root) : root)
  const isList = Array.isArray(chosen)
  const list: readonly unknown[] = isList ? chosen : [chosen]
  if (isList && list.length > source.recordsMax)
    return refused(
      'TOO_MANY',
      `The list has more than ${source.recordsMax} records (max_records of the source).`,
    )
  const length = isList ? list.length : null
  const found: Found = {
    length,
    payloads: [],
    pending: [],
    owners: [],
    names: isList ? new Set() : null,
    skipped: null,
    kept: new KeptRecords(source, message, deps.isUnlisted, length),
    whole: null,
  }
  const { records: marks } = message
  const count = isList ? (marks?.length ?? list.length) : 1
  for (let place = 0; place < count; place += 1) {
    const mark = isList ? marks?.[place] : marks?.find((one) => isMarked(one, chosen))
    const index = isList ? (mark?.index ?? place) : 0
    const { record, up } = chain === null ? { record: list[index], up: undefined } : (chain[index] ?? nothing)
    const isCured = isList && mark !== undefined && source.each === null && isUnread(mark, list.length)
    if (marks !== undefined && !isCured && (mark === undefined || !isMarked(mark, record))) {
      if (mark === undefined) return rejected(changedRecord, message, source, route.entry)
      found.kept.add(mark, changedRecord, route.entry)
    } else mapRecord({ index, record, up, mark })
  }
  at.isLossNoted = isList && count > 0
  return found.whole ?? found.kept.with(mainResult()) ?? ignored(source, found.skipped ?? 'no records')

  function refused(reason: string, detail: string): MapResult {
    return rejected({ kind: 'refused', reason, detail }, message, source, route.entry)
  }

  /** What became of the records that are not kept; null where there are none. */
  function mainResult(): MapResult | null {
    const { payloads, pending, owners, skipped } = found
    const { name } = source
    if (pending.length > 0)
      return { kind: 'part', source: name, ...deps.state.partOf(pending, message), records: owners }
    if (payloads.length > 0) return { kind: 'payloads', source: name, payloads }
    return skipped === null ? null : ignored(source, skipped)
  }

  /** Adds what one record becomes. */
  function mapRecord({ index, record, up, mark }: Placed): void {
    const { captures, runtime } = route
    const { arrivedAt } = message
    const { offsetMs, live, notes } = at
    const reading = new Reading(deps.counts, {
      record,
      root,
      up,
      captures,
      arrivedAt,
      offsetMs,
      live,
      notes,
      at,
    })
    reading.badByteAt = badByteAt
    reading.device = route.entry?.device ?? ''
    // Of a record that was sent in part, only other fields are read.
    if (mark?.sent !== undefined) reading.unwanted = source.watched.bitsOf(mark.sent)
    deps.onReading?.(reading, source)
    const entry = admitRecord(route, reading, broken)
    if (source.otherControllers?.isEmpty() === false) countOthers(reading, entry)
    const isHere = entry !== null && !entry.ignored && !entry.quarantined
    const isMapped = isHere && (source.coalesce !== null || readRecord(reading, runtime, entry, deps.read))
    if (entry?.ignored) reject(reading, index, mark, entry, { kind: 'ignored', reason: 'unknown device' })
    else if (entry?.quarantined) reject(reading, index, mark, entry, unlisted(entry, source))
    else if (entry === null || !isMapped) {
      const owner = entry ?? route.entry
      reject(reading, index, mark, owner, source.hintRefusal(reading.rejection, reading, owner))
    } else add(reading, index, mark, entry)
  }

  /** Also for a message that is ignored because the values are not there. */
  function countOthers(reading: Reading, entry: DeviceEntry | null): void {
    const { rejection } = reading
    reading.device = (entry ?? route.entry)?.device ?? deviceNamed(source.device, reading) ?? ''
    source.otherControllers?.count(reading)
    reading.rejection = rejection
  }

  function add(reading: Reading, index: number, mark: RecordMark | undefined, entry: DeviceEntry): void {
    const taken = take(reading, index, mark, entry)
    switch (taken.kind) {
      case 'payload':
        reading.payload = taken.payload
        found.payloads.push(taken.payload)
        break
      case 'value':
      case 'record':
        found.pending.push(taken)
        break
      case 'ignored':
      case 'refused':
      case 'quarantined':
      default:
        reject(reading, index, mark, entry, taken)
        return
    }
    keepLacking(reading, index, mark, entry, true)
  }

  function take(reading: Reading, index: number, mark: RecordMark | undefined, entry: DeviceEntry): Taken {
    const { state } = deps
    const own = source.coalesce !== null || waits(source, mark) ? state.of(source.name) : null
    const place = own === null ? index : found.owners.push({ entry }) - 1
    if (own !== null && source.coalesce !== null) return state.takeValue(own, reading, entry)
    const { laterSignals, laterFields } = reading
    const later = source.previous === null ? null : { signals: laterSignals, fields: laterFields }
    const mapped = reading.mapped(source.name, entry)
    let name = nameOf({ entry, mapped }, own === null ? timeMark(reading, message) : undefined)
    if (own === null && reading.isLastFix && found.names?.has(name) === true) {
      reading.omit(`${source.name}|gps|repeated fix`)
      return { kind: 'ignored', reason: 'repeated fix' }
    }
    if (found.names !== null) name = distinct(name, found.names, place)
    if (own === null && source.previous !== null) notePrevious(reading, source.previous, deps.read.memory)
    const digest = digestOf(name)
    const identity =
      mapped.time === null
        ? { windowKey: partKeyOf(messageKeyOf(message), place), duplicateRule: 'resend' as const }
        : identityOfDigest(digest)
    if (own !== null) return state.takeRecord(own, { entry, mapped }, { digest, identity, dup: message.dup })
    const payload = payloadOf({ entry, mapped, later }, digest, identity)
    return payload === null ? { kind: 'ignored', reason: 'privacy' } : { kind: 'payload', payload }
  }

  function reject(
    reading: Reading,
    index: number,
    mark: RecordMark | undefined,
    entry: DeviceEntry | null,
    rejection: Rejection,
  ): void {
    const isCopy = mark?.sent !== undefined && rejection.kind !== 'quarantined'
    if (rejection.kind === 'ignored' || isCopy) {
      const isKept = keepLacking(reading, index, mark, entry, false)
      if (isCopy && isKept) return
      found.skipped = isCopy || rejection.kind !== 'ignored' ? 'nothing was missing' : rejection.reason
      lost(reading, at.owner, 'ignored', found.skipped)
    } else if (found.length === null) found.whole = rejected(rejection, message, source, entry)
    else {
      found.kept.add(markOf(index, reading.record, mark), rejection, entry)
      const kind = rejection.kind === 'quarantined' ? 'quarantined' : 'dead'
      lost(reading, entry ?? at.owner, kind, rejection.reason)
    }
  }

  /** A message that is one record is noted as a whole. */
  function lost(
    { notes }: Reading,
    owner: MessageAt['owner'],
    kind: 'ignored' | 'quarantined' | 'dead',
    reason: string,
  ): void {
    if (owner !== null && found.length !== null) notes?.lost(owner, kind, source.name, reason)
  }

  /** Whether the record lacks something, will be asked for it again, and is kept for it. */
  function keepLacking(
    reading: Reading,
    index: number,
    mark: RecordMark | undefined,
    entry: DeviceEntry | null,
    isSent: boolean,
  ): boolean {
    const view = deps.fieldView
    const isCopy = mark?.sent !== undefined
    // A rule of the source keeps back what was read and is not sent.
    if (!isCopy && reading.isRead && !isSent) return false
    const part = isCopy ? remainderOf(source, reading, view, mark) : partOf(source, reading, view, isSent)
    if (part !== null) found.kept.add(markOf(index, reading.record, part), rejectionOf(part), entry)
    return part !== null
  }
}

const nothing: { record: unknown; up: Up } = { record: undefined, up: undefined }

/** What stands behind the time in the name, and says which time it is. */
function timeMark({ isStoredTime, time }: Reading, { serial = 0, stored }: Message): string {
  if (isStoredTime) return numbered('stored', stored?.serial ?? 0)
  return Number.isNaN(time) ? numbered('arrival', serial) : ']'
}
