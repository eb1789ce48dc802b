// kept-message-reader.ts: reads kept messages, a page at a time: one long iteration would make LevelDB keep
// everything that is deleted meanwhile.
//
// A damaged message is set aside unchanged, reported and counted. A block that cannot be read is skipped,
// reported and left alone. Reading continues behind both.

import type { StoreEntry, StoreOp } from '../../storage/storage.ts'
import { firstEntries, readOne, scan } from '../chunk-log/damage-scan.ts'
import {
  byDeviceRange,
  deviceOf,
  deviceRange,
  keptByDeviceKey,
  keptKey,
  keptRange,
  isKeptKey,
  keptSeqOf,
  keyAfter,
  setAsideKey,
} from '../chunk-log/key-layout.ts'
import { blockDamaged, reportRecord } from '../recovery/table-records.ts'
import { decodeKeptAt, keptMessageRecord } from '../chunk-log/record-codec.ts'
import type { Session, Shelf } from '../session-state.ts'
import type { KeptDevice, KeptEntry } from '../types.ts'
import { keptEntryOf, keptMessageId } from './entry-reservations.ts'
import { setMessageAside } from './message-shelf.ts'

const pageMessagesMax = 1000
/** The messages of one device are apart from each other, so each is looked up separately. */
const lookUpsMax = 64
const pageDevicesMax = 10_000

/** In order of arrival. */
export async function* readShelf(session: Session, shelf: Shelf, limit: number): AsyncGenerator<KeptEntry> {
  let left = limit
  let fromSeq: number | null = shelf.headSeq
  while (left > 0 && fromSeq !== null) {
    const page: KeptPage = await readPage(session, shelf, fromSeq, Math.min(left, pageMessagesMax))
    yield* page.entries
    left -= page.entries.length
    fromSeq = page.nextSeq
  }
}

type KeptPage = { entries: KeptEntry[]; nextSeq: number | null }

type DamagedMessage = { seq: number; value: Buffer }

async function readPage(session: Session, shelf: Shelf, fromSeq: number, limit: number): Promise<KeptPage> {
  const { reservations } = session
  const { committedSeq } = shelf
  const damaged: DamagedMessage[] = []
  const page = await reservations.duringRead(async () => {
    const { records, isComplete } = await readRecords(session, shelf, fromSeq, limit)
    const entries: KeptEntry[] = []
    for (const [key, value] of records)
      addEntry(session, shelf, { seq: keptSeqOf(key), value }, entries, damaged)
    return { records, isComplete, entries }
  })
  const { records } = page
  const [first] = records
  // Numbers only grow: nothing will ever precede the first message that a read from the head finds.
  if (page.isComplete && fromSeq === shelf.headSeq)
    shelf.headSeq = first === undefined ? committedSeq : keptSeqOf(first[0])
  await setAside(session, shelf, damaged)
  const last = records.length === limit ? records.at(-1) : undefined
  return { entries: page.entries, nextSeq: last === undefined ? null : keptSeqOf(last[0]) + 1 }
}

/** The next records of a shelf; not complete if something before their end cannot be read. */
async function readRecords(
  { store, emit }: Session,
  shelf: Shelf,
  fromSeq: number,
  limit: number,
): Promise<{ records: StoreEntry[]; isComplete: boolean }> {
  const records: StoreEntry[] = []
  let isComplete = true
  const range = keptRange(shelf.name, fromSeq, Number.MAX_SAFE_INTEGER)
  for await (const page of scan(store, range, { limit })) {
    if (page.kind === 'gap') {
      isComplete = false
      const last = records.at(-1)
      const nextSeq = last === undefined ? fromSeq : keptSeqOf(last[0]) + 1
      const what = `a block of a table is damaged; messages from number ${nextSeq} stay on the disk unread`
      emit({ kind: 'record_damaged', table: 'kept', name: shelf.name, what })
      continue
    }
    for (const entry of page.entries) {
      if (!isKeptKey(entry[0])) continue
      records.push(entry)
      if (records.length === limit) return { records, isComplete }
    }
  }
  return { records, isComplete }
}

/** Registers a message and adds it to one of the lists, unless it is taken. Within a read. */
function addEntry(
  { reservations }: Session,
  shelf: Shelf,
  { seq, value }: DamagedMessage,
  entries: KeptEntry[],
  damaged: DamagedMessage[],
): void {
  const record = keptMessageRecord.decode(value)
  const id = keptMessageId(shelf.name, seq)
  if (record === null) {
    // Taken, so that of two reads that find it one sets it aside.
    if (reservations.take(id)) damaged.push({ seq, value })
    return
  }
  const { at, ...message } = record
  if (reservations.register(id, keptEntryOf(shelf, seq, record, value.length)))
    entries.push({ id, keptAt: at, message: { shelf: shelf.name, ...message } })
}

async function setAside(session: Session, shelf: Shelf, damaged: readonly DamagedMessage[]): Promise<void> {
  const { committer, reservations, emit } = session
  for (const { seq, value } of damaged) {
    await committer.commit({
      prepare: (ops) => setMessageAside(session, { shelf, seq, value }, ops),
      committed: () => reservations.deleted([keptMessageId(shelf.name, seq)]),
    })
    const what = `the checksum of message ${seq} is wrong; it was set aside`
    emit({ kind: 'record_damaged', table: 'kept', name: shelf.name, what })
  }
}

/** The messages of one device, in order of arrival. */
export async function* readDevice(
  session: Session,
  shelf: Shelf,
  device: string,
  limit: number,
): AsyncGenerator<KeptEntry> {
  const range = deviceRange(shelf.name, device)
  let left = limit
  let from = range.gte
  while (left > 0) {
    const limit = Math.min(left, lookUpsMax)
    const { entries: keys } = await firstEntries(session.store, { ...range, gte: from }, limit)
    const last = keys.at(-1)
    if (last === undefined) return
    from = keyAfter(last[0])
    const seqs = keys.map(([key]) => keptSeqOf(key))
    const entries = await lookUp(session, shelf, device, seqs)
    yield* entries
    left -= entries.length
  }
}

async function lookUp(
  session: Session,
  shelf: Shelf,
  device: string,
  seqs: readonly number[],
): Promise<KeptEntry[]> {
  const { store, reservations } = session
  const entries: KeptEntry[] = []
  const damaged: DamagedMessage[] = []
  const missing: number[] = []
  await reservations.duringRead(async () => {
    const values = await Promise.all(seqs.map((seq) => readOne(store, keptKey(shelf.name, seq))))
    for (const [index, seq] of seqs.entries()) {
      const { value, isUnreadable = false } = values[index] ?? {}
      // Where its block cannot be read, the message stays, and so does its key by device.
      if (isUnreadable) reportRecord(session, 'kept', blockDamaged, shelf.name)
      else if (value === undefined) missing.push(seq)
      else addEntry(session, shelf, { seq, value }, entries, damaged)
    }
  })
  await setAside(session, shelf, damaged)
  for (const seq of [...missing, ...damaged.map(({ seq }) => seq)])
    await setKeyAside(session, keptByDeviceKey(shelf.name, device, seq))
  return entries
}

/** A message that was set aside leaves its key by device behind. A message that was taken does not. */
async function setKeyAside({ store, committer }: Session, key: Buffer): Promise<void> {
  const value = await store.get(key)
  if (value === undefined) return
  await committer.commit({
    prepare: (ops: StoreOp[]) =>
      void ops.push({ type: 'put', key: setAsideKey(key), value }, { type: 'del', key }),
  })
}

/** The devices of a shelf with what is kept of each, in no particular order. */
export async function* readDevices({ store }: Session, shelf: Shelf): AsyncGenerator<KeptDevice> {
  const range = byDeviceRange(shelf.name)
  let from = range.gte
  let open: KeptDevice = { device: '', messages: 0, oldestAt: 0 }
  for (;;) {
    const { entries: page } = await firstEntries(store, { ...range, gte: from }, pageDevicesMax)
    const last = page.at(-1)
    if (last === undefined) break
    from = keyAfter(last[0])
    for (const [key, value] of page) {
      const device = deviceOf(key, shelf.name)
      if (device === null) continue
      if (open.device !== device || open.messages === 0) {
        if (open.messages > 0) yield open
        open = { device, messages: 0, oldestAt: decodeKeptAt(value) ?? 0 }
      }
      open.messages += 1
    }
  }
  if (open.messages > 0) yield open
}
