// recent-messages.ts: the last messages of each device, raw, in memory. What a message became is not kept: it
// is mapped again when a person asks.
//
//   ring of a device   | bytes | bytes | ... |   overwritten from the start when it is full
//   heads              one for each of the last messages: where its bytes start, and its numbers
//   topics             of these messages; a head has the index of one
//
// What is written for a message is some numbers and one copy of its bytes; nothing is allocated. Only the
// first messages of a device are: its ring begins with room for a few and doubles until it has `ringBytes`.
//
// A device keeps `messagesKept`, as many as its ring has room for, and at most `perSecondMax` of one second:
// so a device that floods costs no more than a counter. A message is cut at `messageBytesMax`.
//
// Of more than `allPerSecondMax` messages a second over all devices, the rest are not kept, and counted. All
// rings together have at most `bytesMax`. Rings double only until half of that is used; the rest is for
// devices that come then, with their last two or three messages, and for messages that are longer than their
// ring. At the bound a new device gets the ring of one that sent nothing for ten minutes, or it has none,
// which is counted.

import type { Message, QoS } from '../domain/message.ts'
import type { EpochMs } from '../std/clock.ts'

export type RecentKind = 'payloads' | 'ignored' | 'part' | 'deferred' | 'quarantined' | 'unmappable'

export type RecentMessage = Pick<Message, 'topic' | 'qos' | 'dup' | 'retain' | 'arrivedAt'> & {
  /** A copy. */
  bytes: Buffer
  cutBytes: number
  serial: number
  /** True time minus the arrival, as it was known then; null where it was unknown. */
  offsetMs: number | null
  became: RecentKind
}

/** Belongs to a device. */
export type MessageRing = {
  bytes: Buffer
  /** The last message is at `count % messagesKept`. */
  readonly heads: Float64Array
  readonly topics: string[]
  count: number
  /** Where the next message starts: in the bytes, and as a position that only grows. */
  at: number
  end: number
  lastAt: EpochMs
  secondAt: EpochMs
  inSecond: number
  /** Messages that were not kept because of `perSecondMax`. */
  skipped: number
  owner: RingOwner | null
}

export type RingOwner = { ring: MessageRing | null }

export type RecentMessages = {
  add(owner: RingOwner, message: Message, became: RecentKind): void
  /** The newest first. */
  of(owner: RingOwner): readonly RecentMessage[]
  drop(owner: RingOwner): void
  counters(): { rings: number; ringBytes: number; notKept: number }
}

const messagesKept = 20
const perSecondMax = 20
/** With the heads about 8 KiB. */
const ringBytes = 7168
const messageBytesMax = 2048
/** The topic in messages that came under more topics than these. */
const topicsMax = 16
const otherTopic = 'one of many topics'

const head = {
  /** As `end` of the ring. */
  start: 0,
  arrivedAt: 1,
  /** NaN where it was unknown. */
  offsetMs: 2,
  bytes: 3,
  cutBytes: 4,
  serial: 5,
  topic: 6,
  /** Index of the kind, and QoS, DUP, RETAIN. */
  flags: 7,
} as const
const headLength = 8
const ringBytesAtFirst = 896
const memoryOfHeads = messagesKept * headLength * 8
const memoryAtFirst = ringBytesAtFirst + memoryOfHeads
/** Of all devices. A gateway that takes more has no time to keep what few people ask for. */
const allPerSecondMax = 5000
const quietMs = 600_000
/** Rings that are looked at for one to take, and messages between two looks. */
const lookedAt = 16
const messagesBetweenLooks = 100

const kinds: readonly RecentKind[] = ['payloads', 'ignored', 'part', 'deferred', 'quarantined', 'unmappable']

export function createRecentMessages({ bytesMax }: { bytesMax: number }): RecentMessages {
  /** Rings grow up to it. */
  const growthMax = bytesMax / 2
  const rings: MessageRing[] = []
  const free: MessageRing[] = []
  /** Of all rings; at most `bytesMax`. */
  let memory = 0
  let hand = 0
  let untilLook = 0
  let notKept = 0
  let second = 0
  let inThisSecond = 0
  return {
    add,
    of,
    drop,
    counters: () => ({ rings: rings.length - free.length, ringBytes: memory, notKept }),
  }

  function add(owner: RingOwner, message: Message, became: RecentKind): void {
    const { arrivedAt } = message
    if (arrivedAt - second >= 1000 || arrivedAt < second) {
      second = arrivedAt
      inThisSecond = 0
    }
    inThisSecond += 1
    if (inThisSecond > allPerSecondMax) {
      notKept += 1
      return
    }
    const ring = owner.ring ?? ringFor(owner, arrivedAt)
    if (ring === null) {
      notKept += 1
      return
    }
    ring.lastAt = arrivedAt
    if (arrivedAt - ring.secondAt >= 1000 || arrivedAt < ring.secondAt) {
      ring.secondAt = arrivedAt
      ring.inSecond = 0
    }
    ring.inSecond += 1
    if (ring.inSecond > perSecondMax) {
      ring.skipped += 1
      return
    }
    const wanted = Math.min(message.bytes.length, messageBytesMax)
    if (ring.at + wanted > ring.bytes.length)
      memory += grow(ring, wanted, growthMax - memory, bytesMax - memory)
    write(ring, message, kinds.indexOf(became))
  }

  function ringFor(owner: RingOwner, now: EpochMs): MessageRing | null {
    const ring = free.pop() ?? newRing() ?? quietRing(now)
    if (ring === null) return null
    if (ring.owner !== null) ring.owner.ring = null
    ring.topics.length = 0
    Object.assign(ring, { count: 0, at: 0, end: 0, secondAt: 0, inSecond: 0, skipped: 0, owner })
    owner.ring = ring
    return ring
  }

  function newRing(): MessageRing | null {
    if (memory + memoryAtFirst > bytesMax) return null
    const ring: MessageRing = {
      bytes: Buffer.allocUnsafeSlow(ringBytesAtFirst),
      heads: new Float64Array(messagesKept * headLength),
      topics: [],
      count: 0,
      at: 0,
      end: 0,
      lastAt: 0,
      secondAt: 0,
      inSecond: 0,
      skipped: 0,
      owner: null,
    }
    rings.push(ring)
    memory += memoryAtFirst
    return ring
  }

  function quietRing(now: EpochMs): MessageRing | null {
    if (rings.length === 0) return null
    if (untilLook > 0) {
      untilLook -= 1
      return null
    }
    for (let step = 0; step < lookedAt; step += 1) {
      const ring = rings[hand]
      hand = (hand + 1) % rings.length
      if (ring !== undefined && now - ring.lastAt >= quietMs) return ring
    }
    untilLook = messagesBetweenLooks
    return null
  }

  function drop(owner: RingOwner): void {
    const { ring } = owner
    if (ring === null) return
    owner.ring = null
    ring.owner = null
    ring.bytes.fill(0)
    ring.topics.length = 0
    free.push(ring)
  }

  function of({ ring }: RingOwner): readonly RecentMessage[] {
    if (ring === null) return []
    const found: RecentMessage[] = []
    const newest = ring.count - 1
    for (let number = newest; number >= 0 && number > newest - messagesKept; number -= 1) {
      const at = (number % messagesKept) * headLength
      // Newer messages were written over it.
      if (ring.heads[at + head.start]! < ring.end - ring.bytes.length) break
      found.push(read(ring, at))
    }
    return found
  }
}

function write(ring: MessageRing, message: Message, kind: number): void {
  const { heads, bytes } = ring
  const { bytes: content, topic, arrival, serial = 0, qos, dup, retain } = message
  const kept = Math.min(content.length, messageBytesMax, bytes.length)
  let start = ring.at
  if (start + kept > bytes.length) {
    ring.end += bytes.length - start
    start = 0
  }
  ring.at = start + kept
  if (kept === content.length) bytes.set(content, start)
  else content.copy(bytes, start, 0, kept)
  const at = (ring.count % messagesKept) * headLength
  heads[at + head.start] = ring.end
  heads[at + head.arrivedAt] = message.arrivedAt
  heads[at + head.offsetMs] = arrival?.offsetMs ?? Number.NaN
  heads[at + head.bytes] = kept
  heads[at + head.cutBytes] = content.length - kept
  heads[at + head.serial] = serial
  heads[at + head.topic] = topicIndex(ring.topics, topic)
  heads[at + head.flags] = (kind << 4) | qos | (dup ? 4 : 0) | (retain ? 8 : 0)
  ring.count += 1
  ring.end += kept
}

/**
 * For a message of `wanted` bytes that does not fit behind the others. A ring doubles until it is written
 * over: from then on a position is the remainder of its length. One that is shorter than the message is
 * emptied for it. Returns by how many bytes the ring grew: at most `room` where it doubles, else `roomInAll`.
 */
function grow(ring: MessageRing, wanted: number, room: number, roomInAll: number): number {
  const { length } = ring.bytes
  const doubled = Math.min(ringBytes, Math.max(ring.at + wanted, length * 2))
  if (ring.end === ring.at && doubled > length && doubled - length <= room) {
    const larger = Buffer.allocUnsafeSlow(doubled)
    ring.bytes.copy(larger, 0, 0, ring.at)
    ring.bytes = larger
    return doubled - length
  }
  if (wanted <= length || wanted - length > roomInAll) return 0
  ring.bytes = Buffer.allocUnsafeSlow(wanted)
  ring.topics.length = 0
  Object.assign(ring, { count: 0, at: 0, end: 0 })
  return wanted - length
}

/** Usually there is one. -1 for a topic beyond the bound. */
function topicIndex(topics: string[], topic: string): number {
  for (let index = 0; index < topics.length; index += 1) if (topics[index] === topic) return index
  return topics.length < topicsMax ? topics.push(topic) - 1 : -1
}

function read({ bytes, heads, topics }: MessageRing, at: number): RecentMessage {
  const start = heads[at + head.start]! % bytes.length
  const flags = heads[at + head.flags]!
  const offsetMs = heads[at + head.offsetMs]!
  return {
    topic: topics[heads[at + head.topic]!] ?? otherTopic,
    bytes: Buffer.from(bytes.subarray(start, start + heads[at + head.bytes]!)),
    cutBytes: heads[at + head.cutBytes]!,
    qos: (flags & 3) as QoS,
    dup: (flags & 4) !== 0,
    retain: (flags & 8) !== 0,
    arrivedAt: heads[at + head.arrivedAt]!,
    serial: heads[at + head.serial]!,
    offsetMs: Number.isNaN(offsetMs) ? null : offsetMs,
    became: kinds[flags >> 4] ?? 'payloads',
  }
}
