// message-shelf.ts: messages that are kept whole until they can be mapped: one shelf a provider for the quarantine, one a
// source for what is deferred. A shelf numbers its messages from 0 in order of arrival and never twice, like a lane,
// but any of them may leave first.
//
//   taken | kept, and holes where later ones left first | numbered
//         ^ headSeq                                      ^ committedSeq ... nextSeq
//
// The totals of a shelf are a record that every write which touches it writes, so a start reads no message. Nothing
// is in memory per message or device: the devices of unknown senders would else have no bound but the disk.

import { assert } from '../../std/assert.ts'
import type { KeptMessage, ShelfKind, ShelfName } from '../../domain/message.ts'
import type { StoreOp } from '../../storage/storage.ts'
import {
  keptByDeviceKey,
  keptKey,
  keptRange,
  keptSeqOf,
  setAsideKey,
  shelfKey,
  shelfNameOf,
  table,
  tableRange,
} from '../chunk-log/key-layout.ts'
import { noteGone, type Walk } from '../chunk-log/lane.ts'
import { encodeKeptAt, keptRecord, shelfRecord } from '../chunk-log/record-codec.ts'
import type { SpoolState } from '../session-state.ts'

export type Shelf = {
  readonly name: ShelfName
  /** The next number to give, which is also how many were ever kept. */
  nextSeq: number
  committedSeq: number
  /** No kept message has a smaller number: reading begins here and crosses no tombstones. */
  headSeq: number
  /** What is kept now, counted by the messages themselves: the other side of conservation. */
  messages: number
  bytes: number
  taken: number
  damaged: number
  unexplained: number
  walk: Walk | null
  /** Bytes taken since the disk was last given back, and up to where it was. */
  drainedBytes: number
  compactedSeq: number
}

/** A kept message on the way to the disk. */
export type Keeping = { shelf: Shelf; device: string | null; at: number; value: Buffer }

/** A kept message that leaves. */
export type KeptPlace = { shelf: Shelf; seq: number; device: string | null; bytes: number }

export function kindOf(name: ShelfName): ShelfKind {
  return name.startsWith('quarantine:') ? 'quarantine' : 'deferred'
}

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

export function newKeeping(state: SpoolState, message: KeptMessage): Keeping {
  const { shelf: name, provider, device, reason, detail, envelope } = message
  const at = state.clock.now()
  const value = keptRecord.encode({ at, provider, device, reason, detail, envelope })
  // Counted now and not when it is written: a burst must not run past the bound.
  state.keptBytes[kindOf(name)] += value.length
  return { shelf: shelfNamed(state, name), device, at, value }
}

/** Numbers a message and puts it on its shelf. Only while a write is put together. */
export function putKept({ shelf, device, at, value }: Keeping, ops: StoreOp[]): void {
  const seq = shelf.nextSeq
  shelf.nextSeq += 1
  shelf.messages += 1
  shelf.bytes += value.length
  ops.push({ type: 'put', key: keptKey(shelf.name, seq), value })
  if (device === null) return
  ops.push({ type: 'put', key: keptByDeviceKey(shelf.name, device, seq), value: encodeKeptAt(at) })
}

/** Takes a message off its shelf. Only while a write is put together. */
export function dropKept(state: SpoolState, { shelf, seq, device, bytes }: KeptPlace, ops: StoreOp[]): void {
  ops.push({ type: 'del', key: keptKey(shelf.name, seq) })
  if (device !== null) ops.push({ type: 'del', key: keptByDeviceKey(shelf.name, device, seq) })
  forget(state, shelf, seq, bytes)
  shelf.taken += 1
}

/** A damaged message leaves its shelf as it is; who sent it cannot be read, so its key by device stays. */
export function setKeptAside(
  state: SpoolState,
  { shelf, seq }: { shelf: Shelf; seq: number },
  value: Buffer,
  ops: StoreOp[],
): void {
  const key = keptKey(shelf.name, seq)
  ops.push({ type: 'put', key: setAsideKey(key), value }, { type: 'del', key })
  forget(state, shelf, seq, value.length)
  shelf.damaged += 1
  putShelf(shelf, ops)
}

function forget(state: SpoolState, shelf: Shelf, seq: number, bytes: number): void {
  shelf.messages -= 1
  shelf.bytes -= bytes
  shelf.drainedBytes += bytes
  state.keptBytes[kindOf(shelf.name)] -= bytes
  if (seq === shelf.headSeq) shelf.headSeq += 1
  noteGone(shelf.walk, seq, 1)
}

/** Its totals go with every write that touches it. */
export function putShelf(shelf: Shelf, ops: StoreOp[]): void {
  const { name, nextSeq, headSeq, messages, bytes, taken, damaged, unexplained } = shelf
  const value = shelfRecord.encode({ nextSeq, headSeq, messages, bytes, taken, damaged, unexplained })
  ops.push({ type: 'put', key: shelfKey(name), value })
}

export async function recoverShelves(state: SpoolState): Promise<void> {
  for await (const page of state.store.pages(tableRange(table.shelves))) {
    for (const [key, value] of page) {
      const shelf = shelfNamed(state, shelfNameOf(key))
      const record = shelfRecord.decode(value)
      if (record !== null) Object.assign(shelf, record)
      else await explainShelf(state, shelf)
      shelf.committedSeq = shelf.nextSeq
      shelf.compactedSeq = shelf.headSeq
      state.keptBytes[kindOf(shelf.name)] += shelf.bytes
    }
  }
}

/** Damaged totals: what is kept is counted, and the rest of what was ever numbered is called unexplained. */
async function explainShelf(state: SpoolState, shelf: Shelf): Promise<void> {
  const range = keptRange(shelf.name, 0, Number.MAX_SAFE_INTEGER)
  let head: number | null = null
  for await (const page of state.store.pages(range)) {
    for (const [key, value] of page) {
      head ??= keptSeqOf(key)
      shelf.nextSeq = keptSeqOf(key) + 1
      shelf.messages += 1
      shelf.bytes += value.length
    }
  }
  // Later ones may have been kept and taken: the next number keeps a distance.
  shelf.nextSeq += numbersSkipped
  shelf.headSeq = head ?? shelf.nextSeq
  shelf.unexplained = shelf.nextSeq - shelf.messages
  assert(shelf.unexplained >= 0, 'each kept message has a number of its own')
  state.emit({
    kind: 'record_damaged',
    table: 'kept',
    name: shelf.name,
    what: 'the totals of the shelf are damaged; its messages were counted anew',
  })
}

/** More than are kept and taken between two starts; ids that somebody wrote down must not name others. */
const numbersSkipped = 2 ** 32
