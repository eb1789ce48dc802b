// topic-shapes.ts: what was heard, by the shape of its topics, in bounded memory.
//
// A shape is a topic whose levels that look like names of single devices are `+`: fleet/+/data. Levels that only
// turn out to be names, since many topics differ in nothing else and carry the same kind of message, become `+`
// when the listening is over.
//
// Bounds, and what happens there
//   topicsMax         further topics are no longer told apart: each message of one counts as a topic of its shape
//   shapesMax         messages of further shapes are counted as a whole
//   samplesMax        of each shape the first messages are kept, and the last one
//   sampleBytesMax    a larger message is counted only
//   bytesMax          of all that is kept together: then nothing more is

import { isUtf8 } from 'node:buffer'
import type { Message } from '../domain/message.ts'

export type TopicShape = {
  /** The topic filter: literal levels and `+`. */
  filter: string
  topics: number
  messages: number
  retained: number
  /** Published with QoS 0. */
  qos0: number
  /** Larger than what is looked at. */
  oversized: number
  samples: Message[]
  last: Message | null
}

export type ObservedTraffic = {
  messages: number
  bytes: number
  topics: number
  /** Whether there were more topics than are counted one by one. */
  moreTopics: boolean
  /** Messages whose shape was one too many. */
  unshaped: number
  shapes: TopicShape[]
}

export type Collector = {
  take(message: Message): void
  traffic(): ObservedTraffic
}

const topicsMax = 10_000
const shapesMax = 500
const samplesMax = 40
const sampleBytesMax = 65_536
const bytesMax = 32 * 1024 * 1024

export function createCollector(): Collector {
  const topics = new Set<string>()
  const shapes = new Map<string, TopicShape>()
  const counts = { messages: 0, bytes: 0, unshaped: 0 }
  let moreTopics = false
  let keptBytes = 0
  return { take, traffic: heard }

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

  function heard(): ObservedTraffic {
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
  return /^[a-z]+[a-z ]*([-_.:]\d+|\d{2,3})$/i.test(level) && !/^v[-_.]?\d+$/i.test(level)
}

/** So many topics that differ in one level only, with messages alike, make that level a name. */
const alikeMin = 5

function joined(shapes: readonly TopicShape[]): TopicShape[] {
  const keys = new Map(shapes.map((shape) => [shape, keysOf(shape.last)]))
  let left = [...shapes]
  const deepest = Math.max(0, ...shapes.map(({ filter }) => filter.split('/').length))
  // Level by level, so that a shape that was joined at one may be joined at the next.
  for (let at = 0; at < deepest; at += 1) {
    for (const [filter, members] of Map.groupBy(left, (shape) => openedAt(shape, at))) {
      const [first] = members
      if (filter === null || !first || members.length < alikeMin) continue
      const alike = new Set(members.filter((shape) => isAlike(keys.get(shape), keys.get(first))))
      if (alike.size < alikeMin) continue
      const sum = sumOf(filter, [...alike])
      keys.set(sum, keys.get(first) ?? [])
      left = [...left.filter((shape) => !alike.has(shape)), sum]
    }
  }
  return left.sort((a, b) => b.messages - a.messages)
}

/** The filter with a literal level opened; null where there is none at this place. */
function openedAt({ filter }: TopicShape, at: number): string | null {
  const levels = filter.split('/')
  const level = levels[at]
  return level === undefined || level === '' || level === '+' ? null : levels.with(at, '+').join('/')
}

/** Objects that share half of their keys. What sends bare values has its names in the topic. */
function isAlike(mine: readonly string[] = [], theirs: readonly string[] = []): boolean {
  if (mine.length === 0 || theirs.length === 0) return false
  const shared = mine.filter((key) => theirs.includes(key)).length
  return shared * 2 >= Math.max(mine.length, theirs.length)
}

function keysOf(message: Message | null): string[] {
  const value = message === null ? undefined : jsonIn(message.bytes)
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? Object.keys(value) : []
}

/** Undefined where the bytes are no JSON. */
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
