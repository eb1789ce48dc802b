// dead-letter-table.ts: dead letters in the database: writing, deleting, reading. A record with their number
// and bytes is written with every change, so that a start does not count them.

import type { DeadLetter, DeadLetterStore } from '../../domain/dead-letter.ts'
import { clientNameOf } from '../../domain/message.ts'
import type { Store, StoreOp } from '../../storage/storage.ts'
import { firstEntries } from '../chunk-log/damage-scan.ts'
import {
  deadLetterIdOf,
  deadLetterKey,
  deadLetterKeyBytes,
  deadLetterKeyOf,
  deadLetterTotalsLane,
  keyAfter,
  laneKey,
  setAsideKey,
  table,
  tableRange,
} from '../chunk-log/key-layout.ts'
import { blockDamaged } from '../recovery/table-records.ts'
import { deadLetterRecord, deadLetterTotalsRecord } from '../chunk-log/record-codec.ts'
import { deadLetterEntryOf } from './entry-reservations.ts'
import type { Reservations, Session, SpoolState, StoredEntry } from '../session-state.ts'
import type { DeadLetterEntry, DeadLetterFilter } from '../types.ts'
import { addToStore, removeFromStore } from './store-use.ts'

/** Entries of a short read: one long iteration would make LevelDB keep what is deleted meanwhile. */
const pageEntriesMax = 1000

/** A dead letter on the way to the database. */
export type NewDeadLetter = { store: DeadLetterStore; value: Buffer }

/** Counts it in its store at once and not when it is written: a burst must not exceed the bound. */
export function newDeadLetter(state: SpoolState, deadLetter: DeadLetter): NewDeadLetter {
  const value = deadLetterRecord.encode(deadLetter)
  const { store = 'dead_letters', envelope, device } = deadLetter
  const client = envelope === null ? '' : clientNameOf(envelope)
  addToStore(state.stores[store], { client, device, bytes: value.length })
  return { store, value }
}

/** Only while a write is put together. */
export function putDeadLetters(state: SpoolState, added: readonly NewDeadLetter[], ops: StoreOp[]): void {
  if (added.length === 0) return
  const at = state.ourNow()
  for (const { store, value } of added) {
    ops.push({ type: 'put', key: deadLetterKey(at, state.nextDeadLetter), value })
    state.nextDeadLetter += 1
    state.deadLetters.count += 1
    state.deadLetters.bytes += value.length
    state.deadLetters.bytesIn[store] += value.length
  }
  putDeadLetterTotals(state, ops)
}

/** Only while a write is put together. */
export function deleteDeadLetters(
  state: SpoolState,
  entries: readonly Extract<StoredEntry, { kind: 'deadLetter' }>[],
  ops: StoreOp[],
): void {
  if (entries.length === 0) return
  const { deadLetters } = state
  for (const { key, bytes, store } of entries) {
    ops.push({ type: 'del', key })
    deadLetters.count -= 1
    deadLetters.bytes -= bytes
    deadLetters.bytesIn[store] -= bytes
    removeFromStore(state.stores[store], bytes)
    deadLetters.drainedBytes += bytes
  }
  putDeadLetterTotals(state, ops)
}

export function putDeadLetterTotals(state: SpoolState, ops: StoreOp[]): void {
  const { count, bytes, bytesIn } = state.deadLetters
  const value = deadLetterTotalsRecord.encode({ letters: count, bytes, bytesIn })
  ops.push({ type: 'put', key: laneKey(table.totals, deadLetterTotalsLane), value })
}

/** What is on the disk, damaged dead letters included. One iteration, since their bytes are bounded. */
export async function countDeadLetters(store: Store): Promise<{ count: number; bytes: number }> {
  const sum = { count: 0, bytes: 0 }
  for await (const page of store.pages(tableRange(table.deadLetters)))
    for (const [key, value] of page) {
      if (key.length !== deadLetterKeyBytes) continue
      sum.count += 1
      sum.bytes += value.length
    }
  return sum
}

/** Oldest first. A damaged one is set aside and reported: nobody can read it, or remove it by its id. */
export async function* readDeadLetters(
  session: Session,
  filter: DeadLetterFilter,
): AsyncGenerator<DeadLetterEntry> {
  const { store, reservations, emit } = session
  const range = tableRange(table.deadLetters)
  let left = filter.limit
  const after = filter.after === undefined ? null : deadLetterKeyOf(filter.after)
  let from = after === null ? range.gte : keyAfter(after)
  while (left > 0) {
    const page = await reservations.duringRead(async () => {
      const { entries: records, isComplete } = await firstEntries(
        store,
        { ...range, gte: from },
        pageEntriesMax,
      )
      if (!isComplete) emit({ kind: 'record_damaged', table: 'dead letters', name: '', what: blockDamaged })
      const entries = records.flatMap(([key, value]) => entryIn(reservations, key, value) ?? [])
      // Taken, so that of two reads that find it one sets it aside.
      const damaged = records.filter(
        ([key, value]) => deadLetterRecord.decode(value) === null && reservations.take(deadLetterIdOf(key)),
      )
      const fitting = entries.filter((entry) => fitsFilter(entry, filter))
      return { last: records.at(-1), entries: fitting, damaged }
    })
    for (const [key, value] of page.damaged) await setAside(session, key, value)
    if (page.last === undefined) return
    from = keyAfter(page.last[0])
    const entries = page.entries.slice(0, left)
    yield* entries
    left -= entries.length
  }
}

async function setAside(session: Session, key: Buffer, value: Buffer): Promise<void> {
  const { committer, reservations, emit } = session
  const id = deadLetterIdOf(key)
  // Its device and its client are not known any more.
  const unknown = { kind: 'deadLetter', client: '', device: null } as const
  const damaged = { ...unknown, key, store: storeIn(value), bytes: value.length }
  await committer.commit({
    prepare(ops) {
      ops.push({ type: 'put', key: setAsideKey(key), value })
      deleteDeadLetters(session, [damaged], ops)
    },
    committed: () => reservations.deleted([id]),
  })
  emit({
    kind: 'record_damaged',
    table: 'dead letters',
    name: id,
    what: 'the checksum of a dead letter is wrong; it was set aside',
  })
}

/** The store of a damaged dead letter: mostly another bit has flipped. */
function storeIn(value: Buffer): DeadLetterStore {
  const stores = ['unlisted_dead_letters', 'part_dead_letters'] as const
  return stores.find((store) => value.includes(`"store":"${store}"`)) ?? 'dead_letters'
}

export async function readDeadLetter(
  { store, reservations }: Session,
  id: string,
): Promise<DeadLetterEntry | null> {
  const key = deadLetterKeyOf(id)
  if (key === null) return null
  return reservations.duringRead(async () => {
    const value = await store.get(key)
    return value === undefined ? null : entryIn(reservations, key, value)
  })
}

/** Null if it is damaged or taken. */
function entryIn(reservations: Reservations, key: Buffer, value: Buffer): DeadLetterEntry | null {
  const deadLetter = deadLetterRecord.decode(value)
  if (deadLetter === null) return null
  const id = deadLetterIdOf(key)
  return reservations.register(id, deadLetterEntryOf(key, deadLetter, value.length))
    ? { id, deadLetter }
    : null
}

export function fitsFilter({ deadLetter }: DeadLetterEntry, filter: DeadLetterFilter): boolean {
  const { stage, reason } = deadLetter
  return (filter.stage ?? stage) === stage && (filter.reason ?? reason) === reason
}
