// receipt-index.ts: an index block describes a run of receipts, so that a search reads only those that may
// match.
//
//   0  version (1)        1  CRC-32 of the rest (4)
//   5  first number (8)   13 first number of the block before, NaN for none (8)   21 base of the numbers (8)
//   29 last written at (8)
//   37 payloads before (8)   45 bytes before (8)   53 payloads (8)   61 bytes of the receipts (8)   69
//                            entries (4)
//   73 entries: number - first (4), settled at (8), payloads (4), outcomes (1), earliest (8) and latest (8)
//   device
//      time, bytes of the bloom filter (4), the bloom filter of its devices and ids
//      (receipts/bloom-filter.ts)
//
// Little-endian. "Before" counts everything that was ever kept, so a total is one subtraction and a start
// counts nothing.

import { crc32 } from 'node:zlib'
import { timeUnknown } from '../domain/arrival.ts'
import { mayHold } from '../receipts/bloom-filter.ts'
import type { ReceiptHead } from '../receipts/receipts.ts'
import type { EpochMs } from '../std/clock.ts'

const version = 1
const headBytes = 73
const entryBytes = 37

export type IndexBlockHead = {
  first: number
  before: number | null
  base: number
  writtenAt: EpochMs
  payloadsBefore: number
  bytesBefore: number
  payloads: number
  /** Of the receipts. */
  bytes: number
  entries: number
}

export type IndexEntry = {
  number: number
  at: EpochMs
  payloads: number
  outcomes: number
  earliest: EpochMs | null
  latest: EpochMs | null
  mayHold(hash: number): boolean
}

export type IndexBlock = IndexBlockHead & { newestFirst(): Iterable<IndexEntry> }

/** An index block that still grows. */
export type OpenIndexBlock = {
  readonly head: IndexBlockHead
  /** One above the number of its last receipt. */
  readonly end: number
  /** Bytes when encoded. */
  readonly size: number
  /** When it was begun; `timeUnknown` while that is not known. */
  beganAt: EpochMs
  add(number: number, head: ReceiptHead, receipt: Buffer): void
  encode(writtenAt: EpochMs): Buffer
}

type Begin = Pick<IndexBlockHead, 'first' | 'before' | 'base' | 'payloadsBefore' | 'bytesBefore'>

export function beginBlock(begin: Begin, now: EpochMs): OpenIndexBlock {
  const head = { ...begin, writtenAt: 0, payloads: 0, bytes: 0, entries: 0 }
  return growing(head, { parts: [], size: headBytes, end: begin.first, beganAt: now })
}

/** Continues an index block that was read; null where it is damaged. */
export function resumeBlock(value: Buffer): OpenIndexBlock | null {
  const block = decodeBlock(value)
  if (block === null) return null
  const { first, before, base, writtenAt, payloadsBefore, bytesBefore, payloads, bytes, entries } = block
  const head = { first, before, base, writtenAt, payloadsBefore, bytesBefore, payloads, bytes, entries }
  const list = [...block.newestFirst()]
  return growing(head, {
    parts: [value.subarray(headBytes)],
    size: value.length,
    end: (list[0]?.number ?? first - 1) + 1,
    // Settled by a clock that was ahead, perhaps.
    beganAt: Math.min(list.at(-1)?.at ?? writtenAt, writtenAt === timeUnknown ? Infinity : writtenAt),
  })
}

type Grown = { parts: Buffer[]; size: number; end: number; beganAt: EpochMs }

function growing(head: IndexBlockHead, { parts, ...grown }: Grown): OpenIndexBlock {
  let { size, end } = grown

  return {
    head,
    beganAt: grown.beganAt,
    add,
    encode,
    get end() {
      return end
    },
    get size() {
      return size
    },
  }

  function add(number: number, { at, outcomes, entries, filterStart }: ReceiptHead, receipt: Buffer): void {
    const { count, earliest, latest, filterBytes } = entries
    const entry = Buffer.allocUnsafe(entryBytes + filterBytes)
    entry.writeUInt32LE(number - head.first, 0)
    entry.writeDoubleLE(at, 4)
    entry.writeUInt32LE(count, 12)
    entry[16] = outcomes
    entry.writeDoubleLE(earliest ?? Number.NaN, 17)
    entry.writeDoubleLE(latest ?? Number.NaN, 25)
    entry.writeUInt32LE(filterBytes, 33)
    receipt.copy(entry, entryBytes, filterStart, filterStart + filterBytes)
    parts.push(entry)
    head.payloads += count
    head.bytes += receipt.length
    head.entries += 1
    size += entry.length
    end = number + 1
  }

  function encode(writtenAt: EpochMs): Buffer {
    head.writtenAt = writtenAt
    const top = Buffer.allocUnsafe(headBytes)
    top[0] = version
    top.writeDoubleLE(head.first, 5)
    top.writeDoubleLE(head.before ?? Number.NaN, 13)
    top.writeDoubleLE(head.base, 21)
    top.writeDoubleLE(writtenAt, 29)
    top.writeDoubleLE(head.payloadsBefore, 37)
    top.writeDoubleLE(head.bytesBefore, 45)
    top.writeDoubleLE(head.payloads, 53)
    top.writeDoubleLE(head.bytes, 61)
    top.writeUInt32LE(head.entries, 69)
    const value = Buffer.concat([top, ...parts])
    parts.splice(0, parts.length, value.subarray(headBytes))
    value.writeUInt32LE(crc32(value.subarray(5)), 1)
    return value
  }
}

/** Null where it is damaged. */
export function decodeBlock(value: Buffer): IndexBlock | null {
  if (value.length < headBytes || value[0] !== version) return null
  if (crc32(value.subarray(5)) !== value.readUInt32LE(1)) return null
  const entries = value.readUInt32LE(69)
  const first = value.readDoubleLE(5)
  return {
    first,
    before: numberOrNull(value.readDoubleLE(13)),
    base: value.readDoubleLE(21),
    writtenAt: value.readDoubleLE(29),
    payloadsBefore: value.readDoubleLE(37),
    bytesBefore: value.readDoubleLE(45),
    payloads: value.readDoubleLE(53),
    bytes: value.readDoubleLE(61),
    entries,
    newestFirst: () => entriesOf(value, first, entries),
  }
}

function* entriesOf(value: Buffer, first: number, count: number): Generator<IndexEntry> {
  const starts = new Uint32Array(count)
  let next = headBytes
  for (let index = 0; index < count; index += 1) {
    starts[index] = next
    next += entryBytes + value.readUInt32LE(next + 33)
  }
  for (let index = count - 1; index >= 0; index -= 1) {
    const at = starts[index] ?? 0
    const filterBytes = value.readUInt32LE(at + 33)
    yield {
      number: first + value.readUInt32LE(at),
      at: value.readDoubleLE(at + 4),
      payloads: value.readUInt32LE(at + 12),
      outcomes: value[at + 16] ?? 0,
      earliest: numberOrNull(value.readDoubleLE(at + 17)),
      latest: numberOrNull(value.readDoubleLE(at + 25)),
      mayHold: (hash) => mayHold(value, at + entryBytes, filterBytes, hash),
    }
  }
}

function numberOrNull(value: number): number | null {
  return Number.isNaN(value) ? null : value
}
