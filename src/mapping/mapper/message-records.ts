// message-records.ts: splits the value of a message into records. Each becomes a payload at once, or is
// kept by a source that collects, thins or merges.
//
// Each record of a list stands alone: good ones become payloads, and bad ones are kept with the message
// (map-result.ts), so that one vehicle never holds the others. A message that was kept for some of its
// records is mapped for these alone. What lacks a lost field is sent and kept (sent-in-part.ts).

import type { Message, RecordMark } from '../../domain/message.ts'
import type { MappedPayload } from '../../domain/payload.ts'
import { deviceNamed } from '../devices/device-rule.ts'
import type { DeviceEntry } from '../devices/devices.ts'
import type { OtherControllers } from '../extract/other-controllers.ts'
import { addPacketProperties } from '../path/packet-properties.ts'
import type { FieldView } from '../lost-fields/lost-fields.ts'
import type { DeviceRecord } from '../state/source-state.ts'
import type { RawRecord, MappingState, Taken } from '../state/state.ts'
import type { MapResult, RecordContext, Rejection, Up } from '../types.ts'
import { admitRecord, isBeyondLimit, resultForDevice } from './admission.ts'
import type { CompiledSource } from './compiled-source.ts'
import {
  changedRecord,
  createKeptRecords,
  ignored,
  isMarked,
  isUnread,
  markOf,
  rejected,
  takenOne,
  takenResult,
  unlisted,
  type KeptRecords,
  type KeptRejection,
} from './map-result.ts'
import { beginMessage } from './record-context.ts'
import type { RecordMapper } from './record-mapper.ts'
import { partOf, rejectionOf, remainderOf, waits, type SentInPart } from './sent-in-part.ts'
import type { Route } from '../routing/routing.ts'

export type MessageRecords = {
  /** The result of a message that was decoded to `value`. */
  mapValue(route: Route, value: unknown, message: Message): MapResult
}

type Deps = {
  context: RecordContext
  recordMapper: RecordMapper
  state: Pick<MappingState, 'takeValues' | 'takeRecords'>
  /** For a message that does not say it itself. */
  clockOffsetMs: () => number | null
  /** Whether dead letters of the device are those of an unlisted one. */
  isUnlisted: (source: string | null, device: string | null) => boolean
  fieldView: FieldView | null
}

/** `mark`: of a record that was kept. */
type Origin = { index: number; record: unknown; mark: RecordMark | undefined }

/** What the records of one message became until now. */
type Found = {
  payloads: MappedPayload[]
  values: RawRecord[]
  mapped: DeviceRecord[]
  /** Where the values, or the mapped records, come from. */
  origins: Origin[]
  /** Names of the payloads. */
  names: Set<string>
  /** Why the last record that became nothing did; null while there is none. */
  skipped: string | null
  kept: KeptRecords
}

export function createMessageRecords(deps: Deps): MessageRecords {
  const { context, recordMapper, state, clockOffsetMs, fieldView } = deps
  /** The record of the message became a reading. */
  let wasRead = false
  return { mapValue }

  function mapValue(route: Route, value: unknown, message: Message): MapResult {
    const { source } = route.runtime
    // Collected values are unpacked when their record is complete.
    const unpack = source.coalesce === null ? source.extract : null
    if (unpack !== null && source.readsProperties) addPacketProperties(value, message)
    const root = unpack === null ? value : unpack(value, value, route.captures)
    if (source.readsProperties) addPacketProperties(root, message)
    beginMessage(context, message, { root, captures: route.captures, clockOffsetMs })
    const { each } = source
    if (each?.kind === 'chain') {
      const records = each.expand(root, source.recordsMax)
      if (isBeyondLimit(context)) return rejected(context.rejection, message, source, route.entry)
      return mapList(route, records.length, (index) => records[index], message)
    }
    const chosen = each === null ? root : each.read(root, root)
    if (!Array.isArray(chosen)) return mapOne(route, chosen, message)
    const recordAt = (index: number) => ({ record: chosen[index] as unknown, up: undefined })
    return mapList(route, chosen.length, recordAt, message)
  }

  function mapOne(route: Route, record: unknown, message: Message): MapResult {
    const { source } = route.runtime
    context.record = record
    context.up = undefined
    const mark = message.records?.find((one) => isMarked(one, record))
    if (message.records !== undefined && mark === undefined)
      return rejected(changedRecord, message, source, route.entry)
    beginRecord(source, mark)
    const result = resultOfOne(route, message, mark)
    if (result.kind === 'quarantined' || (result.kind === 'unmappable' && mark?.sent === undefined))
      return result
    const isSent = result.kind === 'payloads' || result.kind === 'part'
    const part = lackingPart(source, mark, isSent)
    const isDone = isSent || mark?.sent === undefined
    if (part === null) return isDone ? result : ignored(source, 'nothing was missing')
    const kept = createKeptRecords(source, message, deps.isUnlisted, null)
    const entry = route.entry ?? (context.owner as DeviceEntry | null)
    kept.add(markOf(0, record, part), rejectionOf(part), entry)
    return kept.with(isDone ? result : null) ?? result
  }

  /** Of a record that was sent in part, only other fields are read. */
  function beginRecord({ watched }: CompiledSource, mark: RecordMark | undefined): void {
    wasRead = false
    context.judged = 0
    context.unwanted = mark?.sent === undefined ? 0 : watched.bitsOf(mark.sent)
  }

  /** What the record at hand lacks and will be asked for again; null for nothing. */
  function lackingPart(
    source: CompiledSource,
    mark: RecordMark | undefined,
    isSent: boolean,
  ): SentInPart | null {
    if (mark?.sent !== undefined) return remainderOf(source, context, fieldView, mark)
    // A rule of the source keeps back what was read and is not sent.
    return wasRead && !isSent ? null : partOf(source, context, fieldView, isSent)
  }

  function resultOfOne(route: Route, message: Message, mark: RecordMark | undefined): MapResult {
    const { runtime } = route
    const { source } = runtime
    const entry = admitRecord(route, context)
    if (source.otherControllers?.isEmpty() === false) countOthers(route, source.otherControllers, entry)
    if (entry === null) return rejected(hinted(source, route.entry), message, source, route.entry)
    const result = resultForDevice(entry, message, source)
    if (result !== null) return result
    if (source.coalesce !== null)
      return takenOne(source, state.takeValues(source.name, message, [rawRecord(entry)]), message, { entry })
    wasRead = recordMapper.read(runtime, entry)
    if (!wasRead) return rejected(hinted(source, entry), message, source, entry)
    if (waits(source, mark)) {
      const record = { entry, mapped: recordMapper.mapped(source, entry) }
      return takenOne(source, state.takeRecords(source.name, message, [record]), message, record)
    }
    const payload = recordMapper.payload(source, entry, message, 0, null)
    if (typeof payload === 'string') return ignored(source, payload)
    return { kind: 'payloads', source: source.name, payloads: [payload] }
  }

  /** Also for a message that is ignored because the values are not there. */
  function countOthers(route: Route, others: OtherControllers, entry: DeviceEntry | null): void {
    const { rejection } = context
    context.device = (entry ?? route.entry)?.device ?? deviceNamed(route.runtime.source.device, context) ?? ''
    others.count(context)
    context.rejection = rejection
  }

  function hinted({ hintRefusal }: CompiledSource, entry: DeviceEntry | null): Rejection {
    return hintRefusal(context.rejection, context, entry)
  }

  function mapList(
    route: Route,
    length: number,
    recordAt: (index: number) => { record: unknown; up: Up } | undefined,
    message: Message,
  ): MapResult {
    const { source } = route.runtime
    if (length > source.recordsMax) {
      const detail = `The list has more than ${source.recordsMax} records (max_records of the source).`
      context.refuse('TOO_MANY', detail)
      return rejected(context.rejection, message, source, route.entry)
    }
    const found: Found = {
      payloads: [],
      values: [],
      mapped: [],
      origins: [],
      names: new Set(),
      skipped: null,
      kept: createKeptRecords(source, message, deps.isUnlisted, length),
    }
    const { records: marks } = message
    const count = marks?.length ?? length
    for (let place = 0; place < count; place += 1) {
      const mark = marks?.[place]
      const index = mark?.index ?? place
      const placed = recordAt(index)
      context.record = placed?.record
      context.up = placed?.up
      const isCured = mark !== undefined && source.each === null && isUnread(mark, length)
      if (mark !== undefined && !isCured && !isMarked(mark, placed?.record))
        found.kept.add(mark, changedRecord, route.entry)
      else addRecord(route, { index, record: context.record, mark }, message, found)
    }
    context.isLossNoted = count > 0
    return (
      found.kept.with(mainResult(source, message, found)) ?? ignored(source, found.skipped ?? 'no records')
    )
  }

  /** What became of the records that are not kept; null where there are none. */
  function mainResult(source: CompiledSource, message: Message, found: Found): MapResult | null {
    const { payloads, values, mapped } = found
    if (values.length > 0) return takenList(source, state.takeValues(source.name, message, values), found)
    if (mapped.length > 0) return takenList(source, state.takeRecords(source.name, message, mapped), found)
    if (payloads.length > 0) return { kind: 'payloads', source: source.name, payloads }
    return found.skipped === null ? null : ignored(source, found.skipped)
  }

  /** The state refuses records one by one. */
  function takenList(source: CompiledSource, result: Taken, found: Found): MapResult | null {
    for (const { place, reason, detail } of result.refused) {
      const { entry } = found.values[place] ?? found.mapped[place]!
      keep(found, source, found.origins[place]!, { kind: 'refused', reason, detail }, entry)
    }
    return takenResult(source, result, found.values.length > 0 ? found.values : found.mapped)
  }

  /** Adds what the record at hand becomes. */
  function addRecord(route: Route, origin: Origin, message: Message, found: Found): void {
    const { runtime } = route
    const { source } = runtime
    beginRecord(source, origin.mark)
    const entry = admitRecord(route, context)
    if (source.otherControllers?.isEmpty() === false) countOthers(route, source.otherControllers, entry)
    if (entry?.ignored) {
      skip(found, source, 'unknown device')
      return
    }
    if (entry?.quarantined) {
      keep(found, source, origin, { kind: 'quarantined', ...unlisted(entry, source) }, entry)
      return
    }
    if (entry !== null && source.coalesce !== null) {
      found.values.push(rawRecord(entry))
      found.origins.push(origin)
      return
    }
    wasRead = entry !== null && recordMapper.read(runtime, entry)
    if (entry === null || !wasRead) {
      const rejection = hinted(source, entry ?? route.entry)
      const isCopy = origin.mark?.sent !== undefined && rejection.kind !== 'quarantined'
      if (rejection.kind === 'ignored' || isCopy) {
        const isKept = addLacking(found, source, origin, entry ?? route.entry, false)
        if (!isCopy || !isKept) skip(found, source, isCopy ? 'nothing was missing' : rejection.reason)
      } else keep(found, source, origin, rejection, entry ?? route.entry)
      return
    }
    if (waits(source, origin.mark)) {
      found.mapped.push({ entry, mapped: recordMapper.mapped(source, entry) })
      found.origins.push(origin)
      addLacking(found, source, origin, entry, true)
      return
    }
    const payload = recordMapper.payload(source, entry, message, origin.index, found.names)
    if (typeof payload === 'string') {
      skip(found, source, payload)
      return
    }
    found.payloads.push(payload)
    addLacking(found, source, origin, entry, true)
  }

  /** Whether the record lacks something and is kept for it. */
  function addLacking(
    found: Found,
    source: CompiledSource,
    { index, record, mark }: Origin,
    entry: DeviceEntry | null,
    isSent: boolean,
  ): boolean {
    const part = lackingPart(source, mark, isSent)
    if (part !== null) found.kept.add(markOf(index, record, part), rejectionOf(part), entry)
    return part !== null
  }

  function keep(
    found: Found,
    source: CompiledSource,
    { index, record, mark }: Origin,
    rejection: KeptRejection,
    entry: DeviceEntry | null,
  ): void {
    found.kept.add(markOf(index, record, mark), rejection, entry)
    const owner = entry ?? context.owner
    const kind = rejection.kind === 'quarantined' ? 'quarantined' : 'dead'
    if (owner !== null) context.notes?.lost(owner, kind, source.name, rejection.reason)
  }

  function skip(found: Found, source: CompiledSource, reason: string): void {
    found.skipped = reason
    if (context.owner !== null) context.notes?.lost(context.owner, 'ignored', source.name, reason)
  }

  function rawRecord(entry: DeviceEntry): RawRecord {
    const { captures, record, root, up } = context
    return { entry, captures, record, root, up }
  }
}
