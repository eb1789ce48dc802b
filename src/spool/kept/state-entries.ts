// state-entries.ts: state of the mapping that acknowledged data depends on (open records of coalesced messages, aliases):
// entries of a name and bytes, written in the same write as the message that changed them.
//
// Only the names and sizes are in memory here. `sizes` and `bytes` say how it will be when all that waits is
// written; `written` says how it was when the last write was put together, which is what the disk is held against.
//
// Bound: `stateBytesMax` of names and records. At the bound intake is held (store-supervisor.ts) and nothing is refused:
// entries that close go on to leave through exchanges, and then intake resumes.

import { assert } from '../../std/assert.ts'
import { codeOf } from '../../std/gateway-error.ts'
import type { Store, StoreEntry, StoreOp, StoreRange } from '../../storage/storage.ts'
import {
  laneKey,
  partKey,
  partLane,
  partNameOf,
  setAsideKey,
  table,
  tableRange,
} from '../chunk-log/key-layout.ts'
import { partRecord, partTotalsRecord } from '../chunk-log/record-codec.ts'
import type { StateEntry } from '../spool.ts'
import type { SpoolState } from '../session-state.ts'

export type Parts = {
  readonly sizes: Map<string, number>
  bytes: number
  written: { entries: number; bytes: number }
}

export function newParts(): Parts {
  return { sizes: new Map(), bytes: 0, written: { entries: 0, bytes: 0 } }
}

/** What one group does to the entries; the last change of each is what is written. */
export type PartWrites = {
  ops: Map<string, StoreOp>
  entries: number
  bytes: number
}

const totalsKey = laneKey(table.totals, partLane)

/** Bounds the keys of the database. */
const nameLengthMax = 512

/** Returns by how many bytes the group grows. */
export function changePart(parts: Parts, writes: PartWrites, name: string, value: Buffer | null): number {
  assert(name.length > 0 && name.length <= nameLengthMax, 'the key of a state entry has 1 to 512 characters')
  const oldSize = parts.sizes.get(name)
  // What stands nowhere needs no write to be gone.
  if (value === null && oldSize === undefined) return 0
  const key = partKey(name)
  const op: StoreOp =
    value === null ? { type: 'del', key } : { type: 'put', key, value: partRecord.encode(value) }
  const size = opBytes(op)
  if (value === null) parts.sizes.delete(name)
  else parts.sizes.set(name, size)
  const grown = (value === null ? 0 : size) - (oldSize ?? 0)
  parts.bytes += grown
  writes.bytes += grown
  writes.entries += (value === null ? 0 : 1) - (oldSize === undefined ? 0 : 1)
  const replaced = writes.ops.get(name)
  writes.ops.set(name, op)
  return size - (replaced === undefined ? 0 : opBytes(replaced))
}

function opBytes(op: StoreOp): number {
  return op.key.length + (op.type === 'put' ? op.value.length : 0)
}

export function prepareParts(parts: Parts, writes: PartWrites, ops: StoreOp[]): void {
  if (writes.ops.size === 0) return
  for (const op of writes.ops.values()) ops.push(op)
  parts.written.entries += writes.entries
  parts.written.bytes += writes.bytes
  putTotals(parts, ops)
}

function putTotals({ written }: Parts, ops: StoreOp[]): void {
  ops.push({ type: 'put', key: totalsKey, value: partTotalsRecord.encode(written) })
}

/** Learns the sizes of all entries; a damaged one is reported and set aside as it is. */
export async function recoverParts(state: SpoolState, repairs: StoreOp[]): Promise<void> {
  const { parts, store, emit } = state
  let damaged = 0
  for await (const [key, value] of readAround(state, tableRange(table.parts))) {
    const name = partNameOf(key)
    if (partRecord.decode(value) === null) {
      damaged += 1
      report(state, name, 'its checksum is wrong')
      repairs.push({ type: 'put', key: setAsideKey(key), value }, { type: 'del', key })
      continue
    }
    parts.sizes.set(name, key.length + value.length)
  }
  for (const size of parts.sizes.values()) parts.bytes += size
  parts.written = { entries: parts.sizes.size, bytes: parts.bytes }
  const value = await store.get(totalsKey)
  const totals = partTotalsRecord.decode(value)
  if (value === undefined) return
  if (totals === null) report(state, '', 'its totals are damaged; it was counted anew')
  const found = parts.written.entries + damaged
  if (totals !== null && totals.entries !== found)
    emit({ kind: 'records_unbalanced', table: 'state', name: '', known: totals.entries, found })
  // Told once: from here on what is there counts.
  if (totals?.entries !== parts.written.entries) putTotals(parts, repairs)
}

/** Reads the durable entries. Damage that came since the opening is reported, and set aside at the next opening. */
export async function* readStates(state: SpoolState): AsyncGenerator<StateEntry> {
  for await (const [key, record] of readAround(state, tableRange(table.parts))) {
    const value = partRecord.decode(record)
    if (value !== null) yield { key: partNameOf(key), value }
    else report(state, partNameOf(key), 'its checksum is wrong')
  }
}

/**
 * Entries of a range; where a block of a table is damaged, what stands behind it is read from the end backwards, so
 * that what cannot be read costs no more than itself.
 */
async function* readAround(state: SpoolState, range: StoreRange): AsyncGenerator<StoreEntry> {
  try {
    yield* entriesOf(state.store, range, false)
    return
  } catch (error) {
    if (codeOf(error) !== 'LEVEL_CORRUPTION') throw error
    report(state, '', 'a block of a table is damaged; its entries stay on the disk unread')
  }
  try {
    yield* entriesOf(state.store, range, true)
  } catch (error) {
    if (codeOf(error) !== 'LEVEL_CORRUPTION') throw error
  }
}

function report(state: SpoolState, name: string, what: string): void {
  state.emit({ kind: 'record_damaged', table: 'state', name, what })
}

async function* entriesOf(store: Store, range: StoreRange, reverse: boolean): AsyncGenerator<StoreEntry> {
  for await (const page of store.pages(range, { reverse })) yield* page
}

/** What stands on the disk. The bound on their bytes is what makes one look possible. */
export async function countParts(store: Store): Promise<Parts['written']> {
  const sum = { entries: 0, bytes: 0 }
  for await (const page of store.pages(tableRange(table.parts))) {
    for (const [key, value] of page) {
      sum.entries += 1
      sum.bytes += key.length + value.length
    }
  }
  return sum
}
