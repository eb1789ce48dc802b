// ledger.ts: what happened to each payload, for support and as proof of delivery. Entry file of this folder.
//
// Guarantees
//   Each settled payload has an entry with device, device time, batchId, requestId, outcome and time, one for
//   each settlement: a payload that was retried twice and then delivered has three. Entries stay for
//   `ledger.retention`, or until `ledger.max_bytes` is reached.
//   Nothing depends on the ledger. It may be lost, damaged or full, and no payload is late.
//
// How it is written
//   The sender thread packs payloadId, time and device of each payload of a batch
//   (receipts/receipt-entries.ts). The settle adds the outcomes and stores all of it as one receipt
//   (receipts/receipts.ts) in its own write, so the receipt exists exactly when the settlement does. The
//   follower (receipt-follower.ts) copies receipts, usually from memory, to the records, a second database in
//   `<spool>/records`, and removes them from the spool. The main thread does no work for a single payload.
//
// How it is stored (record-keys.ts, receipt-index.ts)
//   A receipt is kept as it is, under a number that only grows. Some hundred receipts share an index block
//   with an entry for each: time, range of device times, outcomes, and a bloom filter of its devices and ids.
//
// How it is read
//   Newest first (ledger-search.ts). A query reads the index blocks, which are a thirtieth of the data, and
//   then the few receipts that may match. An answer is bounded in entries and time, and says where to
//   continue.
//
// Failures
//   the process ends             copied receipts that are still in the spool are recognised by their numbers
//   a power cut                  the records are not synced, so the newest entries may be missing
//   the records cannot be used   see records-supervisor.ts; receipts wait in the spool up to a limit, beyond
//                                which they are dropped and counted
//   the clock steps              order comes from numbers, never from a clock; retention deletes only while
//                                the time is known from the service (trusted-time.ts), and never by a time
//                                that was written while it was not
//   the disk is nearly full      copying pauses until the spool accepts messages again
//
// Cost: about 30 bytes of disk for a payload, written twice.

import type { Clock, EpochMs } from '../std/clock.ts'
import type { Emit } from '../domain/event.ts'
import type { CheckStore, OpenStore } from '../storage/storage.ts'
import { search } from './ledger-search.ts'
import { createFollower, type FollowerOptions, type ReceiptSource } from './receipt-follower.ts'
import type { PreviousEnd } from './records-check.ts'
import { createRecordsSupervisor, openOfflineRecords, type RecordsSupervisor } from './records-supervisor.ts'
import { createTrustedTime } from './trusted-time.ts'
import type { LedgerAnswer, LedgerQuery } from './types.ts'
import { outcomeBits } from '../receipts/receipts.ts'
import type { Records } from './ledger-records.ts'
import { withoutPayloads } from '../receipts/receipt-edit.ts'
import { hashOfDevice } from '../receipts/receipt-entries.ts'

export type { LedgerAnswer, LedgerEntry, LedgerQuery } from './types.ts'

export type LedgerView = {
  open: boolean
  records: number
  bytes: number
  bytesMax: number
  oldestAt: EpochMs | null
  behind: number
  behindBytes: number
  /** Since the start: payloads deleted at `max_bytes` and by `retention`. */
  dropped: number
  expired: number
  /** Since the start: receipts that the spool had no space for, and damaged ones. */
  missed: number
  damaged: number
  /** Since the start: receipts that were not in memory any more when they were copied. */
  reread: number
}

export type LedgerReply =
  | { kind: 'answer'; answer: LedgerAnswer }
  /** The records are not open, or too many queries run. */
  | { kind: 'unavailable'; why: string }

export type LedgerForgotten = { kind: 'forgotten'; entries: number } | { kind: 'unavailable'; why: string }

export type Ledger = {
  start(): void
  /** Never rejects. */
  query(query: LedgerQuery, signal: AbortSignal): Promise<LedgerReply>
  /**
   * Visits each payload that was delivered before this call, if its device time may be in the range. Never
   * rejects. `since`: settlement time of the oldest entry.
   */
  visitDelivered(
    times: TimeRange,
    visit: (payloadId: string) => void,
    signal: AbortSignal,
  ): Promise<{ kind: 'asked'; since: EpochMs | null } | { kind: 'unavailable'; why: string }>
  /** Deletes the entries of a device. Never rejects. */
  forget(device: string, signal: AbortSignal): Promise<LedgerForgotten>
  view(): LedgerView
  /** Copies all receipts until `deadline` aborts, then closes the records. */
  stop(deadline: AbortSignal): Promise<void>
}

/** Keeps the database of the records open. Others may use it, too. */
export function createRecords(deps: RecordsDeps, options: LedgerOptions): RecordsSupervisor {
  return createRecordsSupervisor(deps, {
    ...options,
    // `bytesMax` is kept to within one index block, so a small ledger has small ones.
    blockReceiptBytesMax: Math.min(blockReceiptBytesMax, options.bytesMax / 16),
    // And an entry outlives the retention by at most so much.
    blockAgeMaxMs: Math.min(blockAgeMaxMs, options.retentionMs / 8),
  })
}

export type RecordsDeps = Omit<LedgerDeps, 'source' | 'clockOffsetMs' | 'records'>

export type LedgerDeps = {
  clock: Clock
  emit: Emit
  openStore: OpenStore
  /** Checks the files of the records before they are opened. Without it nothing is checked. */
  checkStore?: CheckStore
  /** Whether the directory of the spool is there. Where it is not, no records are made. Default: it is. */
  isSpoolThere?: () => Promise<boolean>
  /** How the process ended that had the records before. */
  previousEnd?: PreviousEnd
  source: ReceiptSource
  /** From createRecords(); the caller closes them. Without them the ledger has its own. */
  records?: RecordsSupervisor
  /** To add to our clock to get the true time; null while unknown. */
  clockOffsetMs: () => number | null
}

export type LedgerOptions = FollowerOptions & {
  /** Of the spool. */
  path: string
  reopen: { firstMs: number; mostMs: number }
}

/** A query holds a page of records in memory and takes disk time. */
const queriesMax = 4
/** New receipts are copied before a query is answered, for at most this long. */
const catchUpMs = 2000
const blockReceiptBytesMax = 1024 * 1024
const blockAgeMaxMs = 86_400_000

const notOpen = 'Its records are not open. `status` shows the reason.'
const unreadable = 'Its records could not be read. `status` shows the reason.'

export function createLedger(deps: LedgerDeps, options: LedgerOptions): Ledger {
  const { clock, source } = deps
  const supervisor = deps.records ?? createRecords(deps, options)
  const time = createTrustedTime({ clock, offsetMs: deps.clockOffsetMs })
  const follower = createFollower({ ...deps, supervisor, time }, options)
  let running = 0

  return {
    start: follower.start,
    query,
    visitDelivered: delivered,
    forget,
    view,
    async stop(deadline) {
      await follower.stop(deadline)
      if (deps.records === undefined) await supervisor.close()
    },
  }

  async function query(wanted: LedgerQuery, signal: AbortSignal): Promise<LedgerReply> {
    if (running >= queriesMax)
      return { kind: 'unavailable', why: `${queriesMax} other queries are running. Try again in a moment.` }
    running += 1
    try {
      return await answer(wanted, signal)
    } finally {
      running -= 1
    }
  }

  async function answer(wanted: LedgerQuery, signal: AbortSignal): Promise<LedgerReply> {
    // Only for the first page: the others continue behind it.
    if (wanted.after === undefined) await caughtUp(signal)
    const records = await supervisor.ensure()
    if (records === null) return { kind: 'unavailable', why: notOpen }
    try {
      const found = await search(records, wanted, { clock, signal })
      const behind = source.totals().receipts
      return { kind: 'answer', answer: { ...found, oldestAt: await records.beginsAt(), behind } }
    } catch (error) {
      await supervisor.lost(records, error)
      return { kind: 'unavailable', why: unreadable }
    }
  }

  async function delivered(
    times: TimeRange,
    visit: (payloadId: string) => void,
    signal: AbortSignal,
  ): Promise<{ kind: 'asked'; since: EpochMs | null } | { kind: 'unavailable'; why: string }> {
    // Without a time limit: an answer without the newest receipts would be wrong.
    if (!(await follower.catchUp(signal)))
      return { kind: 'unavailable', why: 'It does not have the latest results. `status` shows the reason.' }
    const records = await supervisor.ensure()
    if (records === null) return { kind: 'unavailable', why: notOpen }
    try {
      if (await visitDelivered(records, times, visit, signal))
        return { kind: 'asked', since: await records.beginsAt() }
      return { kind: 'unavailable', why: 'The request was interrupted.' }
    } catch (error) {
      await supervisor.lost(records, error)
      return { kind: 'unavailable', why: unreadable }
    }
  }

  async function forget(device: string, signal: AbortSignal): Promise<LedgerForgotten> {
    // A receipt that is copied later would bring entries back.
    if (!(await follower.catchUp(signal)))
      return { kind: 'unavailable', why: 'It does not have the latest results. `status` shows the reason.' }
    const records = await supervisor.ensure()
    if (records === null) return { kind: 'unavailable', why: notOpen }
    try {
      const { entries, isDone } = await forgetDevice(records, device, signal)
      return isDone
        ? { kind: 'forgotten', entries }
        : { kind: 'unavailable', why: 'The request was interrupted.' }
    } catch (error) {
      await supervisor.lost(records, error)
      return { kind: 'unavailable', why: unreadable }
    }
  }

  async function caughtUp(signal: AbortSignal): Promise<void> {
    const enough = new AbortController()
    const cancel = clock.after(catchUpMs, () => enough.abort())
    await follower.catchUp(AbortSignal.any([signal, enough.signal]))
    cancel()
  }

  function view(): LedgerView {
    const { receipts, receiptBytes, receiptsDropped, receiptsReread } = source.totals()
    const { records } = supervisor
    return {
      open: records !== null,
      ...(records?.totals() ?? { records: 0, bytes: 0, oldestAt: null }),
      bytesMax: options.bytesMax,
      behind: receipts,
      behindBytes: receiptBytes,
      missed: receiptsDropped,
      reread: receiptsReread,
      ...follower.counters(),
    }
  }
}

/** The ledger of a stopped daemon. Rejects with LEDGER_LOCKED, LEDGER_UNUSABLE or LEDGER_MISSING. */
export async function openOfflineLedger(
  { openStore, checkStore, clock }: Pick<LedgerDeps, 'openStore' | 'clock'> & { checkStore: CheckStore },
  { path }: Pick<LedgerOptions, 'path'>,
) {
  const records = await openOfflineRecords({ openStore, checkStore }, path)
  return {
    async query(query: LedgerQuery, signal: AbortSignal): Promise<LedgerAnswer> {
      const found = await search(records, query, { clock, signal })
      return { ...found, oldestAt: await records.beginsAt(), behind: 0 }
    },
    [Symbol.asyncDispose]: () => records.close(),
  }
}

// Visits every payload that was delivered, for an import that must not send it again. It
// reads each receipt whose device times meet the range, so its cost is that of the range, not of one search
// for each payload.

type TimeRange = { from: EpochMs; to: EpochMs }

/** Resolves with false if `signal` ended it. */
async function visitDelivered(
  records: Records,
  { from, to }: TimeRange,
  visit: (payloadId: string) => void,
  signal: AbortSignal,
): Promise<boolean> {
  for await (const block of records.indexBlocks(Number.MAX_SAFE_INTEGER)) {
    for (const { number, outcomes, earliest, latest } of block.newestFirst()) {
      if (signal.aborted) return false
      if ((outcomes & outcomeBits.delivered) === 0) continue
      // A receipt without any device time may hold every payload.
      if (earliest !== null && latest !== null && (latest < from || earliest > to)) continue
      const receipt = await records.receipt(number)
      // Null where it was dropped meanwhile, or is damaged.
      if (receipt === null) continue
      const { entries, settlement } = receipt
      for (let index = 0; index < entries.count; index += 1)
        if (settlement(index).outcome === 'delivered') visit(entries.idAt(index))
    }
  }
  return true
}

// Deletes the entries of one device. Each receipt that has some is written again without
// them. Its index entry stays as it is: it says where a payload may be, and its counts are those of the time
// of the copy until the block is dropped.

/** Resolves with the number of entries, and whether `signal` ended it. */
async function forgetDevice(
  records: Records,
  device: string,
  signal: AbortSignal,
): Promise<{ entries: number; isDone: boolean }> {
  const hash = hashOfDevice(device)
  let removed = 0
  for await (const block of records.indexBlocks(Number.MAX_SAFE_INTEGER)) {
    for (const { number, mayHold } of block.newestFirst()) {
      if (signal.aborted) return { entries: removed, isDone: false }
      if (!mayHold(hash)) continue
      const receipt = await records.receipt(number)
      // Null where it was dropped meanwhile, or is damaged.
      const indexes = receipt?.entries.ofDevice(device) ?? []
      if (receipt === null || indexes.length === 0) continue
      await records.replace(number, withoutPayloads(receipt, new Set(indexes)))
      removed += indexes.length
    }
  }
  return { entries: removed, isDone: true }
}
