// state-entries.ts: mapping state that acknowledged messages depend on (open records of coalesced messages,
// aliases). Each entry is a key and bytes, in the same write as the message that changed it.
//
// Only keys and sizes are in memory here. `sizes` and `bytes` are as they will be when all that waits is
// written. `written` is as of the last write that was put together; the disk is compared with it.
//
// Late entries, such as the memory of devices, change with many messages. They are encoded once for
// all messages of a group, when the group closes. That is in the turn of its last message, so the record has
// nothing of later ones. All late entries of a group are one record (late-records.ts).
//
// Bound: `stateBytesMax` of keys and records. At the bound intake is held and nothing is refused. Entries
// that close leave through exchanges, and then intake resumes. Late entries count when their group closes.

import { assert } from '../../std/assert.ts'
import type { Store, StoreEntry, StoreOp, StoreRange } from '../../storage/storage.ts'
import { readOne, scan } from '../chunk-log/damage-scan.ts'
import {
  isTextKey,
  laneKey,
  setAsideKey,
  stateKey,
  stateTotalsLane,
  table,
  tableRange,
  textOf,
} from '../chunk-log/key-layout.ts'
import { stateRecord, stateTotalsRecord } from '../chunk-log/record-codec.ts'
import type { SpoolState, StateEntries } from '../session-state.ts'
import type { LateState, StateEntry } from '../types.ts'
import {
  addLateRecord,
  isLateRecordKey,
  lateEntriesIn,
  lateRecordKeys,
  newLateRecords,
  removeLateRecords,
  seqAfter,
  type LateBounds,
  type LateChange,
} from './late-records.ts'

export function newStateEntries(bounds: LateBounds): StateEntries {
  return { sizes: new Map(), bytes: 0, written: { entries: 0, bytes: 0 }, late: newLateRecords(bounds) }
}

/**
 * The changes of one group; the last change of each entry is written. `late` is encoded when it closes.
 * `replaced`: entries of earlier late records that are no longer in force.
 */
export type StateWrites = {
  ops: Map<string, StoreOp>
  late: Map<string, LateState>
  replaced: Set<string>
  /** All late records leave with this write, so that they count from this seq on; null: they stay. */
  lateFrom: number | null
  /** Late entries whose record left before they changed again. */
  moved: number
  entries: number
  bytes: number
}

export function newStateWrites(): StateWrites {
  const counts = { moved: 0, entries: 0, bytes: 0 }
  return { ops: new Map(), late: new Map(), replaced: new Set(), lateFrom: null, ...counts }
}

const totalsKey = laneKey(table.totals, stateTotalsLane)

/** Bounds the keys of the database. */
const keyLengthMax = 512

/** What a late entry counts for until its size is known. */
const lateBytes = 256

/** Returns by how many bytes the group grows. */
export function addLateState(writes: StateWrites, entry: LateState): number {
  assertKey(entry.key)
  entry.isWaiting = true
  writes.late.set(entry.key, entry)
  return lateBytes
}

/** Encodes the late entries. Returns by how many bytes the group grows. */
export function closeState(state: StateEntries, writes: StateWrites): number {
  if (writes.late.size === 0 && writes.replaced.size === 0) return 0
  const entries = [...writes.late.values()]
  const { record, ...left } = addLateRecord(state.late, entries, writes.replaced)
  for (const entry of entries) entry.isWaiting = false
  const grown = putEntry(state, writes, record.key, record.body) - lateBytes * entries.length
  writes.late.clear()
  writes.replaced.clear()
  writes.moved += left.own.length
  return grown + putLeft(state, writes, left) + (writes.lateFrom === null ? 0 : putAll(state, writes))
}

/** All records leave. */
function putAll(state: StateEntries, writes: StateWrites): number {
  writes.lateFrom = state.late.nextSeq
  return putLeft(state, writes, removeLateRecords(state.late))
}

/** What was put or deleted at once in this group is in no record on the disk any more. */
export function forgetLate(writes: StateWrites): void {
  if (writes.replaced.size > 0) writes.lateFrom = 0
}

/** Of records that leave. */
function putLeft(
  state: StateEntries,
  writes: StateWrites,
  { own, gone }: Pick<LateChange, 'own' | 'gone'>,
): number {
  let grown = 0
  for (const { key, value } of own) grown += putEntry(state, writes, key, value)
  for (const key of gone) grown += putEntry(state, writes, key, null)
  return grown
}

/** Puts all late entries under their own keys. Only while a write is put together that has no group. */
export function endLateRecords(state: StateEntries, ops: StoreOp[]): void {
  const { late } = state
  if (late.firstSeq === late.nextSeq) return
  const writes = newStateWrites()
  putAll(state, writes)
  prepareState(state, writes, ops)
}

/** Returns by how many bytes the group grows. */
export function changeState(
  state: StateEntries,
  writes: StateWrites,
  key: string,
  value: Buffer | null,
): number {
  // What was put late before is older than this.
  const late = writes.late.get(key)
  if (late !== undefined) {
    writes.late.delete(key)
    late.isWaiting = false
  }
  if (state.late.newest.delete(key)) writes.replaced.add(key)
  return putEntry(state, writes, key, value) - (late === undefined ? 0 : lateBytes)
}

function putEntry(state: StateEntries, writes: StateWrites, key: string, value: Buffer | null): number {
  assertKey(key)
  const oldSize = state.sizes.get(key)
  // An entry that does not exist needs no deletion.
  if (value === null && oldSize === undefined) return 0
  const op: StoreOp =
    value === null
      ? { type: 'del', key: stateKey(key) }
      : { type: 'put', key: stateKey(key), value: stateRecord.encode(value) }
  const size = opBytes(op)
  if (value === null) state.sizes.delete(key)
  else state.sizes.set(key, size)
  const grown = (value === null ? 0 : size) - (oldSize ?? 0)
  state.bytes += grown
  writes.bytes += grown
  writes.entries += (value === null ? 0 : 1) - (oldSize === undefined ? 0 : 1)
  const replaced = writes.ops.get(key)
  writes.ops.set(key, op)
  return size - (replaced === undefined ? 0 : opBytes(replaced))
}

function assertKey(key: string): void {
  assert(key.length > 0 && key.length <= keyLengthMax, 'the key of a state entry has 1 to 512 characters')
}

function opBytes(op: StoreOp): number {
  return op.key.length + (op.type === 'put' ? op.value.length : 0)
}

/** Only while a write is put together. */
export function prepareState(state: StateEntries, writes: StateWrites, ops: StoreOp[]): void {
  if (writes.ops.size === 0) return
  for (const op of writes.ops.values()) ops.push(op)
  if (writes.entries === 0 && writes.bytes === 0 && writes.lateFrom === null) return
  if (writes.lateFrom !== null) state.written.lateFrom = writes.lateFrom
  state.written.entries += writes.entries
  state.written.bytes += writes.bytes
  putTotals(state, ops)
}

function putTotals({ written }: StateEntries, ops: StoreOp[]): void {
  ops.push({ type: 'put', key: totalsKey, value: stateTotalsRecord.encode(written) })
}

/**
 * Reads the sizes of all entries, and puts late entries under their own keys. A damaged entry is reported and
 * set aside unchanged.
 */
export async function recoverState(state: SpoolState, repairs: StoreOp[]): Promise<void> {
  const { stateEntries, store, emit } = state
  const lateBodies = new Map<string, Buffer>()
  let damaged = 0
  let lateDamaged = 0
  for await (const [key, value] of readRecords(state, tableRange(table.state))) {
    const body = isTextKey(key) ? stateRecord.decode(value) : null
    if (body === null) {
      damaged += 1
      if (isTextKey(key) && isLateRecordKey(textOf(key))) lateDamaged += 1
      report(state, nameOf(key), isTextKey(key) ? wrongChecksum : wrongKey)
      repairs.push({ type: 'put', key: setAsideKey(key), value }, { type: 'del', key })
      continue
    }
    const name = textOf(key)
    stateEntries.sizes.set(name, key.length + value.length)
    if (isLateRecordKey(name)) lateBodies.set(name, body)
  }
  for (const size of stateEntries.sizes.values()) stateEntries.bytes += size
  stateEntries.written = { entries: stateEntries.sizes.size, bytes: stateEntries.bytes }
  const { value, isUnreadable } = await readOne(store, totalsKey)
  const totals = stateTotalsRecord.decode(value)
  if (value === undefined && !isUnreadable && stateEntries.sizes.size + damaged === 0) return
  if (totals === null) report(state, '', 'its totals are lost; it was recounted')
  const found = stateEntries.written.entries + damaged
  if (totals !== null && totals.entries !== found) {
    state.counters.recordsMissing += Math.max(0, totals.entries - found)
    emit({ kind: 'records_unbalanced', table: 'state', name: '', known: totals.entries, found })
  }
  stateEntries.written.lateFrom = totals?.lateFrom ?? 0
  // Reported once: from here on the existing entries count.
  if (totals?.entries !== stateEntries.written.entries) putTotals(stateEntries, repairs)
  recoverLate(stateEntries, { found: lateBodies, damaged: lateDamaged }, repairs)
}

function recoverLate(
  state: StateEntries,
  { found, damaged }: { found: ReadonlyMap<string, Buffer>; damaged: number },
  repairs: StoreOp[],
): void {
  const { late, written } = state
  const fromSeq = written.lateFrom ?? 0
  const bodies = [...found.values()]
  late.firstSeq = late.nextSeq = Math.max(fromSeq, seqAfter(bodies))
  if (bodies.length === 0) return
  const writes = newStateWrites()
  for (const [key, { value, isBehindGap }] of lateEntriesIn(bodies, { fromSeq, damaged }))
    if (!(isBehindGap && state.sizes.has(key))) putEntry(state, writes, key, value)
  for (const key of found.keys()) putEntry(state, writes, key, null)
  writes.lateFrom = late.nextSeq
  prepareState(state, writes, repairs)
}

const wrongChecksum = 'its checksum is wrong'
const wrongKey = 'its key is damaged'

function nameOf(key: Buffer): string {
  return isTextKey(key) ? textOf(key) : ''
}

/**
 * Reads the durable entries. Damage since the opening is reported, and set aside at the next opening. State
 * that is put meanwhile may be missing.
 */
export async function* readStateEntries(state: SpoolState): AsyncGenerator<StateEntry> {
  const bodies: Buffer[] = []
  for await (const { value } of readNamed(state, lateRange, () => true)) bodies.push(value)
  const late = lateEntriesIn(bodies, { fromSeq: state.stateEntries.written.lateFrom ?? 0 })
  for await (const entry of readNamed(state, tableRange(table.state), (name) => !isLateRecordKey(name))) {
    if (late.get(entry.key)?.isBehindGap === false) continue
    late.delete(entry.key)
    yield entry
  }
  for (const [key, { value }] of late) yield { key, value }
}

const lateRange = {
  gte: stateKey(lateRecordKeys.first).subarray(0, -1),
  lt: stateKey(lateRecordKeys.end).subarray(0, -1),
}

/** Those whose name `isWanted`. */
async function* readNamed(
  state: SpoolState,
  range: StoreRange,
  isWanted: (name: string) => boolean,
): AsyncGenerator<StateEntry> {
  for await (const [key, record] of readRecords(state, range)) {
    const name = isTextKey(key) ? textOf(key) : null
    if (name !== null && !isWanted(name)) continue
    const value = name === null ? null : stateRecord.decode(record)
    if (name !== null && value !== null) yield { key: name, value }
    else report(state, nameOf(key), name === null ? wrongKey : wrongChecksum)
  }
}

async function* readRecords(state: SpoolState, range: StoreRange): AsyncGenerator<StoreEntry> {
  for await (const page of scan(state.store, range)) {
    if (page.kind === 'entries') yield* page.entries
    else report(state, '', 'a block of a table is damaged; its entries stay on the disk unread')
  }
}

function report(state: SpoolState, name: string, what: string): void {
  state.emit({ kind: 'record_damaged', table: 'state', name, what })
}

/** What is on the disk. One iteration is enough, since the bytes are bounded. */
export async function countStateEntries(store: Store): Promise<StateEntries['written']> {
  const sum = { entries: 0, bytes: 0 }
  for await (const page of store.pages(tableRange(table.state))) {
    for (const [key, value] of page) {
      sum.entries += 1
      sum.bytes += key.length + value.length
    }
  }
  return sum
}
