// topic-shapes.ts: collects traffic by the shape of its topics, in bounded memory.
//
// A shape is a topic with `+` for levels that look like names of single devices: fleet/+/data. A level that
// only turns out to be a name, because many topics differ only there and have the same kind of message,
// becomes `+` at the end.
//
// Bounds
//   topicsMax         topics beyond it are not counted: each message on one counts for its shape only
//   shapesMax         messages of shapes beyond it are only counted in total
//   samplesMax        the first messages of each shape are kept, and the last one
//   sampleBytesMax    a larger message is only counted
//   bytesMax          of all kept messages: then no more are kept

import { isUtf8 } from 'node:buffer'
import type { Message } from '../domain/message.ts'

/** Messages on topics of one form. */
export type TopicShape = {
  /** The topic filter: literal levels and `+`. */
  filter: string
  topics: number
  messages: number
  retained: number
  /** Published with QoS 0. */
  qos0: number
  /** Larger than a sample may be. */
  oversized: number
  samples: Message[]
  last: Message | null
}

export type ObservedTraffic = {
  messages: number
  bytes: number
  topics: number
  /** There were more topics than are counted one by one. */
  moreTopics: boolean
  /** Messages of shapes beyond the bound. */
  unshaped: number
  shapes: TopicShape[]
}

const topicsMax = 10_000
const shapesMax = 500
const samplesMax = 40
const sampleBytesMax = 65_536
const bytesMax = 32 * 1024 * 1024

export function createCollector() {
  const topics = new Set<string>()
  const shapes = new Map<string, TopicShape>()
  const counts = { messages: 0, bytes: 0, unshaped: 0 }
  let moreTopics = false
  let keptBytes = 0
  return { take, traffic }

  function take(message: Message): void {
    const { topic, bytes, qos, retain } = message
    counts.messages += 1
    counts.bytes += bytes.length
    const isNew = !topics.has(topic)
    if (isNew && topics.size < topicsMax) topics.add(topic)
    else if (isNew) moreTopics = true
    const shape = shapeOf(filterOf(topic))
    if (shape === null) {
      counts.unshaped += 1
      return
    }
    if (isNew) shape.topics += 1
    shape.messages += 1
    if (retain) shape.retained += 1
    if (qos === 0) shape.qos0 += 1
    if (bytes.length > sampleBytesMax) shape.oversized += 1
    else keep(shape, message)
  }

  function shapeOf(filter: string): TopicShape | null {
    const known = shapes.get(filter)
    if (known || shapes.size >= shapesMax) return known ?? null
    const shape = newShape(filter)
    shapes.set(filter, shape)
    return shape
  }

  function keep(shape: TopicShape, message: Message): void {
    const freed = shape.last === null ? 0 : shape.last.bytes.length
    const { length } = message.bytes
    const isSample = shape.samples.length < samplesMax
    if (keptBytes + length * (isSample ? 2 : 1) - freed > bytesMax) return
    shape.last = message
    keptBytes += length - freed
    if (!isSample) return
    shape.samples.push(message)
    keptBytes += length
  }

  function traffic(): ObservedTraffic {
    const all = [...shapes.values()].sort((a, b) => b.messages - a.messages)
    return { ...counts, topics: topics.size, moreTopics, shapes: joined(all) }
  }
}

function newShape(filter: string): TopicShape {
  return { filter, topics: 0, messages: 0, retained: 0, qos0: 0, oversized: 0, samples: [], last: null }
}

function filterOf(topic: string): string {
  return topic
    .split('/')
    .map((level) => (looksLikeName(level) ? '+' : level))
    .join('/')
}

/** IMEI, EUI, UUID, MAC, VIN, `truck-7`, `box_1234`; not a version such as `v1`. */
export function looksLikeName(level: string): boolean {
  if (/\d{4}/.test(level)) return true
  if (/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(level)) return true
  if (/^!?[0-9a-f]{8,}$/i.test(level) && /\d/.test(level)) return true
  if (/^[0-9a-f]{2}([:-][0-9a-f]{2}){5}$/i.test(level)) return true
  if (vehicleName.test(level)) return true
  return /^[a-z][a-z ]*([-_.:]\d+|\d{2,3})$/i.test(level) && !/^v[-_.]?\d+$/i.test(level)
}

/** One digit is enough behind such a word: `truck0`, `bus7`. */
const vehicleName =
  /^(e?truck|lorry|van|e?bus|tram|car|cab|taxi|vehicle|veh|trailer|tractor|unit|device|dev|tracker|asset|box|boat|ship|machine|excavator|crane|forklift|terminal|lkw|pkw|kfz|fahrzeug|camion|phone|tag|bike|scooter)[-_.: ]?\d+$/i

/** Levels that say what a message is about, and name no device. */
const ordinaryWords = new Set(
  (
    'data telemetry position positions location locations loc pos gps gnss nmea status state states event events ' +
    'up uplink down tx rx out in msg message messages json raw bin live report reports reported track tracks ' +
    'tracking tracker trackers vehicle vehicles truck trucks fleet fleets device devices dev sensor sensors ' +
    'car cars bus buses van vans obd can info values attributes attribute update updates iot mqtt api pub ' +
    'public test prod demo home feed current last latest all batch history engine fuel speed alarm alarms ' +
    'alert alerts trip trips shadow cmd commands response config'
  ).split(' '),
)

export function isOrdinaryWord(level: string): boolean {
  return level === '' || ordinaryWords.has(level.toLowerCase()) || /^v?[-_.]?\d{1,2}$/i.test(level)
}

/** `7` of `trucks/7/pos`: a device of a small fleet, or a version. */
export function isShortNumber(level: string): boolean {
  return /^\d{1,2}$/.test(level)
}

/** This many shapes that differ only in one level and have similar messages make that level a name. */
const alikeMin = 5

/** So many are enough where the messages have the same keys and the levels are no ordinary words. */
const sameMin = 2
const sameKeysMin = 3

function joined(shapes: readonly TopicShape[]): TopicShape[] {
  const keys = new Map(shapes.map((shape) => [shape, keysOf(shape.last)]))
  let left = [...shapes]
  const deepest = Math.max(0, ...shapes.map(({ filter }) => filter.split('/').length))
  // Level by level, so that a shape joined at one level may be joined at the next.
  for (let at = 0; at < deepest; at += 1) {
    for (const [filter, members] of Map.groupBy(left, (shape) => widenedAt(shape, at))) {
      const [first] = members
      if (filter === null || !first || members.length < sameMin) continue
      const own = keys.get(first)
      const few = members.filter((shape) => isSame(keys.get(shape), own) && mayBeName(levelOf(shape, at)))
      const many = members.filter((shape) => isAlike(keys.get(shape), own))
      const alike = new Set(many.length >= alikeMin ? many : few)
      if (alike.size < sameMin) continue
      const sum = sumOf(filter, [...alike])
      keys.set(sum, keys.get(first) ?? [])
      left = [...left.filter((shape) => !alike.has(shape)), sum]
    }
  }
  return left.sort((a, b) => b.messages - a.messages)
}

/** The filter with `+` for a literal level; null where that level is not literal. */
function widenedAt({ filter }: TopicShape, at: number): string | null {
  const levels = filter.split('/')
  const level = levels[at]
  return level === undefined || level === '' || level === '+' ? null : levels.with(at, '+').join('/')
}

function mayBeName(level: string): boolean {
  return !isOrdinaryWord(level) || isShortNumber(level)
}

function levelOf({ filter }: TopicShape, at: number): string {
  return filter.split('/')[at] ?? ''
}

/** Objects of which nearly all keys are the same, and enough of them. */
function isSame(mine: readonly string[] = [], theirs: readonly string[] = []): boolean {
  const shared = mine.filter((key) => theirs.includes(key)).length
  return shared >= sameKeysMin && shared * 5 >= Math.max(mine.length, theirs.length) * 4
}

/** Objects that share half of their keys. Plain values are never alike: their names are in the topic. */
function isAlike(mine: readonly string[] = [], theirs: readonly string[] = []): boolean {
  if (mine.length === 0 || theirs.length === 0) return false
  const shared = mine.filter((key) => theirs.includes(key)).length
  return shared * 2 >= Math.max(mine.length, theirs.length)
}

function keysOf(message: Message | null): string[] {
  const value = message === null ? undefined : jsonIn(message.bytes)
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? Object.keys(value) : []
}

/** Undefined for bytes that are not JSON. */
export function jsonIn(bytes: Buffer): unknown {
  if (!isUtf8(bytes)) return undefined
  try {
    return JSON.parse(bytes.toString()) as unknown
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}

function sumOf(filter: string, shapes: readonly TopicShape[]): TopicShape {
  const sum = newShape(filter)
  for (const shape of shapes) {
    sum.topics += shape.topics
    sum.messages += shape.messages
    sum.retained += shape.retained
    sum.qos0 += shape.qos0
    sum.oversized += shape.oversized
    if (shape.last && shape.last.arrivedAt >= (sum.last?.arrivedAt ?? 0)) sum.last = shape.last
  }
  sum.samples = shapes
    .flatMap(({ samples }) => samples)
    .sort((a, b) => a.arrivedAt - b.arrivedAt)
    .slice(0, samplesMax)
  return sum
}
