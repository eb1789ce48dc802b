// sparkplug-table.ts: the metrics of a birth certificate, in memory and as stored bytes.
//
// The bytes are JSON: { "v": 1, "bdSeq": 3, "metrics": [["GPS/Speed", 9, 4], ...] }: name, data type and
// alias of each metric, null for a metric without alias. Other bytes are damaged.

import { z } from 'zod'
import { unsignedOf } from '../protobuf/protobuf.ts'
import type { WireMetric } from './sparkplug-wire.ts'
import type { MetricValue } from './sparkplug-value.ts'

/** An integer of 64 bits: a number, or decimal text beyond 2^53. */
type Alias = number | string

export type Metric = {
  name: string
  datatype: number
  alias: Alias | null
  /** Of latitudes and longitudes only: the last reported value; undefined where it is unknown. */
  last: MetricValue | undefined
}

export type Table = {
  byAlias: ReadonlyMap<Alias, Metric>
  byName: ReadonlyMap<string, Metric>
  /** Latitudes and longitudes that belong together by their names. */
  places: readonly (readonly [Metric, Metric])[]
  /** About how many bytes of memory it takes. */
  bytes: number
}

/** Ties the death certificate of a node to its birth; null where the birth has none. */
export type BirthNumber = number | string | null

const version = 1
const tableBytes = 512
const metricBytes = 256
const placesMax = 16

export function tableOf(wire: readonly WireMetric[]): Table {
  const metrics: Metric[] = []
  for (const metric of wire) {
    // A metric without a name cannot be used.
    if (metric.name === '') continue
    const alias = Object.hasOwn(metric, 'alias') ? unsignedOf(metric.alias) : null
    metrics.push({ name: metric.name, datatype: metric.datatype, alias, last: undefined })
  }
  return tableOfMetrics(metrics)
}

function tableOfMetrics(metrics: readonly Metric[]): Table {
  const byAlias = new Map<Alias, Metric>()
  const byName = new Map<string, Metric>()
  let bytes = tableBytes
  for (const metric of metrics) {
    byName.set(metric.name, metric)
    if (metric.alias !== null) byAlias.set(metric.alias, metric)
    bytes += metricBytes + 2 * metric.name.length
  }
  return { byAlias, byName, places: placesIn(byName), bytes }
}

const words: readonly (readonly [string, readonly string[]])[] = [
  ['latitude', ['longitude']],
  ['lat', ['lon', 'lng', 'long']],
]

/** Pairs such as `GPS/Latitude` and `GPS/Longitude`, `pos.lat` and `pos.lon`. */
function placesIn(byName: ReadonlyMap<string, Metric>): [Metric, Metric][] {
  const longitudes = new Map<string, Metric>()
  const latitudes: [string, Metric][] = []
  for (const metric of byName.values()) {
    const name = metric.name.toLowerCase()
    if (name.includes('lat')) latitudes.push([name, metric])
    else if (name.includes('lon') || name.includes('lng')) longitudes.set(name, metric)
  }
  const places: [Metric, Metric][] = []
  for (const [name, latitude] of latitudes) {
    const longitude = longitudeOf(name, longitudes)
    if (longitude && places.length < placesMax) places.push([latitude, longitude])
  }
  return places
}

function longitudeOf(latitude: string, longitudes: ReadonlyMap<string, Metric>): Metric | undefined {
  for (const [word, others] of words) {
    const at = latitude.lastIndexOf(word)
    if (at === -1) continue
    for (const other of others) {
      const found = longitudes.get(latitude.slice(0, at) + other + latitude.slice(at + word.length))
      if (found) return found
    }
  }
  return undefined
}

export function encodeTable({ byName }: Table, bdSeq: BirthNumber): Buffer {
  const metrics = Array.from(byName.values(), ({ name, datatype, alias }) => [name, datatype, alias])
  return Buffer.from(JSON.stringify({ v: version, bdSeq, metrics }))
}

const number = z.union([z.number(), z.string(), z.null()])

const stored = z.object({
  v: z.literal(version),
  bdSeq: number,
  metrics: z.array(z.tuple([z.string(), z.number(), number])),
})

/** Undefined where the bytes are damaged or of another version. */
export function decodeTable(bytes: Buffer): { table: Table; bdSeq: BirthNumber } | undefined {
  const read = stored.safeParse(parsed(bytes.toString()))
  if (!read.success) return undefined
  const metrics = read.data.metrics.map(([name, datatype, alias]) => ({
    name,
    datatype,
    alias,
    last: undefined,
  }))
  return { table: tableOfMetrics(metrics), bdSeq: read.data.bdSeq }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    return undefined
  }
}
