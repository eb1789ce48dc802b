// ledger.ts: the ledger: what became of each payload, for support and as proof. The door of this folder.
//
// What it promises
//   Every payload that was settled is in it, with device, device time, batchId, requestId, outcome and time: once for each
//   settle, so a payload that was retried twice and then delivered is in it three times. It stays for `ledger.retention`, or until
//   `ledger.max_bytes` need its place.
//   Nothing depends on it. It may be lost, damaged or full without a payload being late.
//
// How it is written
//   The thread that sends packs payloadId, time and device of each payload of a batch (receipts/receipt-entries.ts); the settle adds
//   what became of them and writes it all as one receipt (receipts/receipts.ts), in the settle's own write: so it is there
//   exactly if the settle is. The follower (receipt-follower.ts) copies receipts to the records, a second database in
//   `<spool>/records`, and lets the spool forget them. The main thread does nothing for a single payload.
//
// How it is stored (record-keys.ts, receipt-index.ts)
//   A receipt is kept as it is, under a number that only grows. Some hundred of them have a block, with a line for each: when,
//   from which to which device time, which outcomes, and a set of its devices and ids that says "not here" or "perhaps".
//
// How it is asked
//   Newest first (ledger-search.ts). A question reads the index blocks, a thirtieth of it all, and then the few receipts whose lines
//   cannot rule it out. Answers are bounded in entries and in time, and say where to go on.
//
// What can go wrong, and what then happens
//   the process dies             what was copied and not forgotten is known by its number and not kept twice
//   a power cut                  the records are not synced: the newest ones may be missing from them
//   the records cannot be used   see records-supervisor.ts; receipts wait in the spool meanwhile, to a bound, beyond which they are
//                                left out and counted
//   the clock steps              order comes from numbers, never from a clock; by age is deleted only while the time is
//                                known from the service (trusted-time.ts)
//   the disk is nearly full      copying rests until the spool takes messages in again
//
// What it trades: some 30 bytes of disk a payload, written twice.

import type { Clock, EpochMs } from '../std/clock.ts'
import type { Emit } from '../domain/event.ts'
import type { LedgerOutcome } from '../receipts/receipts.ts'
import type { OpenStore } from '../storage/storage.ts'
import { createFollower, type FollowerOptions, type ReceiptSource } from './receipt-follower.ts'
import { createRecordsSupervisor, openOfflineRecords } from './records-supervisor.ts'
import { parseLedgerQuery, type LedgerQuery, type LedgerParams } from './ledger-query.ts'
import { search } from './ledger-search.ts'
import { createTrustedTime } from './trusted-time.ts'

export { limitMax, parseLedgerQuery, type LedgerQuery, type LedgerParams } from './ledger-query.ts'

/** What became of one payload in one settle. */
export type LedgerEntry = {
  /** When the settle happened. */
  at: EpochMs
  payloadId: string
  /** Null where the payload names none. */
  device: string | null
  deviceTime: EpochMs | null
  outcome: LedgerOutcome
  /** Of a retry: which schedule, and how often it had failed before. */
  schedule: string | null
  step: number | null
  /** Of a retry or a death. */
  reason: string | null
  detail: string | null
  provider: string
  lane: number
  batchId: string
  requestId: string | null
}

export type LedgerAnswer = {
  /** Newest settle first. */
  entries: readonly LedgerEntry[]
  /** Where to go on (`after`): there may be more. */
  next: string | null
  /** Since when there are records, as far as known; null where there are none. */
  oldestAt: EpochMs | null
  /** Receipts that the spool has and the records not yet. */
  behind: number
}

export type LedgerView = {
  open: boolean
  records: number
  bytes: number
  bytesMax: number
  oldestAt: EpochMs | null
  behind: number
  behindBytes: number
  /** Since the start: payloads that made room, that were too old; receipts the spool had no room for, that were damaged. */
  dropped: number
  expired: number
  missed: number
  damaged: number
}

export type LedgerReply =
  | { kind: 'answer'; answer: LedgerAnswer }
  | { kind: 'invalid'; what: string; why: string; act: string }
  /** The records are not open, or too many ask at once. */
  | { kind: 'unavailable'; why: string }

export type Ledger = {
  start(): void
  /** By the words of ledger-query.ts. Never rejects. */
  query(words: LedgerParams, signal: AbortSignal): Promise<LedgerReply>
  view(): LedgerView
  /** Copies what is there until `deadline` aborts, then closes the records. */
  stop(deadline: AbortSignal): Promise<void>
}

export type LedgerDeps = {
  clock: Clock
  emit: Emit
  openStore: OpenStore
  source: ReceiptSource
  /** What has to be added to our clock to get the true time; null while unknown. */
  clockOffsetMs: () => number | null
}

export type LedgerOptions = FollowerOptions & {
  /** Of the spool. */
  path: string
  reopen: { firstMs: number; mostMs: number }
}

/** A question holds a page of records in memory, and takes time of the disk. */
const askingMax = 4
/** What was settled just now is copied before a question is answered, for so long. */
const catchUpMs = 2000
const blockReceiptBytesMax = 1024 * 1024

export function createLedger(deps: LedgerDeps, options: LedgerOptions): Ledger {
  const { clock, source } = deps
  const keeper = createRecordsSupervisor(deps, {
    ...options,
    // A bound is kept to a block, so a small one has small index blocks.
    blockReceiptBytesMax: Math.min(blockReceiptBytesMax, options.bytesMax / 16),
  })
  const time = createTrustedTime({ clock, offsetMs: deps.clockOffsetMs })
  const follower = createFollower({ ...deps, keeper, time }, options)
  let asking = 0

  return {
    start: follower.start,
    query: ask,
    view,
    async stop(deadline) {
      await follower.stop(deadline)
      await keeper.close()
    },
  }

  async function ask(words: LedgerParams, signal: AbortSignal): Promise<LedgerReply> {
    const asked = parseLedgerQuery(words, clock.now())
    if (asked.kind === 'invalid') return asked
    const { question } = asked
    if (asking >= askingMax) return { kind: 'unavailable', why: 'Others are asking; ask again in a moment.' }
    asking += 1
    try {
      // Only the first page: the others go on behind it.
      if (question.after === undefined) await caughtUp(signal)
      const records = await keeper.ensure()
      if (records === null)
        return { kind: 'unavailable', why: 'Its records are not open; see the conditions.' }
      try {
        const found = await search(records, question, { clock, signal })
        const behind = source.totals().receipts
        return { kind: 'answer', answer: { ...found, oldestAt: await records.beginsAt(), behind } }
      } catch (error) {
        await keeper.lost(records, error)
        return { kind: 'unavailable', why: 'Its records could not be read; see the conditions.' }
      }
    } finally {
      asking -= 1
    }
  }

  async function caughtUp(signal: AbortSignal): Promise<void> {
    const enough = new AbortController()
    const cancel = clock.after(catchUpMs, () => enough.abort())
    await follower.catchUp(AbortSignal.any([signal, enough.signal]))
    cancel()
  }

  function view(): LedgerView {
    const { receipts, receiptBytes, receiptsDropped } = source.totals()
    const { records } = keeper
    return {
      open: records !== null,
      ...(records?.totals() ?? { records: 0, bytes: 0, oldestAt: null }),
      bytesMax: options.bytesMax,
      behind: receipts,
      behindBytes: receiptBytes,
      missed: receiptsDropped,
      ...follower.counters(),
    }
  }
}

/** Asks the records of a daemon that does not run. Rejects with LEDGER_LOCKED, LEDGER_UNUSABLE or LEDGER_MISSING. */
export async function openOfflineLedger(
  { openStore, clock }: Pick<LedgerDeps, 'openStore' | 'clock'>,
  { path }: Pick<LedgerOptions, 'path'>,
) {
  const records = await openOfflineRecords(openStore, path)
  return {
    async ask(question: LedgerQuery, signal: AbortSignal): Promise<LedgerAnswer> {
      const found = await search(records, question, { clock, signal })
      return { ...found, oldestAt: await records.beginsAt(), behind: 0 }
    },
    [Symbol.asyncDispose]: () => records.close(),
  }
}
