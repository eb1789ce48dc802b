// key-layout.ts: the tables of the spool in one ordered key space.
//
// Keys are binary and big-endian, so that byte order is number order. The first byte is the table.
//
//   01                      format       version, createdAt, instance
//   02 lane                 lanes        provider, role, openedAt
//   10 lane seq             chunks       a run of payloads, numbered from seq
//   11 lane firstSeq        batches      a sealed batch: a claim on the range up to endSeq
//   12 lane                 totals       nextSeq, and what was settled by kind. Lane 0: dead letters, the
//                                        last lane: mapping state, the one before it: receipts, the one
//                                        before that: how many writes there were, the one before that:
//                                        the stores that a repair merged into this one
//   13 n                    window keys  dedup keys of one commit
//   14 key                  state        mapping state that acknowledged messages depend on
//   15 n                    journal      what ingest notes with the messages of one commit
//   16 key                  sessions     stored sessions of clients, and their unreleased messages
//   20 at n                 dead letters
//   21 shelf seq            kept         messages kept whole until they can be mapped, in order of arrival
//   22 lane seq             damaged      unreadable chunks, set aside unchanged
//   22 lane                 damaged      the record of a lane that is deleted and has chunks set aside
//   23 key                  set aside    any other damaged record under its whole former key
//   24 shelf device seq     by device    finds the kept messages of one device; holds the time of keeping
//   25 shelf                shelves      nextSeq, head, and what was taken: a start counts no kept message
//   30 n                    receipts     results of settles, until they are copied into the ledger
//
// lane is 4 bytes; seq, at and n are 8. key, shelf and device are JSON texts with their quotes. They end at
// their closing quote, so none is a prefix of another, and every JavaScript string comes back unchanged.

import type { LaneId } from '../../domain/ids.ts'
import type { ShelfKind, ShelfName } from '../../domain/kept-store.ts'
import type { StoreRange } from '../../storage/storage.ts'

export const table = {
  format: 0x01,
  lanes: 0x02,
  chunks: 0x10,
  batches: 0x11,
  totals: 0x12,
  windowKeys: 0x13,
  state: 0x14,
  journal: 0x15,
  sessions: 0x16,
  deadLetters: 0x20,
  kept: 0x21,
  damaged: 0x22,
  setAside: 0x23,
  keptByDevice: 0x24,
  shelves: 0x25,
  receipts: 0x30,
} as const

export const formatKey = Buffer.from([table.format])

export const allKeys: StoreRange = { gte: Buffer.from([0]), lt: Buffer.from([255]) }

/** Lanes count from 1. In the table of totals, these numbers that no lane gets hold other totals. */
export const deadLetterTotalsLane = 0 as LaneId
export const stateTotalsLane = (2 ** 32 - 1) as LaneId
export const receiptTotalsLane = (2 ** 32 - 2) as LaneId
export const writeCountLane = (2 ** 32 - 3) as LaneId
export const mergedStoresLane = (2 ** 32 - 4) as LaneId

/** Whether a number can be that of a lane. Half of the range is never used: a damaged key stands out. */
export function isLane(lane: number): boolean {
  return lane > 0 && lane < 2 ** 31
}

const laneEnd = 5
const uint32 = 2 ** 32

export function laneKey(kind: typeof table.lanes | typeof table.totals, lane: LaneId): Buffer {
  const key = Buffer.allocUnsafe(laneEnd)
  key[0] = kind
  key.writeUInt32BE(lane, 1)
  return key
}

type SeqTable = typeof table.chunks | typeof table.batches | typeof table.damaged

/** The record of a deleted lane, in front of its chunks that were set aside. */
export function deletedLaneKey(lane: LaneId): Buffer {
  const key = laneKey(table.lanes, lane)
  key[0] = table.damaged
  return key
}

/** Whether a key has the form of a lane's record, or of its totals. */
export function isLaneKey(key: Buffer): boolean {
  return key.length === laneEnd && isLane(laneOf(key))
}

/** Whether a key has the form of a chunk's, a claim's or a damaged range's. */
export function isSeqKey(key: Buffer): boolean {
  return key.length === laneEnd + 8 && isLane(laneOf(key)) && Number.isSafeInteger(seqOf(key))
}

/** Whether a key has the form of a numbered record: a receipt, or one of the dedup window or the journal. */
export function isNumberKey(key: Buffer): boolean {
  return key.length === 9 && Number.isSafeInteger(numberOf(key))
}

/** Whether a key ends with a text, as that of a state entry, a session record or a shelf. */
export function isTextKey(key: Buffer): boolean {
  try {
    return typeof textOf(key) === 'string'
  } catch {
    return false
  }
}

/** Whether a key has the form of a kept message's. */
export function isKeptKey(key: Buffer): boolean {
  try {
    return key.equals(keptKey(shelfOf(key), keptSeqOf(key)))
  } catch {
    return false
  }
}

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

export function windowRecordKey(n: number): Buffer {
  return numberKey(table.windowKeys, n)
}

export function journalKey(n: number): Buffer {
  return numberKey(table.journal, n)
}

export function receiptKey(n: number): Buffer {
  return numberKey(table.receipts, n)
}

function numberKey(kind: number, n: number): Buffer {
  const key = Buffer.allocUnsafe(9)
  key[0] = kind
  writeUint64(key, n, 1)
  return key
}

/** The number of a receipt, or of a record of the dedup window or the journal. */
export function numberOf(key: Buffer): number {
  return readUint64(key, 1)
}

/** The id of a dead letter is its key without the table, in hexadecimal digits. */
export function deadLetterIdOf(key: Buffer): string {
  return key.toString('hex', 1)
}

/** Null if no dead letter can have this id. */
export function deadLetterKeyOf(id: string): Buffer | null {
  if (!/^[0-9a-f]{32}$/.test(id)) return null
  return Buffer.concat([Buffer.from([table.deadLetters]), Buffer.from(id, 'hex')])
}

export const deadLetterKeyBytes = 17

/** `n` distinguishes dead letters of the same millisecond. */
export function deadLetterKey(at: number, n: number): Buffer {
  const key = Buffer.allocUnsafe(deadLetterKeyBytes)
  key[0] = table.deadLetters
  writeUint64(key, at, 1)
  writeUint64(key, n, 9)
  return key
}

export function deadLetterNumberOf(key: Buffer): number {
  return readUint64(key, 9)
}

const seqBytes = 8

export function stateKey(name: string): Buffer {
  return textKey(table.state, JSON.stringify(name), 0)
}

export function sessionKey(name: string): Buffer {
  return textKey(table.sessions, JSON.stringify(name), 0)
}

export function shelfKey(shelf: ShelfName): Buffer {
  return textKey(table.shelves, JSON.stringify(shelf), 0)
}

/** The key of a state entry or a session record, or the name of a shelf. */
export function textOf(key: Buffer): string {
  return JSON.parse(key.toString('utf8', 1)) as string
}

/** The shelf in the key of a kept message, or in its key by device. */
export function shelfOf(key: Buffer): ShelfName {
  const text = key.toString('utf8', 1, key.length - seqBytes)
  return JSON.parse(/^"(?:[^"\\]|\\.)*"/.exec(text)?.[0] ?? '') as ShelfName
}

export function keptKey(shelf: ShelfName, seq: number): Buffer {
  return seqTextKey(table.kept, JSON.stringify(shelf), seq)
}

export function keptByDeviceKey(shelf: ShelfName, device: string, seq: number): Buffer {
  return seqTextKey(table.keptByDevice, JSON.stringify(shelf) + JSON.stringify(device), seq)
}

/** The seq in the key of a kept message, or in its key by device. */
export function keptSeqOf(key: Buffer): number {
  return readUint64(key, key.length - seqBytes)
}

export function keptRange(shelf: ShelfName, fromSeq: number, untilSeq: number): StoreRange {
  return { gte: keptKey(shelf, fromSeq), lt: keptKey(shelf, untilSeq) }
}

/** The kept messages on all shelves of a kind. */
export function keptKindRange(kind: ShelfKind): StoreRange {
  return { gte: textKey(table.kept, `"${kind}:`, 0), lt: textKey(table.kept, `"${kind};`, 0) }
}

/** Keys by device of a whole shelf: the opening quote of the device follows its name. */
export function byDeviceRange(shelf: ShelfName): StoreRange {
  const text = JSON.stringify(shelf)
  return { gte: textKey(table.keptByDevice, `${text}"`, 0), lt: textKey(table.keptByDevice, `${text}#`, 0) }
}

export function deviceRange(shelf: ShelfName, device: string): StoreRange {
  return {
    gte: keptByDeviceKey(shelf, device, 0),
    lt: keptByDeviceKey(shelf, device, Number.MAX_SAFE_INTEGER),
  }
}

/** Null if the key is damaged. */
export function deviceOf(key: Buffer, shelf: ShelfName): string | null {
  const start = 1 + Buffer.byteLength(JSON.stringify(shelf))
  try {
    return JSON.parse(key.toString('utf8', start, key.length - seqBytes)) as string
  } catch {
    return null
  }
}

/** The key of a damaged record that was set aside. */
export function setAsideKey(key: Buffer): Buffer {
  return Buffer.concat([Buffer.from([table.setAside]), key])
}

/** The first key behind `key`. */
export function keyAfter(key: Buffer): Buffer {
  return Buffer.concat([key, Buffer.from([0])])
}

function textKey(kind: number, text: string, moreBytes: number): Buffer {
  const length = 1 + Buffer.byteLength(text)
  const key = Buffer.allocUnsafe(length + moreBytes)
  key[0] = kind
  key.write(text, 1, 'utf8')
  return key
}

function seqTextKey(kind: number, text: string, seq: number): Buffer {
  const key = textKey(kind, text, seqBytes)
  writeUint64(key, seq, key.length - seqBytes)
  return key
}

function writeUint64(key: Buffer, value: number, offset: number): void {
  key.writeUInt32BE(Math.floor(value / uint32), offset)
  key.writeUInt32BE(value % uint32, offset + 4)
}

function readUint64(key: Buffer, offset: number): number {
  return key.readUInt32BE(offset) * uint32 + key.readUInt32BE(offset + 4)
}
