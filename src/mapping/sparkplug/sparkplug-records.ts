// sparkplug-records.ts: groups the metrics of a payload by the moment at which they were measured.
//
//   [{ time: 1769611001000, historical: false, metrics: { "GPS/Latitude": 47.7, "GPS/Longitude": 1.49 } }]
//
// Nodes report changed values, each with a time of its own. So a position often is incomplete: a latitude
// alone, since the longitude did not change, or the two a millisecond apart. A coordinate is completed with
// the other one of the same message, if that is at most a second away, else with the last reported one, which
// by the rules of Sparkplug still holds.
//
// The last reported value does not hold for values that were measured before (historical) and for a kept
// message that is mapped again; after a restart it is unknown. It would give a place where the asset never
// was. A coordinate that nothing completes is therefore left out and counted, so that other values of the
// message (an odometer) are not lost with it.

import { quote } from '../../std/quote.ts'
import { setOwn } from '../path/path-eval.ts'
import type { Metric, Table } from './sparkplug-births.ts'
import {
  fits,
  valueOf,
  wireKindOf,
  type MetricValue,
  type WireMetric,
  type WirePayload,
} from './sparkplug-wire.ts'
import { unsignedOf } from '../protobuf/protobuf.ts'

export type SparkplugRecord = {
  /** Epoch milliseconds, decimal text beyond 2^53; null where neither metric nor payload has a time. */
  time: number | string | null
  /** Measured and kept by the node while it was offline. */
  historical: boolean
  metrics: Record<string, MetricValue>
}

/** `what`: what only a birth certificate can say, as the end of a sentence. */
export type Records =
  | {
      kind: 'records'
      records: readonly SparkplugRecord[]
      /** Positions that were left out since one coordinate is missing. */
      incompletePositions: number
    }
  | { kind: 'unexplained'; what: string }

/** Coordinates that are further apart belong to two positions. */
const togetherMs = 1000

/** The other coordinate is searched in so many records. */
const searchedMax = 8

/** `live`: the message comes now, and its values hold from now on. */
export function recordsOf(payload: WirePayload, table: Table | null, live: boolean): Records {
  const sorter: Sorter = { records: [], current: undefined, byTime: undefined }
  const payloadTime = timeOf(payload)
  for (const wire of payload.metrics) {
    const known = knownAs(wire, table)
    const name = wire.name === '' ? known?.name : wire.name
    if (name === undefined) return unexplained(`which metric ${aliasOf(wire)} is`)
    const kind = wireKindOf(wire)
    let { datatype } = wire
    if (datatype === 0) {
      if (!known && kind === 'whole') return unexplained(`of which type the metric ${quote(name, 80)} is`)
      if (known && !fits(kind, known.datatype))
        return unexplained(`why the metric ${quote(name, 80)} has a value of another type now`)
      datatype = known?.datatype ?? 0
    }
    const value = valueOf(wire, kind, datatype)
    if (value !== undefined) add(sorter, timeOf(wire) ?? payloadTime, wire.isHistorical, name, value)
  }
  const { records } = sorter
  if (!table || table.places.length === 0) return { kind: 'records', records, incompletePositions: 0 }
  let incompletePositions = 0
  for (const [latitude, longitude] of table.places)
    incompletePositions += completePositions(records, latitude, longitude, live)
  return {
    kind: 'records',
    records: records.filter(({ metrics }) => hasAny(metrics)),
    incompletePositions,
  }
}

type Sorter = {
  records: SparkplugRecord[]
  current: SparkplugRecord | undefined
  /** Made with the second moment, which most messages do not have. */
  byTime: Map<unknown, SparkplugRecord> | undefined
}

function add(
  sorter: Sorter,
  time: SparkplugRecord['time'],
  historical: boolean,
  name: string,
  value: MetricValue,
): void {
  let { current } = sorter
  if (current && (current.time !== time || current.historical !== historical)) {
    sorter.byTime ??= new Map([[keyOf(current.time, current.historical), current]])
    current = sorter.byTime.get(keyOf(time, historical))
  }
  // Two values of one metric at one moment are two readings.
  if (!current || Object.hasOwn(current.metrics, name)) {
    current = { time, historical, metrics: {} }
    sorter.byTime?.set(keyOf(time, historical), current)
    sorter.records.push(current)
  }
  sorter.current = current
  setOwn(current.metrics, name, value)
}

function keyOf(time: SparkplugRecord['time'], historical: boolean): unknown {
  return historical ? `before ${time}` : time
}

function unexplained(what: string): Records {
  return { kind: 'unexplained', what }
}

function knownAs(wire: WireMetric, table: Table | null): Metric | undefined {
  if (!table) return undefined
  if (wire.name !== '') return table.byName.get(wire.name)
  return Object.hasOwn(wire, 'alias') ? table.byAlias.get(unsignedOf(wire.alias)) : undefined
}

function aliasOf(wire: WireMetric): string {
  return Object.hasOwn(wire, 'alias') ? `with alias ${unsignedOf(wire.alias)}` : 'without name and alias'
}

function timeOf(of: WireMetric | WirePayload): number | string | null {
  const time = unsignedOf(of.timestamp)
  return time === 0 ? null : time
}

/** How many positions were left out. `live`: the last reported values still hold. */
function completePositions(
  records: readonly SparkplugRecord[],
  latitude: Metric,
  longitude: Metric,
  live: boolean,
): number {
  let leftOut = 0
  for (const [index, record] of records.entries()) {
    const { metrics, historical } = record
    const holds = live && !historical
    const hasLatitude = Object.hasOwn(metrics, latitude.name)
    const hasLongitude = Object.hasOwn(metrics, longitude.name)
    if (hasLatitude !== hasLongitude) {
      const [present, absent] = hasLatitude ? [latitude, longitude] : [longitude, latitude]
      const value = metrics[present.name] ?? null
      const later = laterCoordinate(records, index, present, absent)
      if (later) {
        setOwn(later.metrics, present.name, value)
        delete metrics[present.name]
        continue
      }
      if (holds) present.last = value
      // A coordinate of null means that there is no position.
      const other = value === null ? null : holds ? absent.last : undefined
      if (other === undefined) {
        delete metrics[present.name]
        leftOut += 1
      } else {
        setOwn(metrics, absent.name, other)
      }
    } else if (hasLatitude && holds) {
      latitude.last = metrics[latitude.name]
      longitude.last = metrics[longitude.name]
    }
  }
  return leftOut
}

/** A later record that has only the other coordinate, at nearly the same moment. */
function laterCoordinate(
  records: readonly SparkplugRecord[],
  index: number,
  present: Metric,
  absent: Metric,
) {
  const time = Number(records[index]?.time)
  const end = Math.min(records.length, index + 1 + searchedMax)
  for (let at = index + 1; at < end; at += 1) {
    const other = records[at]
    if (!other || other.historical !== records[index]?.historical) continue
    if (!Object.hasOwn(other.metrics, absent.name)) continue
    if (Object.hasOwn(other.metrics, present.name)) return undefined
    return Math.abs(Number(other.time) - time) <= togetherMs ? other : undefined
  }
  return undefined
}

function hasAny(metrics: Record<string, MetricValue>): boolean {
  for (const name in metrics) if (Object.hasOwn(metrics, name)) return true
  return false
}
