// message-records.ts: from what a message holds to its records, and from each record to what it becomes: a payload at once, or
// a part of what its source collects, thins or merges.
//
// A message with several records becomes something as a whole or not at all: what became payloads could not be told
// from what did not once the message is acknowledged.

import type { Message } from '../../domain/message.ts'
import type { MappedPayload } from '../../domain/payload.ts'
import { admitRecord, resultForDevice } from './admission.ts'
import type { RecordContext } from '../reasons.ts'
import { resultOf } from './record-context.ts'
import { ignored, quarantined, unlisted, unmappable, type MapResult } from './map-result.ts'
import type { Up } from '../path/path.ts'
import type { DeviceEntry } from '../devices/devices.ts'
import type { Route } from './routing.ts'
import {
  mappedRecordOf,
  readRecord,
  writePayload,
  type CompiledSource,
  type Reading,
} from './record-mapper.ts'
import type { DeviceRecord } from '../state/source-state.ts'
import type { RawRecord, MappingState, Taken } from '../state/state.ts'

export type Records = {
  /** What becomes of a message of which `value` was decoded. */
  mapValue(route: Route, value: unknown, message: Message): MapResult
  /** The same for what an expression gave, which may be a list of records by itself. */
  mapEvaluated(route: Route, value: unknown, message: Message): MapResult
}

type Deps = {
  context: RecordContext
  /** Used again for every record. */
  reading: Reading
  stateful: Pick<MappingState, 'takeValues' | 'takeRecords'>
}

/** Payloads that one message may make. */
const recordsMax = 1000

/** What the records of one message became until now. */
type Found = {
  payloads: MappedPayload[]
  values: RawRecord[]
  mapped: DeviceRecord[]
  /** Of the payloads; two records that say the same are two readings. */
  names: Set<string>
  /** Why the last record that became nothing did. */
  skipped: string
}

/** A record, and where it stands in its message. */
type Placed = { record: unknown; root: unknown; up: Up }

export function createRecords({ context, reading, stateful }: Deps): Records {
  return { mapValue, mapEvaluated }

  function mapValue(route: Route, value: unknown, message: Message): MapResult {
    const { source } = route.runtime
    context.captures = route.captures
    // What is collected is unpacked when it is complete.
    const unpack = source.coalesce === null ? source.extract : null
    const root = unpack === null ? value : unpack(value, value, route.captures)
    const { each } = source
    if (each === null) return mapOne(route, root, root, message)
    if (each.kind === 'one') {
      const chosen = each.read(root, root)
      return Array.isArray(chosen)
        ? mapList(route, chosen, null, root, message)
        : mapOne(route, chosen, root, message)
    }
    const placed = each.expand(root, recordsMax)
    const records = placed.map(({ record }) => record)
    const ups = placed.map(({ up }) => up)
    return mapList(route, records, ups, root, message)
  }

  function mapEvaluated(route: Route, value: unknown, message: Message): MapResult {
    if (!Array.isArray(value) || route.runtime.source.each !== null) return mapValue(route, value, message)
    context.captures = route.captures
    return mapList(route, value, null, value, message)
  }

  function mapOne(route: Route, record: unknown, root: unknown, message: Message): MapResult {
    const { source, checks } = route.runtime
    const entry = admitRecord(route, record, root, undefined, message, context)
    if (entry === null) return resultOf(context.rejection, message, source, route.entry)
    const result = resultForDevice(entry, message, source)
    if (result !== null) return result
    if (source.coalesce !== null) {
      const values = [own(route, entry, { record, root, up: undefined })]
      return taken(source, stateful.takeValues(source.name, message, values), message, values)
    }
    if (!readRecord(source, entry, record, root, undefined, message.arrivedAt, checks, context, reading))
      return resultOf(context.rejection, message, source, entry)
    if (source.thin !== null || source.merge !== null) {
      const mapped = [{ entry, mapped: mappedRecordOf(source, entry, reading, message.arrivedAt) }]
      return taken(source, stateful.takeRecords(source.name, message, mapped), message, mapped)
    }
    const payload = writePayload(source, entry, reading, message, 0, null)
    if (payload === null) return ignored(source, 'privacy')
    return { kind: 'payloads', source: source.name, payloads: [payload] }
  }

  function mapList(
    route: Route,
    records: readonly unknown[],
    ups: readonly Up[] | null,
    root: unknown,
    message: Message,
  ): MapResult {
    const { source } = route.runtime
    if (records.length > recordsMax) {
      context.refuse('TOO_MANY', `The list has more than ${recordsMax} records.`)
      return resultOf(context.rejection, message, source, route.entry)
    }
    const found: Found = { payloads: [], values: [], mapped: [], names: new Set(), skipped: 'no records' }
    for (const [index, record] of records.entries()) {
      const end = addRecord(route, { record, root, up: ups?.[index] }, index, message, found)
      if (end !== null) return end
    }
    const { payloads, values, mapped, skipped } = found
    if (values.length > 0)
      return taken(source, stateful.takeValues(source.name, message, values), message, values)
    if (mapped.length > 0)
      return taken(source, stateful.takeRecords(source.name, message, mapped), message, mapped)
    return payloads.length === 0
      ? ignored(source, skipped)
      : { kind: 'payloads', source: source.name, payloads }
  }

  /** Adds what one of several records becomes; not null where it decides about the whole message. */
  function addRecord(
    route: Route,
    placed: Placed,
    index: number,
    message: Message,
    found: Found,
  ): MapResult | null {
    const { source, checks } = route.runtime
    const { record, root, up } = placed
    const entry = admitRecord(route, record, root, up, message, context)
    if (entry?.ignored) {
      found.skipped = 'unknown device'
      return null
    }
    if (entry?.quarantined) return quarantined(message, source, entry, unlisted(entry))
    if (entry !== null && source.coalesce !== null) {
      found.values.push(own(route, entry, placed))
      return null
    }
    const isRead =
      entry !== null &&
      readRecord(source, entry, record, root, up, message.arrivedAt, checks, context, reading)
    if (!isRead) {
      const { rejection } = context
      if (rejection.kind === 'ignored') {
        found.skipped = rejection.reason
        return null
      }
      const detail = `Record ${index + 1} of the message: ${rejection.detail}`
      return resultOf({ ...rejection, detail }, message, source, entry ?? route.entry)
    }
    if (source.thin !== null || source.merge !== null) {
      found.mapped.push({ entry, mapped: mappedRecordOf(source, entry, reading, message.arrivedAt) })
      return null
    }
    const payload = writePayload(source, entry, reading, message, index, found.names)
    if (payload === null) found.skipped = 'privacy'
    else found.payloads.push(payload)
    return null
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

function own({ captures }: Route, entry: DeviceEntry, placed: Placed): RawRecord {
  return { entry, captures, ...placed }
}
