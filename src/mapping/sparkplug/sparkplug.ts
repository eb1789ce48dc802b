// sparkplug.ts: Sparkplug B (Eclipse Sparkplug 3.0), with the memory that its messages need.
//
//   NBIRTH, DBIRTH   say once which metrics a node or device has, of which type, under which alias; data as well
//   NDATA, DDATA     say what changed, as a rule by alias only
//   NDEATH, DDEATH   end what the births said
//
// What comes out: { records: [{ time, historical, metrics: { "GPS/Latitude": 47.7 } }] }, one record for each
// moment (sparkplug-records.ts). Which node and device it is stands in the topic.
//
// What it remembers (sparkplug-births.ts) is durable: a change of the births is told as `writes`, to be
// committed with the message that changed it. Sequence numbers are not; after a restart they start anew.
//
// What can go wrong, and what then happens
//   data needs a birth that is not known   refused as NO_BIRTH, with the node to ask for a rebirth. Data that
//                                          explains itself, by names and types, is used
//   a sequence number is missing           counted, the node asked for a rebirth, the values used
//   a value is not of the type of birth    a birth was missed: NO_BIRTH, since a wrong alias is a wrong odometer
//   a restart                              the births of before are used, and each node is asked once for a rebirth
//   an NDEATH of an earlier birth          ignored: the broker published the will of a connection long replaced
//   a message is read again later          (`live: false`: remap, release) with what is known now; it changes nothing
//
// A node is asked at most once in `rebirthEveryMs`. To ask is the caller's: publish `encodeRebirth` to the topic
// of the request. Order matters here: a bridge that shares a subscription over connections makes gaps.

import { assertNever } from '../../std/assert.ts'
import type { EpochMs } from '../../std/clock.ts'
import { quote } from '../../std/quote.ts'
import { createCache } from '../bounded-cache.ts'
import type { Decoded } from '../encodings/lenient-json.ts'
import type { StateWrite } from '../state/state-changes.ts'
import { createBirths, type Node } from './sparkplug-births.ts'
import { recordsOf, type Records } from './sparkplug-records.ts'
import { tableOf, type BirthNumber, type Table } from './sparkplug-table.ts'
import type { SparkplugTopic } from './sparkplug-topic.ts'
import { readPayload, unsignedOf, type WirePayload } from './sparkplug-wire.ts'
import { valueOf, wireKindOf } from './sparkplug-value.ts'

export { sparkplugTopicOf, type SparkplugTopic } from './sparkplug-topic.ts'
export { encodeRebirth } from './sparkplug-wire.ts'

/** `topic` is where to publish `encodeRebirth`. */
export type Rebirth = { group: string; node: string; topic: string }

export type SparkplugDecoded = Decoded & {
  /** To be committed with this message, whatever becomes of its records. */
  writes?: readonly StateWrite[]
  /** The node should be asked for its births. */
  rebirth?: Rebirth
  /** Halves of a position that were left out. */
  incompletePositions?: number
}

export type SparkplugCounters = {
  nodes: number
  devices: number
  /** About how much memory the births take. */
  bytes: number
  evictions: number
  /** Entries of the durable state that could not be read. */
  damaged: number
  /** Sequence numbers that were missed. */
  gaps: number
  rebirths: number
}

export type SparkplugDecoder = {
  /**
   * Total: throws for no bytes whatever. `topic` is null where it is none of Sparkplug. Without `live` nothing is
   * remembered of the message.
   */
  decode(bytes: Buffer, topic: SparkplugTopic | null, at: EpochMs, live: boolean): SparkplugDecoded
  /** Forgets everything and starts from these entries; entries of others are passed over. */
  restore(entries: Iterable<readonly [string, Buffer]>): void
  counters(): SparkplugCounters
}

export type SparkplugOptions = {
  source: string
  nodesMax?: number
  bytesMax?: number
  rebirthEveryMs?: number
}

const mib = 1024 * 1024

/** Nodes whose last request for a rebirth is remembered; one that is forgotten may be asked sooner. */
const askedMax = 4096

const death: Decoded = { kind: 'ignored', reason: 'death' }
const oldDeath: Decoded = { kind: 'ignored', reason: 'old death' }
const command: Decoded = { kind: 'ignored', reason: 'command' }
const hostState: Decoded = { kind: 'ignored', reason: 'host state' }
const empty: Decoded = { kind: 'empty' }

export function createSparkplugDecoder({
  source,
  nodesMax = 10_000,
  bytesMax = 64 * mib,
  rebirthEveryMs = 60_000,
}: SparkplugOptions): SparkplugDecoder {
  const births = createBirths({ source, nodesMax, bytesMax })
  const askedAt = createCache<EpochMs>(askedMax)
  let gaps = 0
  let rebirths = 0
  return {
    decode,
    restore: births.restore,
    counters: () => ({ ...births.counters(), gaps, rebirths }),
  }

  function decode(bytes: Buffer, topic: SparkplugTopic | null, at: EpochMs, live: boolean): SparkplugDecoded {
    if (topic === null)
      return { kind: 'refused', reason: 'BAD_FRAME', detail: 'The topic is none of Sparkplug B.' }
    const { verb } = topic
    if (verb === 'STATE') return hostState
    if (verb === 'NCMD' || verb === 'DCMD') return command
    if (bytes.length === 0) return empty
    const payload = readPayload(bytes)
    const name = `${topic.group}/${topic.node}`
    if ('kind' in payload) return live ? withWrites(payload, unreadable(name, topic)) : payload
    switch (verb) {
      case 'NBIRTH':
        return nodeBorn(name, payload, live)
      case 'DBIRTH':
        return deviceBorn(name, topic, payload, at, live)
      case 'NDEATH':
        return nodeDied(name, payload, live)
      case 'DDEATH':
        return deviceDied(name, topic, payload, at, live)
      case 'NDATA':
      case 'DDATA':
        return dataOf(name, topic, payload, at, live)
      default:
        return assertNever(verb)
    }
  }

  /** A birth that cannot be read ends the one before all the same: its aliases no longer hold. */
  function unreadable(name: string, { verb, device }: SparkplugTopic): readonly StateWrite[] {
    if (verb === 'NBIRTH') return births.nodeDied(name)
    return verb === 'DBIRTH' ? births.deviceDied(name, device) : []
  }

  function nodeBorn(name: string, payload: WirePayload, live: boolean): SparkplugDecoded {
    const table = tableOf(payload.metrics)
    const writes = live ? births.nodeBorn(name, table, birthNumberIn(payload), sequenceIn(payload)) : []
    return writes === null
      ? withWrites(tooLarge(name), births.nodeDied(name))
      : withWrites(certified(payload, table, live), writes)
  }

  function deviceBorn(
    name: string,
    topic: SparkplugTopic,
    payload: WirePayload,
    at: EpochMs,
    live: boolean,
  ): SparkplugDecoded {
    const table = tableOf(payload.metrics)
    if (!live) return certified(payload, table, live)
    const isInOrder = follow(births.nodeOf(name), payload)
    const writes = births.deviceBorn(name, topic.device, table)
    if (writes === null)
      return withWrites(tooLarge(`${name}/${topic.device}`), births.deviceDied(name, topic.device))
    const decoded = withWrites(certified(payload, table, live), writes)
    return isInOrder ? decoded : withRebirth(decoded, name, topic, at)
  }

  function nodeDied(name: string, payload: WirePayload, live: boolean): SparkplugDecoded {
    if (!live) return death
    const born = births.nodeOf(name)?.bdSeq ?? null
    const died = birthNumberIn(payload)
    if (born !== null && died !== null && born !== died) return oldDeath
    return withWrites(death, births.nodeDied(name))
  }

  function deviceDied(
    name: string,
    topic: SparkplugTopic,
    payload: WirePayload,
    at: EpochMs,
    live: boolean,
  ): SparkplugDecoded {
    if (!live) return death
    const isInOrder = follow(births.nodeOf(name), payload)
    const decoded = withWrites(death, births.deviceDied(name, topic.device))
    return isInOrder ? decoded : withRebirth(decoded, name, topic, at)
  }

  function dataOf(
    name: string,
    topic: SparkplugTopic,
    payload: WirePayload,
    at: EpochMs,
    live: boolean,
  ): SparkplugDecoded {
    const node = births.nodeOf(name)
    const table = (topic.device === '' ? node?.table : node?.devices.get(topic.device)) ?? null
    const isInOrder = !live || follow(node, payload)
    const read = recordsOf(payload, table, live)
    if (read.kind === 'records') {
      const decoded = valueIn(read)
      return isInOrder && table ? decoded : withRebirth(decoded, name, topic, at)
    }
    const place = quote(topic.device === '' ? name : `${name}/${topic.device}`, 120)
    const why = table ? `The birth certificate of ${place}` : `No birth certificate of ${place} is known that`
    const decoded: Decoded = {
      kind: 'refused',
      reason: 'NO_BIRTH',
      detail: `${why} ${table ? 'does not explain' : 'explains'} ${read.what}.`,
    }
    return live ? withRebirth(decoded, name, topic, at) : decoded
  }

  /** A birth explains its own values. */
  function certified(payload: WirePayload, table: Table, live: boolean): SparkplugDecoded {
    const read = recordsOf(payload, table, live)
    return read.kind === 'records'
      ? valueIn(read)
      : { kind: 'refused', reason: 'BAD_FRAME', detail: `The birth does not say ${read.what}.` }
  }

  /** Notes the sequence number; false where the node should be asked for a rebirth. */
  function follow(node: Node | undefined, payload: WirePayload): boolean {
    if (!node) return false
    const isKnown = !node.isRestored
    node.isRestored = false
    const seq = sequenceIn(payload)
    // The same again is a message that was sent twice.
    if (seq === null || seq === node.seq) return isKnown
    const isNext = node.seq === null || seq === ((node.seq + 1) & 0xff)
    node.seq = seq
    if (!isNext) gaps += 1
    return isNext && isKnown
  }

  function withRebirth(
    decoded: SparkplugDecoded,
    name: string,
    topic: SparkplugTopic,
    at: EpochMs,
  ): SparkplugDecoded {
    const last = askedAt.get(name)
    // Either way: the wall clock may have been set back.
    if (last !== undefined && Math.abs(at - last) < rebirthEveryMs) return decoded
    askedAt.set(name, at)
    rebirths += 1
    const { group, node, commandTopic } = topic
    return { ...decoded, rebirth: { group, node, topic: commandTopic } }
  }
}

function valueIn({
  records,
  incompletePositions: halves,
}: Extract<Records, { kind: 'records' }>): SparkplugDecoded {
  const decoded: Decoded = { kind: 'value', value: { records } }
  return halves === 0 ? decoded : { ...decoded, incompletePositions: halves }
}

function withWrites(decoded: SparkplugDecoded, writes: readonly StateWrite[]): SparkplugDecoded {
  return writes.length === 0 ? decoded : { ...decoded, writes }
}

function tooLarge(name: string): Decoded {
  const detail = `The birth of ${quote(name, 120)} has more, or longer, names than are remembered.`
  return { kind: 'refused', reason: 'TOO_MANY', detail }
}

function sequenceIn(payload: WirePayload): number | null {
  return Object.hasOwn(payload, 'seq') ? payload.seq.low & 0xff : null
}

/** Null where the payload has none. */
function birthNumberIn(payload: WirePayload): BirthNumber {
  const metric = payload.metrics.find(({ name }) => name === 'bdSeq')
  if (!metric || wireKindOf(metric) !== 'whole') return null
  // Of integers of any type; -1 and its like are none.
  const value = Object.hasOwn(metric, 'longValue')
    ? unsignedOf(metric.longValue)
    : valueOf(metric, 'whole', metric.datatype)
  return typeof value === 'boolean' ? null : (value ?? null)
}
