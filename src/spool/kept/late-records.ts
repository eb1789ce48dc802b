// late-records.ts: late entries of the state, such as the memory of devices, change with nearly every
// message. All that change with one group are in one record: an entry of its own for each would be half of
// what a group writes when a thousand devices send in turn.
//
//   record   seq (6), first (6); then for each entry: length of its key (2), of its value (4), key, value
//            Keys are UTF-16, so that any text is kept. `noValue` as the length of a value says that nothing
//            older is in force: the entry is under its own key, or deleted.
//   key      `memory "" SLOT`, the slot is seq modulo `recordsMax`
//
// In force are the records from `first` of the last one to the last one. An entry is read from the last of
// them that has it, otherwise from under its own key.
//
// Bound: `recordsMax` records and `bytesMax` bytes, and one record alone. Beyond, the oldest record leaves:
// what is in no later one is put under its own key in the same write, and counted (`lateMoved`). A device
// that sent again meanwhile costs nothing more.
//
// A start and a stop put everything under its own key (state-entries.ts). The totals of the state say then
// from which seq on records count: one of before that comes back with a damaged file is not in force. Where a
// record is missing, what only older ones have does not replace an entry under its own key, which may be
// newer.

import { assert } from '../../std/assert.ts'
import type { LateState } from '../types.ts'

export type LateRecords = {
  /** By slot. */
  readonly records: LateRecord[]
  firstSeq: number
  nextSeq: number
  /** The number of the last record that has an entry, by its key. */
  readonly newest: Map<string, number>
  /** Of all records. */
  bytes: number
  readonly bounds: LateBounds
}

export type LateBounds = { readonly recordsMax: number; readonly bytesMax: number }

type LateRecord = { readonly entries: readonly LateState[]; readonly bytes: number }

/** `own`: entries to put under their own keys. `gone`: keys of records to delete. */
export type LateChange = {
  readonly record: { readonly key: string; readonly body: Buffer }
  readonly own: readonly LateState[]
  readonly gone: readonly string[]
}

const keyHead = 'memory "" '
const firstAt = 6
const headBytes = 12
const entryHeadBytes = 6
const noValue = 0xff_ff_ff_ff

/**
 * `isBehindGap`: a record behind the one of the entry is missing, so what is under its own key may be newer.
 */
export type LateEntry = { readonly value: Buffer; readonly isBehindGap: boolean }

export function newLateRecords(bounds: LateBounds): LateRecords {
  return { records: [], firstSeq: 0, nextSeq: 0, newest: new Map(), bytes: 0, bounds }
}

/** Whether the key is that of a record. */
export function isLateRecordKey(key: string): boolean {
  return key.startsWith(keyHead)
}

/** All keys of records are between these. */
export const lateRecordKeys = { first: keyHead, end: `${keyHead}:` }

/**
 * Adds the record of a group; its body is valid until the next call. `replaced`: entries that were put or
 * deleted under their own keys meanwhile.
 */
export function addLateRecord(
  late: LateRecords,
  entries: readonly LateState[],
  replaced: ReadonlySet<string>,
): LateChange {
  const { recordsMax, bytesMax } = late.bounds
  const seq = late.nextSeq
  late.nextSeq += 1
  for (const { key } of entries) late.newest.set(key, seq)
  const body = encode(seq, entries, replaced)
  late.bytes += body.length
  const own: LateState[] = []
  const gone: string[] = []
  while (late.firstSeq < seq && (seq - late.firstSeq >= recordsMax || late.bytes > bytesMax)) {
    // The record of the same slot is overwritten.
    if (seq - late.firstSeq < recordsMax) gone.push(keyOf(late, late.firstSeq))
    removeOldest(late, own)
  }
  late.records[seq % recordsMax] = { entries: [...entries], bytes: body.length }
  body.writeUIntBE(late.firstSeq, firstAt, 6)
  return { record: { key: keyOf(late, seq), body }, own, gone }
}

/** Ends all records. */
export function removeLateRecords(late: LateRecords): Pick<LateChange, 'own' | 'gone'> {
  const own: LateState[] = []
  const gone: string[] = []
  while (late.firstSeq < late.nextSeq) {
    gone.push(keyOf(late, late.firstSeq))
    removeOldest(late, own)
  }
  return { own, gone }
}

function removeOldest(late: LateRecords, own: LateState[]): void {
  const seq = late.firstSeq
  const { entries, bytes } = late.records[seq % late.bounds.recordsMax] ?? noRecord
  late.records[seq % late.bounds.recordsMax] = noRecord
  late.firstSeq += 1
  late.bytes -= bytes
  for (const entry of entries) {
    if (late.newest.get(entry.key) !== seq) continue
    late.newest.delete(entry.key)
    own.push(entry)
  }
}

const noRecord: LateRecord = { entries: [], bytes: 0 }

function keyOf({ bounds }: LateRecords, seq: number): string {
  return `${keyHead}${seq % bounds.recordsMax}`
}

/** One record is encoded at a time, and copied by its caller. */
let page = Buffer.alloc(16 * 1024)

/** Without `first`. Valid until the next call. */
function encode(seq: number, entries: readonly LateState[], replaced: ReadonlySet<string>): Buffer {
  let end = headBytes
  page.writeUIntBE(seq, 0, 6)
  // An entry may be put late again in the group that replaced it: the last one counts.
  for (const key of replaced) end = putEntry(end, key, null)
  for (const { key, value } of entries) end = putEntry(end, key, value)
  return page.subarray(0, end)
}

function putEntry(start: number, key: string, value: Buffer | null): number {
  const keyEnd = start + entryHeadBytes + 2 * key.length
  const end = keyEnd + (value?.length ?? 0)
  if (end > page.length) {
    const larger = Buffer.alloc(2 * end)
    page.copy(larger)
    page = larger
  }
  page.writeUInt16BE(key.length, start)
  page.writeUInt32BE(value?.length ?? noValue, start + 2)
  page.write(key, start + entryHeadBytes, 'utf16le')
  value?.copy(page, keyEnd)
  return end
}

/**
 * The entries in force. `bodies` may be in any order. Records before `fromSeq` do not count. `damaged`: how
 * many records have no body.
 */
export function lateEntriesIn(
  bodies: readonly Buffer[],
  { fromSeq, damaged = 0 }: { fromSeq: number; damaged?: number },
): Map<string, LateEntry> {
  const records = bodies
    .map((body) => ({ seq: body.readUIntBE(0, 6), first: body.readUIntBE(firstAt, 6), body }))
    .toSorted((one, other) => one.seq - other.seq)
  const first = Math.max(fromSeq, records.at(-1)?.first ?? 0)
  const inForce = records.filter(({ seq }) => seq >= first)
  const ahead = (index: number) => inForce[index]!.seq - inForce[index - 1]!.seq - 1
  const missing = inForce.reduce((sum, _, index) => sum + (index === 0 ? 0 : ahead(index)), 0)
  const gapAt =
    damaged > missing ? inForce.length : inForce.findLastIndex((_, index) => index > 0 && ahead(index) > 0)
  const entries = new Map<string, LateEntry>()
  for (const [index, { body }] of inForce.entries()) decode(body, entries, index < gapAt)
  return entries
}

/** Behind all of them. */
export function seqAfter(bodies: readonly Buffer[]): number {
  return bodies.reduce((seq, body) => Math.max(seq, body.readUIntBE(0, 6) + 1), 0)
}

function decode(body: Buffer, entries: Map<string, LateEntry>, isBehindGap: boolean): void {
  let at = headBytes
  while (at < body.length) {
    const [keyLength, length] = [body.readUInt16BE(at), body.readUInt32BE(at + 2)]
    const keyEnd = at + entryHeadBytes + 2 * keyLength
    const end = keyEnd + (length === noValue ? 0 : length)
    assert(end <= body.length, 'a record of late entries ends with an entry')
    const key = body.toString('utf16le', at + entryHeadBytes, keyEnd)
    if (length === noValue) entries.delete(key)
    else entries.set(key, { value: body.subarray(keyEnd, end), isBehindGap })
    at = end
  }
}
