// sparkplug.ts: the encoding `sparkplug`: Sparkplug B (Eclipse Sparkplug 3.0), a decoder with memory.
//
//   NBIRTH, DBIRTH   list the metrics of a node or device: names, data types, aliases, and values
//   NDATA, DDATA     report changed values, usually by alias only
//   NDEATH, DDEATH   end what the births said
//
// A message becomes { records: [{ time, historical, metrics: { "GPS/Latitude": 47.7 } }] }, one record for
// each moment (sparkplug-records.ts). The topic names the node and the device.
//
// The births (sparkplug-births.ts) are durable: each change is a write that is committed with its message.
// Sequence numbers are not; after a restart they start anew.
//
// What can go wrong, and what then happens
//   data needs an unknown birth      refused as NO_BIRTH, with a rebirth request to the node. Data with names
//                                    and types of its own is used
//   a sequence number is missing     counted, rebirth request, the values are used
//   a value has another type         than its birth says, a birth was missed: NO_BIRTH. A wrong alias would
//                                    be a wrong odometer
//   a restart                        the known births are used, and each node gets one rebirth request
//   an NDEATH of an earlier birth    ignored: it is the will of a connection that was replaced long ago
//   a kept message is mapped again   (not `live`) decoded with the births of now; the memory does not change
//
// A node gets at most one rebirth request in `rebirthEveryMs`. Order matters: a bridge that shares a
// subscription over several connections makes gaps.

import type { BodyLimits } from '../body/body-limits.ts'
import type { EpochMs } from '../../std/clock.ts'
import { quote } from '../../std/quote.ts'
import { createCache } from '../bounded-cache.ts'
import { isRefused, unsignedOf } from '../protobuf/protobuf.ts'
import { refused } from '../reasons.ts'
import type {
  Decoded,
  DecodeWithMemory,
  Encoding,
  StatefulDecoded,
  StatefulDecoder,
  StateWrite,
} from '../types.ts'
import { birthKeyHead, createBirths, tableOf, type Node, type BirthNumber } from './sparkplug-births.ts'
import { recordsOf, type Records } from './sparkplug-records.ts'
import { valueOf, wireKindOf, encodeRebirth, readPayload, type WirePayload } from './sparkplug-wire.ts'

export const sparkplug = {
  description: 'Sparkplug B, with `records` that have their `metrics` by name',
  createDecoder: createSparkplugDecoder,
  stateKeyPrefix: birthKeyHead,
} as const satisfies Encoding

export type SparkplugOptions = {
  source: string
  nodesMax?: number
  bytesMax?: number
  rebirthEveryMs?: number
  limits?: BodyLimits
}

type SparkplugDecoder = Omit<StatefulDecoder, 'counters'> & { counters(): SparkplugCounters }

type SparkplugCounters = ReturnType<ReturnType<typeof createBirths>['counters']> & {
  /** Sequence numbers that were missed. */
  gaps: number
  rebirths: number
}

/** A message of a node or device. */
type Received = { topic: SparkplugTopic; payload: WirePayload; arrivedAt: EpochMs; live: boolean }

const mib = 1024 * 1024

/** Nodes whose last rebirth request is remembered; one that is forgotten may get another one sooner. */
const requestedMax = 4096

const noNumbers = { bdSeq: null, seq: null }

const death: Decoded = { kind: 'ignored', reason: 'death' }
const oldDeath: Decoded = { kind: 'ignored', reason: 'old death' }
const command: Decoded = { kind: 'ignored', reason: 'command' }
const hostState: Decoded = { kind: 'ignored', reason: 'host state' }
const empty: Decoded = { kind: 'empty' }
const otherTopic: Decoded = refused('BAD_FRAME', 'The topic is not a topic of Sparkplug B.')

/** `bytesMax` is about how much memory the births may take. */
export function createSparkplugDecoder({
  source,
  nodesMax = 10_000,
  bytesMax = 64 * mib,
  rebirthEveryMs = 60_000,
  limits,
}: SparkplugOptions): SparkplugDecoder {
  const births = createBirths({ source, nodesMax, bytesMax })
  const requestedAt = createCache<EpochMs>(requestedMax)
  let gaps = 0
  let rebirths = 0
  const decoders = { BIRTH: born, DATA: dataOf, DEATH: died }
  return {
    forTopic,
    restore: births.restore,
    counters: () => ({ ...births.counters(), gaps, rebirths }),
  }

  function forTopic(text: string): DecodeWithMemory {
    const topic = sparkplugTopicOf(text)
    if (topic === null) return () => otherTopic
    const { verb } = topic
    if (verb === 'STATE') return () => hostState
    if (verb === 'CMD') return () => command
    const decode = decoders[verb]
    return (bytes, arrivedAt, live) => {
      if (bytes.length === 0) return empty
      const payload = readPayload(bytes, limits)
      if (isRefused(payload)) return live ? withWrites(payload, unreadableBirth(topic)) : payload
      return decode({ topic, payload, arrivedAt, live })
    }
  }

  /** A birth that cannot be read still ends the birth before: its aliases no longer hold. */
  function unreadableBirth({ verb, nodeName, device }: SparkplugTopic): readonly StateWrite[] {
    return verb === 'BIRTH' ? births.died(nodeName, device) : []
  }

  /** Of a node or device. A birth explains its own values. */
  function born(received: Received): StatefulDecoded {
    const { topic, payload, live } = received
    const { nodeName, device } = topic
    const table = tableOf(payload.metrics)
    const read = recordsOf(payload, table, live)
    const decoded =
      read.kind === 'records' ? valueIn(read) : refused('BAD_FRAME', `The birth does not say ${read.what}.`)
    if (!live) return decoded
    const isInOrder = device === '' || follow(births.nodeOf(nodeName), payload)
    const ofNode = { bdSeq: birthNumberIn(payload), seq: sequenceIn(payload) }
    const writes = births.born(nodeName, device, table, device === '' ? ofNode : noNumbers)
    if (writes === null) return withWrites(tooLarge(placeOf(topic)), births.died(nodeName, device))
    const withBirth = withWrites(decoded, writes)
    return isInOrder ? withBirth : withRebirth(withBirth, received)
  }

  function died(received: Received): StatefulDecoded {
    const { topic, payload, live } = received
    const { nodeName, device } = topic
    if (!live) return death
    const node = births.nodeOf(nodeName)
    const isInOrder = device === '' || follow(node, payload)
    const numbers = [node?.bdSeq ?? null, birthNumberIn(payload)]
    const isOld = device === '' && !numbers.includes(null) && numbers[0] !== numbers[1]
    if (isOld) return oldDeath
    const decoded = withWrites(death, births.died(nodeName, device))
    return isInOrder ? decoded : withRebirth(decoded, received)
  }

  function dataOf(received: Received): StatefulDecoded {
    const { topic, payload, live } = received
    const { nodeName, device } = topic
    const node = births.nodeOf(nodeName)
    const table = node?.tables.get(device) ?? null
    const isInOrder = !live || follow(node, payload)
    const read = recordsOf(payload, table, live)
    if (read.kind === 'records') {
      const decoded = valueIn(read)
      return isInOrder && table ? decoded : withRebirth(decoded, received)
    }
    const place = quote(placeOf(topic), 120)
    const why = table
      ? `The birth certificate of ${place} does not explain`
      : `No birth certificate of ${place} is known that explains`
    const decoded: Decoded = refused('NO_BIRTH', `${why} ${read.what}.`)
    return live ? withRebirth(decoded, received) : decoded
  }

  /** Notes the sequence number; false where the node should get a rebirth request. */
  function follow(node: Node | undefined, payload: WirePayload): boolean {
    if (!node) return false
    const isKnown = !node.isRestored
    node.isRestored = false
    const seq = sequenceIn(payload)
    // The same number again is a message that was sent twice.
    if (seq === null || seq === node.seq) return isKnown
    const isNext = node.seq === null || seq === ((node.seq + 1) & 0xff)
    node.seq = seq
    if (!isNext) gaps += 1
    return isNext && isKnown
  }

  function withRebirth(decoded: StatefulDecoded, { topic, arrivedAt }: Received): StatefulDecoded {
    const last = requestedAt.get(topic.nodeName)
    // In both directions: the wall clock may have been set back.
    if (last !== undefined && Math.abs(arrivedAt - last) < rebirthEveryMs) return decoded
    requestedAt.set(topic.nodeName, arrivedAt)
    rebirths += 1
    return { ...decoded, rebirth: { topic: topic.commandTopic, bytes: encodeRebirth(arrivedAt) } }
  }
}

function valueIn({ records, incompletePositions }: Extract<Records, { kind: 'records' }>): StatefulDecoded {
  const decoded: Decoded = { kind: 'value', value: { records } }
  if (incompletePositions === 0) return decoded
  return { ...decoded, omitted: Array.from({ length: incompletePositions }, () => 'position|half') }
}

function withWrites(decoded: StatefulDecoded, writes: readonly StateWrite[]): StatefulDecoded {
  return writes.length === 0 ? decoded : { ...decoded, writes }
}

function placeOf({ nodeName, device }: SparkplugTopic): string {
  return device === '' ? nodeName : `${nodeName}/${device}`
}

function tooLarge(name: string): Decoded {
  const detail = `The birth of ${quote(name, 120)} has more, or longer, names than are remembered.`
  return refused('TOO_MANY', detail)
}

function sequenceIn(payload: WirePayload): number | null {
  return Object.hasOwn(payload, 'seq') ? payload.seq.low & 0xff : null
}

/** Null where the payload has none. */
function birthNumberIn(payload: WirePayload): BirthNumber {
  const metric = payload.metrics.find(({ name }) => name === 'bdSeq')
  if (!metric || wireKindOf(metric) !== 'whole') return null
  // Nodes write it as an integer of any type; a negative number is none.
  const value = Object.hasOwn(metric, 'longValue')
    ? unsignedOf(metric.longValue)
    : valueOf(metric, 'whole', metric.datatype)
  return typeof value === 'boolean' ? null : (value ?? null)
}

// The parts of a topic of Sparkplug B (specification 3.0, chapter 4).
//
//   spBv1.0/{group}/NBIRTH|NDATA|NDEATH|NCMD/{node}
//   spBv1.0/{group}/DBIRTH|DDATA|DDEATH|DCMD/{node}/{device}
//   spBv1.0/STATE/{host}   or   STATE/{host}, as before version 3
//
// Levels in front are skipped: a bridge may put the name of a broker there.

const namespace = 'spBv1.0'

type SparkplugTopic = {
  /** STATE: whether a host application is there. */
  verb: 'BIRTH' | 'DATA' | 'DEATH' | 'CMD' | 'STATE'
  /** `group/node`. */
  nodeName: string
  /** '' for messages of the node itself. */
  device: string
  /** Where a command to the node is published. */
  commandTopic: string
}

const verbOf = /^([ND])(BIRTH|DATA|DEATH|CMD)$/
const ofHost: SparkplugTopic = { verb: 'STATE', nodeName: '', device: '', commandTopic: '' }

/** Null where the topic is not a topic of Sparkplug B. */
export function sparkplugTopicOf(topic: string): SparkplugTopic | null {
  const levels = topic.split('/')
  const start = levels.indexOf(namespace)
  if (start === -1) return levels.length === 2 && levels[0] === 'STATE' ? ofHost : null
  const own = levels.slice(start + 1)
  const [group = '', word = '', node = '', device = ''] = own
  if (own.length === 2 && group === 'STATE') return ofHost
  const [, of, verb] = verbOf.exec(word) ?? []
  if (own.length !== (of === 'N' ? 3 : 4) || verb === undefined || own.includes('')) return null
  const commandTopic = [...levels.slice(0, start + 1), group, 'NCMD', node].join('/')
  return { verb: verb as SparkplugTopic['verb'], nodeName: `${group}/${node}`, device, commandTopic }
}
