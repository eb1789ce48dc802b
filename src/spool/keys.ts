// keys.ts: how the tables of the spool are laid out in one ordered key space.
//
// Keys are binary and big-endian, so that byte order is number order; the first byte is the table.
//
//   01                      format       version, createdAt, instance
//   02 lane                 lanes        provider, role, openedAt
//   10 lane seq             chunks       a run of payloads, numbered from seq
//   11 lane firstSeq        batches      a sealed batch: a claim on the range up to endSeq
//   12 lane                 totals       nextSeq, and what was settled by kind; lane 0: the dead letters'
//   13 n                    seen         window keys of one group
//   20 at n                 dead letters
//   22 lane seq             damaged      what could not be read, set aside as it was
//
// Left free for later: 14 parts, 21 quarantine, 30 receipts.
//
// lane is 4 bytes, seq, at and n are 8.

import type { LaneId } from '../domain/ids.ts'
import type { StoreRange } from '../storage/storage.ts'

export const table = {
  format: 0x01,
  lanes: 0x02,
  chunks: 0x10,
  batches: 0x11,
  totals: 0x12,
  seen: 0x13,
  deadLetters: 0x20,
  damaged: 0x22,
} as const

export const formatKey = Buffer.from([table.format])

/** Lanes count from 1; in the table of totals this one stands for the dead letters. */
export const letterLane = 0 as LaneId

const laneEnd = 5
const uint32 = 2 ** 32

export function laneKey(kind: typeof table.lanes | typeof table.totals, lane: LaneId): Buffer {
  const key = Buffer.allocUnsafe(laneEnd)
  key[0] = kind
  key.writeUInt32BE(lane, 1)
  return key
}

type SeqTable = typeof table.chunks | typeof table.batches | typeof table.damaged

export function seqKey(kind: SeqTable, lane: LaneId, seq: number): Buffer {
  const key = Buffer.allocUnsafe(laneEnd + 8)
  key[0] = kind
  key.writeUInt32BE(lane, 1)
  writeUint64(key, seq, laneEnd)
  return key
}

/** The seq of a chunk's, claim's or damaged range's key. */
export function seqOf(key: Buffer): number {
  return readUint64(key, laneEnd)
}

export function laneOf(key: Buffer): LaneId {
  return key.readUInt32BE(1) as LaneId
}

/** Keys of `kind` in `lane` from `fromSeq` up to but not including `untilSeq`. */
export function seqRange(kind: SeqTable, lane: LaneId, fromSeq: number, untilSeq: number): StoreRange {
  return { gte: seqKey(kind, lane, fromSeq), lt: seqKey(kind, lane, untilSeq) }
}

export function tableRange(kind: (typeof table)[keyof typeof table]): StoreRange {
  return { gte: Buffer.from([kind]), lt: Buffer.from([kind + 1]) }
}

export function seenKey(n: number): Buffer {
  const key = Buffer.allocUnsafe(9)
  key[0] = table.seen
  writeUint64(key, n, 1)
  return key
}

export function seenNumberOf(key: Buffer): number {
  return readUint64(key, 1)
}

/** `n` tells letters of one millisecond apart. */
export function deadLetterKey(at: number, n: number): Buffer {
  const key = Buffer.allocUnsafe(17)
  key[0] = table.deadLetters
  writeUint64(key, at, 1)
  writeUint64(key, n, 9)
  return key
}

function writeUint64(key: Buffer, value: number, offset: number): void {
  key.writeUInt32BE(Math.floor(value / uint32), offset)
  key.writeUInt32BE(value % uint32, offset + 4)
}

function readUint64(key: Buffer, offset: number): number {
  return key.readUInt32BE(offset) * uint32 + key.readUInt32BE(offset + 4)
}
