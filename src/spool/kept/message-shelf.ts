// message-shelf.ts: messages that are kept whole until they can be mapped. The quarantine has two shelves for
// each provider, deferred messages have one for each source. A shelf numbers its messages from 0 in order of
// arrival and never twice, like a lane, but any of them may leave first.
//
//   taken | kept, and holes where later ones left first | numbered
//         ^ headSeq                                      ^ committedSeq ... nextSeq
//
// Every write that changes a shelf writes a record with its totals, so a start reads no message. Nothing is
// held in memory for each message, and for devices only a bounded number of counters (shares.ts): the devices
// of unknown senders would have no bound but the disk.

import { assert } from '../../std/assert.ts'
import type { EpochMs } from '../../std/clock.ts'
import type { ShelfName } from '../../domain/kept-store.ts'
import { clientNameOf, devicesOf, type KeptMessage } from '../../domain/message.ts'
import type { StoreOp } from '../../storage/storage.ts'
import { firstReadable, readOne, scan } from '../chunk-log/damage-scan.ts'
import {
  isKeptKey,
  isTextKey,
  keptByDeviceKey,
  keptKey,
  keptRange,
  keptSeqOf,
  keyAfter,
  setAsideKey,
  shelfKey,
  shelfOf,
  table,
  tableRange,
  textOf,
} from '../chunk-log/key-layout.ts'
import { adjustWalk } from '../chunk-log/lane.ts'
import { encodeKeptAt, keptMessageRecord, shelfRecord } from '../chunk-log/record-codec.ts'
import { readTable, reportRecord, setRecordAside } from '../recovery/table-records.ts'
import type { Shelf, SpoolState, StoredEntry } from '../session-state.ts'
import { addToStore, kindOf, removeFromStore } from './store-use.ts'

/** A message on the way to its shelf. */
export type NewMessage = { shelf: Shelf; devices: readonly string[]; at: EpochMs; value: Buffer }

export function shelfNamed(state: SpoolState, name: ShelfName): Shelf {
  let shelf = state.shelves.get(name)
  if (shelf === undefined) {
    shelf = newShelf(name)
    state.shelves.set(name, shelf)
  }
  return shelf
}

function newShelf(name: ShelfName): Shelf {
  return {
    name,
    nextSeq: 0,
    openedSeq: 0,
    committedSeq: 0,
    headSeq: 0,
    messages: 0,
    bytes: 0,
    taken: 0,
    damaged: 0,
    unexplained: 0,
    walk: null,
    drainedBytes: 0,
    compactedSeq: 0,
  }
}

export function newKeptMessage(state: SpoolState, message: KeptMessage): NewMessage {
  const { shelf: name, device, envelope, ...others } = message
  const at = state.ourNow()
  const value = keptMessageRecord.encode({ at, device, envelope, ...others })
  // Counted now and not when it is written: a burst must not exceed the bound.
  addToStore(state.stores[kindOf(name)], { client: clientNameOf(envelope), device, bytes: value.length })
  return { shelf: shelfNamed(state, name), devices: devicesOf(message), at, value }
}

/** Numbers a message and puts it on its shelf. Only while a write is put together. */
export function putKeptMessage({ shelf, devices, at, value }: NewMessage, ops: StoreOp[]): void {
  const seq = shelf.nextSeq
  shelf.nextSeq += 1
  shelf.messages += 1
  shelf.bytes += value.length
  if (shelf.walk !== null) shelf.walk.addedBytes += value.length
  ops.push({ type: 'put', key: keptKey(shelf.name, seq), value })
  for (const device of devices)
    ops.push({ type: 'put', key: keptByDeviceKey(shelf.name, device, seq), value: encodeKeptAt(at) })
}

/** Takes a message off its shelf. Only while a write is put together. */
export function deleteKeptMessage(
  state: SpoolState,
  { shelf, seq, devices, bytes }: Extract<StoredEntry, { kind: 'keptMessage' }>,
  ops: StoreOp[],
): void {
  ops.push({ type: 'del', key: keptKey(shelf.name, seq) })
  for (const device of devices) ops.push({ type: 'del', key: keptByDeviceKey(shelf.name, device, seq) })
  countDeleted(state, shelf, seq, bytes)
  shelf.taken += 1
}

/** Sets a damaged message aside. Its devices cannot be read, so its keys by device stay. */
export function setMessageAside(
  state: SpoolState,
  { shelf, seq, value }: { shelf: Shelf; seq: number; value: Buffer },
  ops: StoreOp[],
): void {
  const key = keptKey(shelf.name, seq)
  ops.push({ type: 'put', key: setAsideKey(key), value }, { type: 'del', key })
  countDeleted(state, shelf, seq, value.length)
  shelf.damaged += 1
  putShelf(shelf, ops)
}

function countDeleted(state: SpoolState, shelf: Shelf, seq: number, bytes: number): void {
  shelf.messages -= 1
  shelf.bytes -= bytes
  shelf.drainedBytes += bytes
  removeFromStore(state.stores[kindOf(shelf.name)], bytes)
  if (seq === shelf.headSeq) shelf.headSeq += 1
  adjustWalk(shelf.walk, seq, 1, bytes)
}

/**
 * Counts messages that are missing as damaged. Fewer than none: messages that were taken are back. Only while
 * a write is put together.
 */
export function correctShelf(
  state: SpoolState,
  shelf: Shelf,
  missing: { messages: number; bytes: number },
  ops: StoreOp[],
): void {
  shelf.messages -= missing.messages
  shelf.bytes -= missing.bytes
  removeFromStore(state.stores[kindOf(shelf.name)], missing.bytes)
  if (missing.messages > 0) shelf.damaged += missing.messages
  else shelf.taken += missing.messages
  putShelf(shelf, ops)
}

/** Writes the totals of a shelf, in every write that changes it. */
export function putShelf(shelf: Shelf, ops: StoreOp[]): void {
  const { name, nextSeq, headSeq, messages, bytes, taken, damaged, unexplained } = shelf
  const value = shelfRecord.encode({ nextSeq, headSeq, messages, bytes, taken, damaged, unexplained })
  ops.push({ type: 'put', key: shelfKey(name), value })
}

/** Reads the totals of all shelves. A shelf without readable totals is recounted. */
export async function recoverShelves(state: SpoolState, repairs: StoreOp[]): Promise<void> {
  const read = { range: tableRange(table.shelves), table: 'kept' as const, isKey: isTextKey, repairs }
  for await (const [key, value] of readTable(state, read)) {
    const shelf = shelfNamed(state, textOf(key) as ShelfName)
    const record = shelfRecord.decode(value)
    if (record !== null) Object.assign(shelf, record)
    else {
      setRecordAside(key, value, repairs)
      await recountShelf(state, shelf, repairs)
    }
  }
  for (const name of await shelvesWithMessages(state)) {
    // A block with its totals is damaged, and a newer version of them may be elsewhere.
    const shelf = shelfNamed(state, name)
    const record = shelfRecord.decode((await readOne(state.store, shelfKey(name))).value)
    if (record !== null) Object.assign(shelf, record)
    else await recountShelf(state, shelf, repairs)
  }
  for (const shelf of state.shelves.values()) {
    shelf.committedSeq = shelf.nextSeq
    shelf.openedSeq = shelf.nextSeq
    shelf.compactedSeq = shelf.headSeq
    state.stores[kindOf(shelf.name)].bytes += shelf.bytes
  }
}

/** Shelves that have messages and are not known: one read in each interval between the known ones. */
async function shelvesWithMessages({ store, shelves }: SpoolState): Promise<ShelfName[]> {
  const found: ShelfName[] = []
  const end = tableRange(table.kept).lt
  const known = [...shelves.keys()].map((name) => keptRange(name, 0, Number.MAX_SAFE_INTEGER))
  let from = tableRange(table.kept).gte
  for (const next of [...known.sort((a, b) => a.gte.compare(b.gte)), { gte: end, lt: end }]) {
    while (from.compare(next.gte) < 0) {
      const { entry } = await firstReadable(store, { gte: from, lt: next.gte })
      if (entry === null) break
      const [key] = entry
      if (isKeptKey(key)) found.push(shelfOf(key))
      from = isKeptKey(key) ? keptKey(shelfOf(key), Number.MAX_SAFE_INTEGER) : keyAfter(key)
    }
    from = next.lt
  }
  return found
}

/** Lost totals: counts the kept messages; the rest of what was ever numbered is unexplained. */
async function recountShelf(state: SpoolState, shelf: Shelf, repairs: StoreOp[]): Promise<void> {
  const range = keptRange(shelf.name, 0, Number.MAX_SAFE_INTEGER)
  let head: number | null = null
  for await (const page of scan(state.store, range)) {
    if (page.kind === 'gap') continue
    for (const [key, value] of page.entries) {
      if (!isKeptKey(key)) continue
      head ??= keptSeqOf(key)
      shelf.nextSeq = keptSeqOf(key) + 1
      shelf.messages += 1
      shelf.bytes += value.length
    }
  }
  // Later messages may have been kept and taken, so the next number keeps a distance.
  shelf.nextSeq += numbersSkipped
  shelf.headSeq = head ?? shelf.nextSeq
  shelf.unexplained = shelf.nextSeq - shelf.messages
  assert(shelf.unexplained >= 0, 'each kept message has its own number')
  putShelf(shelf, repairs)
  reportRecord(state, 'kept', 'the totals of the shelf are lost; its messages were recounted', shelf.name)
}

/** More than are kept and taken between two starts: an id must never name another message. */
const numbersSkipped = 2 ** 32
