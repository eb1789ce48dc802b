// sparkplug-births.ts: the metrics of a birth certificate, in memory and as stored bytes; and below,
// the births of all nodes and devices of a source.
//
// The bytes are JSON: { "v": 1, "bdSeq": 3, "metrics": [["GPS/Speed", 9, 4], ...] }: name, data type and
// alias of each metric, null for a metric without alias. Other bytes are damaged.

import { z } from 'zod'
import { unsignedOf } from '../protobuf/protobuf.ts'
import type { MetricValue, WireMetric } from './sparkplug-wire.ts'
import type { StateWrite } from '../types.ts'

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

function encodeTable({ byName }: Table, bdSeq: BirthNumber): Buffer {
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
function decodeTable(bytes: Buffer): { table: Table; bdSeq: BirthNumber } | undefined {
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

// The births of the nodes and devices of one source, in memory and as durable state.
//
//   sparkplug/{source}/{group}/{node}            the table of the node's birth
//   sparkplug/{source}/{group}/{node}/{device}   the table of the device's birth
//
// A birth or death of a node ends what was known of it and its devices. Each change of the memory is a list
// of writes that belong to the message: they are durable in one commit, or the memory is dropped and
// `restore` starts from the store.
//
// The memory is bounded by `bytesMax` and `nodesMax`. Beyond, the nodes with the oldest births are forgotten,
// counted as evictions; their next message causes a rebirth request.

export type Node = {
  /** Of its own birth by '', of those of its devices by their names. */
  tables: Map<string, Table>
  bdSeq: BirthNumber
  /** Sequence number of the last message; null where none came since the birth or the start. */
  seq: number | null
  /** Restored after a restart: a birth may have been missed meanwhile. */
  isRestored: boolean
  bytes: number
}

type BirthNumbers = Pick<Node, 'bdSeq' | 'seq'>

type BirthsOptions = { source: string; nodesMax: number; bytesMax: number }

/** The start of the keys of births. */
export const birthKeyHead = 'sparkplug/'

/** Characters of the key of a state entry. */
const keyLengthMax = 512

const nodeBytes = 512

export function createBirths({ source, nodesMax, bytesMax }: BirthsOptions) {
  const prefix = `${birthKeyHead}${source.replaceAll('%', '%25').replaceAll('/', '%2F')}/`
  /** By `group/node`, in the order of their births. */
  const nodes = new Map<string, Node>()
  let bytes = 0
  let evictions = 0
  let damaged = 0
  return { nodeOf: (name: string) => nodes.get(name), born, died, restore, counters }

  /**
   * The writes for the birth of a device, or of the node itself (''). Null where it is too large to be
   * remembered. The node of a device may be unknown because its birth was missed.
   */
  function born(name: string, device: string, table: Table, numbers: BirthNumbers): StateWrite[] | null {
    const key = keyOf(name, device)
    const known = device === '' ? undefined : nodes.get(name)
    const others = (known?.bytes ?? nodeBytes) - (known?.tables.get(device)?.bytes ?? 0)
    if (key.length > keyLengthMax || others + table.bytes > bytesMax) return null
    const writes = device === '' ? died(name, '') : []
    put(name, device, table, numbers)
    writes.push({ key, value: encodeTable(table, numbers.bdSeq) })
    return evicted(name, writes)
  }

  /** The writes for the death of a device, or of the node (''), which ends its devices, too. */
  function died(name: string, device: string): StateWrite[] {
    const node = nodes.get(name)
    if (node === undefined) return []
    const gone = device === '' ? [...node.tables.keys()] : [device].filter((one) => node.tables.has(one))
    for (const one of gone) {
      resize(node, -node.tables.get(one)!.bytes)
      node.tables.delete(one)
    }
    if (device === '') {
      nodes.delete(name)
      bytes -= nodeBytes
    }
    return gone.map((one) => ({ key: keyOf(name, one), value: null }))
  }

  function put(name: string, device: string, table: Table, { bdSeq, seq }: BirthNumbers): Node {
    let node = nodes.get(name)
    if (node === undefined) {
      node = { tables: new Map(), bdSeq: null, seq: null, isRestored: false, bytes: 0 }
      nodes.set(name, node)
      resize(node, nodeBytes)
    }
    if (device === '') Object.assign(node, { bdSeq, seq })
    resize(node, table.bytes - (node.tables.get(device)?.bytes ?? 0))
    node.tables.set(device, table)
    return node
  }

  function resize(node: Node, growth: number): void {
    node.bytes += growth
    bytes += growth
  }

  function keyOf(name: string, device: string): string {
    return prefix + name + (device === '' ? '' : `/${device}`)
  }

  /** Forgets the oldest births until the rest fits; never the current node. */
  function evicted(current: string, writes: StateWrite[]): StateWrite[] {
    if (nodes.size <= nodesMax && bytes <= bytesMax) return writes
    for (const name of nodes.keys()) {
      if (name === current) continue
      writes.push(...died(name, ''))
      evictions += 1
      if (nodes.size <= nodesMax && bytes <= bytesMax) break
    }
    return writes
  }

  /** Forgets everything and starts from these entries; ignores entries of others. */
  function restore(entries: Iterable<readonly [string, Buffer]>): void {
    nodes.clear()
    bytes = 0
    for (const [key, value] of entries) {
      if (!key.startsWith(prefix)) continue
      const [group, nodeName, device = '', ...more] = key.slice(prefix.length).split('/')
      const read = decodeTable(value)
      if (!group || !nodeName || more.length > 0 || !read) {
        damaged += 1
        continue
      }
      const name = `${group}/${nodeName}`
      put(name, device, read.table, { bdSeq: read.bdSeq, seq: null }).isRestored = true
      evicted(name, [])
    }
  }

  function counters() {
    let tables = 0
    let births = 0
    for (const node of nodes.values()) {
      tables += node.tables.size
      births += node.tables.has('') ? 1 : 0
    }
    return { nodes: nodes.size, devices: tables - births, bytes, evictions, damaged }
  }
}
