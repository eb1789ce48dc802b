// message-ring.ts: messages of one device in a circle of blocks (message-blocks.ts), overwritten from the
// oldest on. What is written for a message is some numbers and one copy of its bytes; nothing is allocated.
//
//   | head | bytes | head | bytes | ...   a head is in one block, its bytes are in up to three
//   topics                                of these messages; a head has the index of one
//
// A ring begins with one block and gets another one where the next message needs it, until it has
// `blocksMax`.

import type { Message, QoS } from '../../domain/message.ts'
import type { EpochMs } from '../../std/clock.ts'
import { blockBytes, type MessageBlocks } from './message-blocks.ts'

export type RecentKind = 'payloads' | 'ignored' | 'part' | 'quarantined' | 'unmappable'

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
  /** The block of the next message, and where the message starts in it. */
  block: number
  at: number
  blocks: number
  /** Blocks behind it without a message. */
  unused: number
  /** Where the next message starts, as a position that only grows: of the bytes written, with gaps. */
  end: number
  /** Positions before it were overwritten. */
  from: number
  /** Of the newest message: its head, in units of 8 bytes of all blocks, and its position. */
  head: number
  start: number
  count: number
  /** Of the first message, and those of others. */
  topic: string
  otherTopics: string[] | null
  lastAt: EpochMs
  secondAt: EpochMs
  inSecond: number
  /** Messages that were not kept because of `perSecondMax`. */
  skipped: number
  owner: RingOwner | null
}

export type RingOwner = { ring: MessageRing | null }

export type MessageRings = {
  write(ring: MessageRing, message: Message, became: RecentKind): void
  /** The newest first. */
  read(ring: MessageRing): readonly RecentMessage[]
}

/** Of these at most are read. */
const messagesKept = 20
const blocksMax = 8
const messageBytesMax = 2048
/** The topic in messages that came under more topics than these. */
const topicsMax = 16
const otherTopic = 'one of many topics'

/** Where its numbers are, in units of 8 bytes; `offsetMs` is NaN where it was unknown. */
const double = { arrivedAt: 0, offsetMs: 1, serial: 2 } as const
/**
 * In units of 4 bytes. `before`: the head of the message before. `back`: from the position of this message to
 * that one's. `flags`: index of the topic, index of the kind, RETAIN, DUP and QoS, and the number of bytes.
 */
const integer = { before: 6, back: 7, cutBytes: 8, flags: 9 } as const
const headBytes = 40
const bytesMask = 0xfff
const flag = { qos: 12, dup: 14, retain: 15, kind: 16, topic: 20 } as const
const units = blockBytes / 8
const kinds: readonly RecentKind[] = ['payloads', 'ignored', 'part', 'quarantined', 'unmappable']

/** Rings grow while fewer than `growthMax` blocks are in use; beyond only for a message that is longer. */
export function createMessageRings(blocks: MessageBlocks, growthMax: number): MessageRings {
  return { write, read }

  function read(ring: MessageRing): readonly RecentMessage[] {
    const found: RecentMessage[] = []
    let { head, start } = ring
    const kept = Math.min(ring.count, messagesKept)
    while (found.length < kept && start >= ring.from) {
      found.push(messageAt(ring, head))
      const { integers } = blocks.slabOf(blockOf(head))
      const at = indexOf(head) * 2
      head = integers[at + integer.before]!
      start -= integers[at + integer.back]!
    }
    return found
  }

  function write(ring: MessageRing, message: Message, became: RecentKind): void {
    const { bytes: content, topic, arrival, serial = 0, qos, dup, retain } = message
    const kept = place(ring, Math.min(content.length, messageBytesMax))
    const head = ring.block * units + ring.at / 8
    const start = ring.end
    const { doubles, integers } = blocks.slabOf(ring.block)
    const at = indexOf(head)
    doubles[at + double.arrivedAt] = message.arrivedAt
    doubles[at + double.offsetMs] = arrival?.offsetMs ?? Number.NaN
    doubles[at + double.serial] = serial
    integers[at * 2 + integer.before] = ring.head
    integers[at * 2 + integer.back] = start - ring.start
    integers[at * 2 + integer.cutBytes] = content.length - kept
    integers[at * 2 + integer.flags] =
      (topicIndex(ring, topic) << flag.topic) |
      (kinds.indexOf(became) << flag.kind) |
      ((retain ? 1 : 0) << flag.retain) |
      ((dup ? 1 : 0) << flag.dup) |
      (qos << flag.qos) |
      kept
    moveBy(ring, headBytes)
    copy(ring, content, kept)
    ring.head = head
    ring.start = start
    ring.count += 1
    // Of a ring that was never full, it is negative.
    ring.from = Math.max(ring.from, ring.end - ring.blocks * blockBytes)
  }

  /**
   * Brings the ring to where a message of `wanted` bytes can start. Returns how many of these have room: all,
   * unless the ring is short and no memory is left.
   */
  function place(ring: MessageRing, wanted: number): number {
    const space = headBytes + wanted
    // A head is in one block.
    if (ring.at + headBytes > blockBytes) nextBlock(ring)
    while (space > roomOf(ring) && mayGrow(ring) && grow(ring));
    if (space <= roomOf(ring)) return wanted
    // The message would be written over its own beginning: it starts at the beginning of a block.
    if (ring.at > 0) nextBlock(ring)
    while (space > roomOf(ring) && grow(ring));
    return Math.min(wanted, roomOf(ring) - headBytes)
  }

  function mayGrow(ring: MessageRing): boolean {
    return ring.blocks < blocksMax && blocks.inUse() < growthMax
  }

  /** By a block behind that of the next message; false where there is none. */
  function grow(ring: MessageRing): boolean {
    if (!blocks.takeBehind(ring.block)) return false
    // Older messages of this block may continue in the one that was behind it.
    ring.from = Math.max(ring.from, ring.end - ring.at - (ring.blocks - 1) * blockBytes)
    ring.blocks += 1
    ring.unused += 1
    return true
  }

  /** From where the next message starts to the beginning of its block. */
  function roomOf(ring: MessageRing): number {
    return ring.blocks * blockBytes - ring.at
  }

  function copy(ring: MessageRing, content: Buffer, length: number): void {
    let done = 0
    while (done < length) {
      if (ring.at === blockBytes) nextBlock(ring)
      const part = Math.min(length - done, blockBytes - ring.at)
      const { bytes } = blocks.slabOf(ring.block)
      const to = blocks.offsetOf(ring.block) + ring.at
      if (part === content.length) bytes.set(content, to)
      else content.copy(bytes, to, done, done + part)
      moveBy(ring, part)
      done += part
    }
    // Heads begin at multiples of eight.
    moveBy(ring, -length & 7)
  }

  /** To one that it gets now, or to the oldest, which is overwritten. */
  function nextBlock(ring: MessageRing): void {
    if (ring.unused === 0 && mayGrow(ring)) grow(ring)
    if (ring.unused > 0) ring.unused -= 1
    ring.end += blockBytes - ring.at
    ring.at = 0
    ring.block = blocks.next(ring.block)
  }

  function messageAt(ring: MessageRing, head: number): RecentMessage {
    const slab = blocks.slabOf(blockOf(head))
    const at = indexOf(head)
    const flags = slab.integers[at * 2 + integer.flags]!
    const offsetMs = slab.doubles[at + double.offsetMs]!
    return {
      topic: topicAt(ring, flags >> flag.topic),
      bytes: bytesAt(head, flags & bytesMask),
      cutBytes: slab.integers[at * 2 + integer.cutBytes]!,
      qos: ((flags >> flag.qos) & 3) as QoS,
      dup: ((flags >> flag.dup) & 1) === 1,
      retain: ((flags >> flag.retain) & 1) === 1,
      arrivedAt: slab.doubles[at + double.arrivedAt]!,
      serial: slab.doubles[at + double.serial]!,
      offsetMs: Number.isNaN(offsetMs) ? null : offsetMs,
      became: kinds[(flags >> flag.kind) & 15] ?? 'payloads',
    }
  }

  /** A copy of the bytes behind a head. */
  function bytesAt(head: number, length: number): Buffer {
    const copied = Buffer.allocUnsafe(length)
    let block = blockOf(head)
    let at = (head % units) * 8 + headBytes
    let done = 0
    while (done < length) {
      if (at === blockBytes) {
        block = blocks.next(block)
        at = 0
      }
      const from = blocks.offsetOf(block) + at
      const part = Math.min(length - done, blockBytes - at)
      done += blocks.slabOf(block).bytes.copy(copied, done, from, from + part)
      at += part
    }
    return copied
  }

  /** Of the first byte of a head in its slab, in units of 8 bytes. */
  function indexOf(head: number): number {
    return blocks.offsetOf(blockOf(head)) / 8 + (head % units)
  }
}

export function newRing(): MessageRing {
  return {
    block: 0,
    at: 0,
    blocks: 0,
    unused: 0,
    end: 0,
    from: 0,
    head: 0,
    start: 0,
    count: 0,
    topic: '',
    otherTopics: null,
    lastAt: 0,
    secondAt: 0,
    inSecond: 0,
    skipped: 0,
    owner: null,
  }
}

function blockOf(head: number): number {
  return Math.floor(head / units)
}

/** As new, with one block; with none for -1. */
export function reset(ring: MessageRing, block: number): void {
  ring.block = block
  ring.at = 0
  ring.blocks = block < 0 ? 0 : 1
  ring.unused = 0
  ring.end = 0
  ring.from = 0
  ring.head = 0
  ring.start = 0
  ring.count = 0
  ring.topic = ''
  ring.otherTopics = null
  ring.secondAt = 0
  ring.inSecond = 0
  ring.skipped = 0
}

function moveBy(ring: MessageRing, bytes: number): void {
  ring.at += bytes
  ring.end += bytes
}

/** Usually there is one. `topicsMax` for a topic beyond the bound. */
function topicIndex(ring: MessageRing, topic: string): number {
  if (ring.topic === topic) return 0
  if (ring.count === 0) {
    ring.topic = topic
    return 0
  }
  ring.otherTopics ??= []
  const index = ring.otherTopics.indexOf(topic)
  if (index >= 0) return index + 1
  return ring.otherTopics.length + 1 < topicsMax ? ring.otherTopics.push(topic) : topicsMax
}

function topicAt({ topic, otherTopics }: MessageRing, index: number): string {
  if (index === 0) return topic
  return otherTopics?.[index - 1] ?? otherTopic
}
