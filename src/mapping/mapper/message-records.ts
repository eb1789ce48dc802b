// message-records.ts: splits the value of a message into records. Each becomes a payload at once, or is
// kept by a source that collects, thins or merges.
//
// All records of a message are mapped, or none: after the acknowledgement it would not be known which of them
// became payloads. A record that has nothing but a position out of range is left out and counted, as
// one without a fix is; a message of such records only is refused. Half of a position, or a text, refuses the
// message: with another mapping it may be a right one.

import type { Message } from '../../domain/message.ts'
import type { MappedPayload } from '../../domain/payload.ts'
import { deviceNamed } from '../devices/device-rule.ts'
import type { DeviceEntry } from '../devices/devices.ts'
import type { OtherControllers } from '../extract/other-controllers.ts'
import { addPacketProperties } from '../path/packet-properties.ts'
import type { DeviceRecord } from '../state/source-state.ts'
import type { RawRecord, MappingState, Taken } from '../state/state.ts'
import type { MapResult, RecordContext, Rejection, Up } from '../types.ts'
import { admitRecord, isBeyondLimit, resultForDevice } from './admission.ts'
import type { CompiledSource } from './compiled-source.ts'
import { ignored, quarantined, rejected, unlisted, unmappable } from './map-result.ts'
import type { RecordMapper } from './record-mapper.ts'
import type { Route } from '../routing/routing.ts'

export type MessageRecords = {
  /** Puts the message into the context; its records follow. */
  begin(route: Route, root: unknown, message: Message): void
  /** The result of a message that was decoded to `value`. */
  mapValue(route: Route, value: unknown, message: Message): MapResult
  /** The same for the result of an expression, which may be a list of records. */
  mapEvaluated(route: Route, value: unknown, message: Message): MapResult
}

type Deps = {
  context: RecordContext
  recordMapper: RecordMapper
  state: Pick<MappingState, 'takeValues' | 'takeRecords'>
  /** For a message that does not say it itself. */
  clockOffsetMs: () => number | null
}

/** What the records of one message became until now. */
type Found = {
  payloads: MappedPayload[]
  values: RawRecord[]
  mapped: DeviceRecord[]
  /** Names of the payloads. */
  names: Set<string>
  /** Why the last record that became nothing did. */
  skipped: string
  /** Why the first record that has only a position out of range was left out. */
  outOfRange: { rejection: Rejection; entry: DeviceEntry | null } | null
}

export function createMessageRecords({ context, recordMapper, state, clockOffsetMs }: Deps): MessageRecords {
  return { begin, mapValue, mapEvaluated }

  function mapValue(route: Route, value: unknown, message: Message): MapResult {
    const { source } = route.runtime
    // Collected values are unpacked when their record is complete.
    const unpack = source.coalesce === null ? source.extract : null
    if (unpack !== null && source.readsProperties) addPacketProperties(value, message)
    const root = unpack === null ? value : unpack(value, value, route.captures)
    begin(route, root, message)
    const { each } = source
    if (each === null) return mapOne(route, root, message)
    if (each.kind === 'chain') {
      const records = each.expand(root, source.recordsMax)
      if (isBeyondLimit(context)) return rejected(context.rejection, message, source, route.entry)
      return mapList(route, records.length, (index) => records[index], message)
    }
    const chosen = each.read(root, root)
    return Array.isArray(chosen) ? mapPlainList(route, chosen, message) : mapOne(route, chosen, message)
  }

  function mapEvaluated(route: Route, value: unknown, message: Message): MapResult {
    if (!Array.isArray(value) || route.runtime.source.each !== null) return mapValue(route, value, message)
    begin(route, value, message)
    return mapPlainList(route, value, message)
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
    const { runtime } = route
    const { source } = runtime
    context.record = record
    context.up = undefined
    const entry = admitRecord(route, context)
    if (source.otherControllers?.isEmpty() === false) countOthers(route, source.otherControllers, entry)
    if (entry === null) return rejected(hinted(source, route.entry), message, source, route.entry)
    const result = resultForDevice(entry, message, source)
    if (result !== null) return result
    if (source.coalesce !== null) return takeValues(source, message, [rawRecord(entry)])
    if (!recordMapper.read(runtime, entry)) return rejected(hinted(source, entry), message, source, entry)
    if (source.thin !== null || source.merge !== null)
      return takeRecords(source, message, [{ entry, mapped: recordMapper.mapped(source, entry) }])
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
      names: new Set(),
      skipped: 'no records',
      outOfRange: null,
    }
    for (let index = 0; index < length; index += 1) {
      const placed = recordAt(index)
      context.record = placed?.record
      context.up = placed?.up
      const result = addRecord(route, index, message, found)
      if (result !== null) return result
    }
    const { payloads, values, mapped, skipped, outOfRange } = found
    context.isLossNoted = length > 0 && outOfRange === null
    if (outOfRange !== null) context.owner = outOfRange.entry
    if (values.length > 0) return takeValues(source, message, values)
    if (mapped.length > 0) return takeRecords(source, message, mapped)
    if (payloads.length === 0 && outOfRange !== null)
      return rejected(outOfRange.rejection, message, source, outOfRange.entry)
    return payloads.length === 0
      ? ignored(source, skipped)
      : { kind: 'payloads', source: source.name, payloads }
  }

  /** Adds what the record at hand becomes; not null where it decides about the whole message. */
  function addRecord(route: Route, index: number, message: Message, found: Found): MapResult | null {
    const { runtime } = route
    const { source } = runtime
    const entry = admitRecord(route, context)
    if (source.otherControllers?.isEmpty() === false) countOthers(route, source.otherControllers, entry)
    if (entry?.ignored) {
      skip(found, source, 'unknown device')
      return null
    }
    if (entry?.quarantined) return quarantined(message, source, entry, unlisted(entry))
    if (entry !== null && source.coalesce !== null) {
      found.values.push(rawRecord(entry))
      return null
    }
    if (entry === null || !recordMapper.read(runtime, entry)) {
      const rejection = hinted(source, entry ?? route.entry)
      if (rejection.kind === 'ignored') {
        skip(found, source, rejection.reason)
        return null
      }
      const detail = `Record ${index + 1} of the message: ${rejection.detail}`
      const refusal = { ...rejection, detail }
      if (entry === null || rejection.reason !== 'OUT_OF_RANGE')
        return rejected(refusal, message, source, entry ?? route.entry)
      context.omit(`${source.name}|gps|${rejection.reason}`)
      found.outOfRange ??= { rejection: refusal, entry }
      return null
    }
    if (source.thin !== null || source.merge !== null) {
      found.mapped.push({ entry, mapped: recordMapper.mapped(source, entry) })
      return null
    }
    const payload = recordMapper.payload(source, entry, message, index, found.names)
    if (typeof payload === 'string') skip(found, source, payload)
    else found.payloads.push(payload)
    return null
  }

  function skip(found: Found, source: CompiledSource, reason: string): void {
    found.skipped = reason
    if (context.owner !== null) context.notes?.lost(context.owner, 'ignored', source.name, reason)
  }

  function rawRecord(entry: DeviceEntry): RawRecord {
    const { captures, record, root, up } = context
    return { entry, captures, record, root, up }
  }

  function takeValues(source: CompiledSource, message: Message, records: readonly RawRecord[]): MapResult {
    return taken(source, state.takeValues(source.name, message, records), message, records)
  }

  function takeRecords(
    source: CompiledSource,
    message: Message,
    records: readonly DeviceRecord[],
  ): MapResult {
    return taken(source, state.takeRecords(source.name, message, records), message, records)
  }
}

function taken(
  source: CompiledSource,
  result: Taken,
  message: Message,
  records: readonly { entry: DeviceEntry }[],
): MapResult {
  const { name } = source
  switch (result.kind) {
    case 'refused':
      return unmappable(message, source, records[0]?.entry ?? null, result.reason, result.detail)
    case 'part':
      return { ...result, source: name, records }
    case 'payloads':
    case 'ignored':
    default:
      return { ...result, source: name }
  }
}
