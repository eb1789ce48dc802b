// message-records.ts: splits the value of a message into records. Each becomes a payload at once, or is
// kept by a source that collects, thins or merges.
//
// Each record of a list stands alone: good ones become payloads, and bad ones are kept with the message
// (map-result.ts), so that one vehicle never holds the others. A message that was kept for some of its
// records is mapped for these alone. What lacks a lost field is sent and kept (sent-in-part.ts).

import type { Message } from '../../domain/message.ts'
import type { MappedPayload } from '../../domain/payload.ts'
import { deviceNamed } from '../devices/device-rule.ts'
import type { DeviceEntry } from '../devices/devices.ts'
import type { OtherControllers } from '../extract/other-controllers.ts'
import { addPacketProperties } from '../path/packet-properties.ts'
import type { FieldWatch } from '../lost-fields/lost-fields.ts'
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
  markOf,
  rejected,
  takenOne,
  takenResult,
  unlisted,
  type KeptRecords,
  type KeptRejection,
} from './map-result.ts'
import type { RecordMapper } from './record-mapper.ts'
import { copyOf, rejectionOfCopy, resultOfCopy } from './sent-in-part.ts'
import type { Route } from '../routing/routing.ts'

export type MessageRecords = {
  /** Puts the message into the context; its records follow. */
  begin(route: Route, root: unknown, message: Message): void
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
  fieldWatch: FieldWatch | null
}

/** `sent`: as in RecordMark. */
type Origin = { index: number; record: unknown; sent: readonly string[] | undefined }

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
  const { context, recordMapper, state, clockOffsetMs, fieldWatch } = deps
  /** The record of the message became a reading. */
  let wasRead = false
  return { begin, mapValue }

  function mapValue(route: Route, value: unknown, message: Message): MapResult {
    const { source } = route.runtime
    // Collected values are unpacked when their record is complete.
    const unpack = source.coalesce === null ? source.extract : null
    if (unpack !== null && source.readsProperties) addPacketProperties(value, message)
    const root = unpack === null ? value : unpack(value, value, route.captures)
    begin(route, root, message)
    const { each } = source
    if (each?.kind === 'chain') {
      const records = each.expand(root, source.recordsMax)
      if (isBeyondLimit(context)) return rejected(context.rejection, message, source, route.entry)
      return mapList(route, records.length, (index) => records[index], message)
    }
    const chosen = each === null ? root : each.read(root, root)
    return Array.isArray(chosen) ? mapPlainList(route, chosen, message) : mapOne(route, chosen, message)
  }

  function begin({ runtime, captures }: Route, root: unknown, message: Message): void {
    const { sender, arrivedAt, arrival, stored, userProperties = null, properties = null } = message
    if (runtime.source.readsProperties) addPacketProperties(root, message)
    context.captures = captures
    context.root = root
    context.sender = sender
    context.recordSender = sender
    context.userProperties = userProperties
    context.properties = properties
    context.arrivedAt = arrivedAt
    context.stored = stored ?? null
    context.offsetMs = arrival === undefined ? clockOffsetMs() : arrival.offsetMs
    context.latest.at = arrivedAt
    context.latest.offsetMs = context.offsetMs
  }

  function mapOne(route: Route, record: unknown, message: Message): MapResult {
    const { source } = route.runtime
    context.record = record
    context.up = undefined
    const mark = message.records?.find((one) => isMarked(one, record))
    if (message.records !== undefined && mark === undefined)
      return rejected(changedRecord, message, source, route.entry)
    beginRecord(source, mark?.sent)
    const result = resultOfOne(route, message)
    if (mark?.sent !== undefined) return resultOfCopy(result, message, source)
    const copy = result.kind === 'unmappable' ? null : copyOf(source, context, fieldWatch, wasRead)
    if (copy === null) return result
    const kept = createKeptRecords(source, message, deps.isUnlisted, false)
    const entry = route.entry ?? (context.owner as DeviceEntry | null)
    kept.add(markOf(0, record, copy.sent), copy.rejection, entry)
    return kept.with(result) ?? result
  }

  /** Of a record that was sent in part, only other fields are read. */
  function beginRecord({ watched }: CompiledSource, sent: readonly string[] | undefined): void {
    context.judged = 0
    context.unwanted = sent === undefined ? 0 : watched.bitsOf(sent)
  }

  function resultOfOne(route: Route, message: Message): MapResult {
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
    if (source.thin !== null || source.merge !== null) {
      const record = { entry, mapped: recordMapper.mapped(source, entry) }
      return takenOne(source, state.takeRecords(source.name, message, [record]), message, record)
    }
    const payload = recordMapper.payload(source, entry, message, 0, null)
    if (typeof payload !== 'string') return { kind: 'payloads', source: source.name, payloads: [payload] }
    // It lacks nothing: a rule keeps it back.
    context.judged = 0
    return ignored(source, payload)
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

  function mapPlainList(route: Route, records: readonly unknown[], message: Message): MapResult {
    return mapList(route, records.length, (index) => ({ record: records[index], up: undefined }), message)
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
      kept: createKeptRecords(source, message, deps.isUnlisted, true),
    }
    const { records: marks } = message
    const count = marks?.length ?? length
    for (let place = 0; place < count; place += 1) {
      const mark = marks?.[place]
      const index = mark?.index ?? place
      const placed = recordAt(index)
      context.record = placed?.record
      context.up = placed?.up
      if (mark !== undefined && !isMarked(mark, placed?.record))
        found.kept.add(mark, changedRecord, route.entry)
      else addRecord(route, { index, record: context.record, sent: mark?.sent }, message, found)
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
    beginRecord(source, origin.sent)
    const entry = admitRecord(route, context)
    if (source.otherControllers?.isEmpty() === false) countOthers(route, source.otherControllers, entry)
    if (entry?.ignored) {
      skip(found, source, 'unknown device')
      return
    }
    if (entry?.quarantined) {
      keep(found, source, origin, { kind: 'quarantined', ...unlisted(entry) }, entry)
      return
    }
    if (entry !== null && source.coalesce !== null) {
      found.values.push(rawRecord(entry))
      found.origins.push(origin)
      return
    }
    if (entry === null || !recordMapper.read(runtime, entry)) {
      const own = hinted(source, entry ?? route.entry)
      const rejection = (origin.sent && rejectionOfCopy(own)) ?? own
      if (rejection.kind !== 'ignored') keep(found, source, origin, rejection, entry ?? route.entry)
      else {
        skip(found, source, rejection.reason)
        if (entry !== null) addCopy(found, source, origin, entry, false)
      }
      return
    }
    if (source.thin !== null || source.merge !== null) {
      found.mapped.push({ entry, mapped: recordMapper.mapped(source, entry) })
      found.origins.push(origin)
      addCopy(found, source, origin, entry, true)
      return
    }
    const payload = recordMapper.payload(source, entry, message, origin.index, found.names)
    if (typeof payload === 'string') {
      skip(found, source, payload)
      return
    }
    found.payloads.push(payload)
    addCopy(found, source, origin, entry, true)
  }

  function addCopy(
    found: Found,
    source: CompiledSource,
    { index, record }: Origin,
    entry: DeviceEntry,
    isSent: boolean,
  ): void {
    const copy = copyOf(source, context, fieldWatch, isSent)
    if (copy !== null) found.kept.add(markOf(index, record, copy.sent), copy.rejection, entry)
  }

  function keep(
    found: Found,
    source: CompiledSource,
    { index, record, sent }: Origin,
    rejection: KeptRejection,
    entry: DeviceEntry | null,
  ): void {
    found.kept.add(markOf(index, record, sent), rejection, entry)
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
