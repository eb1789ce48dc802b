// kept-message-reader.ts: reads kept messages, a page at a time: one long iteration would make LevelDB keep, for its sake, all
// that is deleted meanwhile.
//
// What is damaged is set aside as it is, reported and counted; a block that cannot be read is stepped over, reported
// and left alone. Reading goes on behind both.

import { codeOf } from '../../std/gateway-error.ts'
import type { Store, StoreEntry, StoreOp, StoreRange } from '../../storage/storage.ts'
import type { Committer } from '../chunk-log/committer.ts'
import { keptIdOf, type Desk } from './entry-reservations.ts'
import {
  byDeviceRange,
  deviceOf,
  deviceRange,
  keptByDeviceKey,
  keptKey,
  keptRange,
  keptSeqOf,
  keyAfter,
  setAsideKey,
} from '../chunk-log/key-layout.ts'
import { findReadable } from '../chunk-log/chunk-log.ts'
import { decodeKeptAt, keptRecord } from '../chunk-log/record-codec.ts'
import { setKeptAside, type Shelf } from './message-shelf.ts'
import type { KeptDevice, KeptEntry } from '../spool.ts'
import type { SpoolState } from '../session-state.ts'

export type ReadDeps = { state: SpoolState; committer: Committer; desk: Desk }

export const pageEntriesMax = 1000
/** The messages of one device lie apart: each is looked for by itself. */
const looksMax = 64

/** In order of arrival. */
export async function* readShelf(deps: ReadDeps, shelf: Shelf, limit: number): AsyncGenerator<KeptEntry> {
  let left = limit
  let fromSeq = shelf.headSeq
  while (left > 0) {
    const { entries, nextSeq } = await pageOf(deps, shelf, fromSeq, Math.min(left, pageEntriesMax))
    yield* entries
    left -= entries.length
    if (nextSeq === null) return
    fromSeq = nextSeq
  }
}

type KeptPage = { entries: KeptEntry[]; nextSeq: number | null }

async function pageOf(deps: ReadDeps, shelf: Shelf, fromSeq: number, limit: number): Promise<KeptPage> {
  const { state, desk } = deps
  const { committedSeq } = shelf
  const damaged: { seq: number; value: Buffer }[] = []
  const page = await desk.reading(async () => {
    const raw = await rawPage(state, shelf, fromSeq, limit)
    const entries: KeptEntry[] = []
    for (const [key, value] of raw.records) {
      const seq = keptSeqOf(key)
      const entry = show(deps, shelf, seq, value)
      if (entry === 'damaged') damaged.push({ seq, value })
      else if (entry !== 'taken') entries.push(entry)
    }
    return { entries, nextSeq: raw.nextSeq, broken: raw.broken, first: raw.records[0] }
  })
  // Numbers only grow: before the first one that a read from the head shows, nothing will ever stand.
  if (!page.broken && fromSeq === shelf.headSeq && !page.first?.[0].equals(keptKey(shelf.name, fromSeq))) {
    shelf.headSeq = page.first === undefined ? committedSeq : keptSeqOf(page.first[0])
  }
  for (const { seq, value } of damaged) await setAside(deps, shelf, seq, value)
  return page
}

function show({ desk }: ReadDeps, shelf: Shelf, seq: number, value: Buffer): KeptEntry | 'taken' | 'damaged' {
  const record = keptRecord.decode(value)
  const id = keptIdOf(shelf.name, seq)
  // It is seized, so that of two reads that meet it one sets it aside.
  if (record === null) return desk.seize(id) ? 'damaged' : 'taken'
  const { device } = record
  if (!desk.show(id, { kind: 'kept', place: { shelf, seq, device, bytes: value.length } })) return 'taken'
  const { at, ...message } = record
  return { id, keptAt: at, message: { shelf: shelf.name, ...message } }
}

/** `broken`: there is something that cannot be read. */
type RawPage = { records: readonly StoreEntry[]; nextSeq: number | null; broken: boolean }

async function rawPage(state: SpoolState, shelf: Shelf, fromSeq: number, limit: number): Promise<RawPage> {
  const rangeFrom = (seq: number) => keptRange(shelf.name, seq, Number.MAX_SAFE_INTEGER)
  for (const count of [limit, 1]) {
    try {
      const records = await firstPage(state.store, rangeFrom(fromSeq), count)
      const last = records.at(-1)
      return { records, nextSeq: last === undefined ? null : keptSeqOf(last[0]) + 1, broken: false }
    } catch (error) {
      if (codeOf(error) !== 'LEVEL_CORRUPTION') throw error
      // Once more for a single one: the damage may lie further on in the page.
    }
  }
  const what = `a block of a table is damaged; messages from number ${fromSeq} stay on the disk unread`
  state.emit({ kind: 'record_damaged', table: 'kept', name: shelf.name, what })
  const firstFrom = async (seq: number) => {
    const [first] = await firstPage(state.store, rangeFrom(seq), 1)
    return first === undefined ? null : keptSeqOf(first[0])
  }
  const nextSeq = await findReadable(firstFrom, fromSeq, shelf.nextSeq)
  return { records: [], nextSeq: nextSeq < shelf.nextSeq ? nextSeq : null, broken: true }
}

export async function firstPage(
  store: Store,
  range: StoreRange,
  limit: number,
): Promise<readonly StoreEntry[]> {
  for await (const page of store.pages(range, { limit })) return page
  return []
}

async function setAside(deps: ReadDeps, shelf: Shelf, seq: number, value: Buffer): Promise<void> {
  const { state, committer, desk } = deps
  await committer.control({
    prepare: (ops) => setKeptAside(state, { shelf, seq }, value, ops),
    committed: () => desk.gone([keptIdOf(shelf.name, seq)]),
  })
  const what = `the checksum of message ${seq} is wrong; it was set aside`
  state.emit({ kind: 'record_damaged', table: 'kept', name: shelf.name, what })
}

/** The messages of one device, in order of arrival. */
export async function* readDevice(
  deps: ReadDeps,
  shelf: Shelf,
  device: string,
  limit: number,
): AsyncGenerator<KeptEntry> {
  const range = deviceRange(shelf.name, device)
  let left = limit
  let from = range.gte
  while (left > 0) {
    const keys = await firstPage(deps.state.store, { ...range, gte: from }, Math.min(left, looksMax))
    const last = keys.at(-1)
    if (last === undefined) return
    from = keyAfter(last[0])
    const entries = await lookAll(
      deps,
      shelf,
      device,
      keys.map(([key]) => keptSeqOf(key)),
    )
    yield* entries
    left -= entries.length
  }
}

async function lookAll(
  deps: ReadDeps,
  shelf: Shelf,
  device: string,
  seqs: readonly number[],
): Promise<KeptEntry[]> {
  const { state, desk } = deps
  const entries: KeptEntry[] = []
  const damaged: { seq: number; value: Buffer }[] = []
  const missing: number[] = []
  await desk.reading(async () => {
    const values = await Promise.all(seqs.map((seq) => state.store.get(keptKey(shelf.name, seq))))
    for (const [index, seq] of seqs.entries()) {
      const value = values[index]
      const entry = value === undefined ? 'missing' : show(deps, shelf, seq, value)
      if (entry === 'missing') missing.push(seq)
      else if (entry === 'damaged' && value !== undefined) damaged.push({ seq, value })
      else if (entry !== 'damaged' && entry !== 'taken') entries.push(entry)
    }
  })
  for (const { seq, value } of damaged) await setAside(deps, shelf, seq, value)
  for (const seq of [...missing, ...damaged.map(({ seq }) => seq)]) await dropStray(deps, shelf, device, seq)
  return entries
}

/** A message that was set aside leaves its key by device behind. One that was taken took it along. */
async function dropStray(
  { state, committer }: ReadDeps,
  shelf: Shelf,
  device: string,
  seq: number,
): Promise<void> {
  const key = keptByDeviceKey(shelf.name, device, seq)
  const value = await state.store.get(key)
  if (value === undefined) return
  await committer.control({
    prepare: (ops: StoreOp[]) =>
      void ops.push({ type: 'put', key: setAsideKey(key), value }, { type: 'del', key }),
    committed() {},
  })
}

/** Devices of a shelf with what is kept of each, in no order that means anything. */
export async function* readDevices({ state }: ReadDeps, shelf: Shelf): AsyncGenerator<KeptDevice> {
  const range = byDeviceRange(shelf.name)
  let from = range.gte
  let open: KeptDevice = { device: '', messages: 0, oldestAt: 0 }
  for (;;) {
    const page = await firstPage(state.store, { ...range, gte: from }, 10_000)
    const last = page.at(-1)
    if (last === undefined) break
    from = keyAfter(last[0])
    for (const [key, value] of page) {
      const device = deviceOf(key, shelf.name)
      if (open.device !== device || open.messages === 0) {
        if (open.messages > 0) yield open
        open = { device, messages: 0, oldestAt: decodeKeptAt(value) ?? 0 }
      }
      open.messages += 1
    }
  }
  if (open.messages > 0) yield open
}
