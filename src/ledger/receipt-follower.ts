// receipt-follower.ts: copies receipts from the spool to the records in the background, then removes them
// from the spool.
//
//   receipts of the spool -> a slice -> records (one write) -> removed from the spool -> old or excess
//   records deleted
//
// It runs every few seconds and copies one slice at a time with a rest between them, so that a long backlog
// does not take time from delivery. At most one slice is in memory. When the process ends between the write
// and the removal, the records recognise the numbers that come again (ledger-records.ts). Ends with stop().

import { pause, whenAborted, type CancelTimer, type Clock, type EpochMs } from '../std/clock.ts'
import { GatewayError } from '../std/gateway-error.ts'
import { timeUnknown } from '../domain/arrival.ts'
import type { Emit } from '../domain/event.ts'
import type { RecordsSupervisor } from './records-supervisor.ts'
import type { NumberedReceipt, Records } from './ledger-records.ts'
import type { TrustedTime } from './trusted-time.ts'

/** The spool. It reports its own failures; the follower tries again later. */
export type ReceiptSource = {
  receipts(options: { limit: number }): Promise<readonly NumberedReceipt[]>
  forgetReceipts(n: number): Promise<void>
  totals(): { receipts: number; receiptBytes: number; receiptsDropped: number; receiptsReread: number }
  /** Why the spool accepts nothing; null where it does. */
  holdReason(): string | null
}

export type FollowerOptions = {
  bytesMax: number
  retentionMs: number
  followEveryMs: number
  sliceReceipts: number
  sliceRestMs: number
}

export type FollowerCounters = {
  /** Payloads deleted since the start: beyond `bytesMax`, and by age. */
  dropped: number
  expired: number
  /** Damaged receipts. */
  damaged: number
}

export type Follower = {
  start(): void
  /**
   * Copies all present receipts; resolves when done or when `signal` aborts, with whether all were copied.
   * Never rejects.
   */
  catchUp(signal: AbortSignal): Promise<boolean>
  counters(): FollowerCounters
  /** Copies all present receipts until `deadline` aborts, then ends. */
  stop(deadline: AbortSignal): Promise<void>
}

type Deps = {
  clock: Clock
  emit: Emit
  supervisor: RecordsSupervisor
  source: ReceiptSource
  time: TrustedTime
}

/** Compacts after this many dropped bytes. */
const compactAfterBytes = 16 * 1024 * 1024

export function createFollower(deps: Deps, options: FollowerOptions): Follower {
  const { clock, emit, supervisor, source, time } = deps
  const counters: FollowerCounters = { dropped: 0, expired: 0, damaged: 0 }
  const ending = new AbortController()
  let cancel: CancelTimer = () => {}
  let round: Promise<boolean> | null = null
  let droppedBytes = 0

  return { start, catchUp, counters: () => ({ ...counters }), stop }

  function start(): void {
    follow(0)
  }

  function follow(delayMs: number): void {
    cancel = clock.after(delayMs, () => {
      // It never rejects.
      void run(ending.signal).then(() => {
        if (!ending.signal.aborted) follow(options.followEveryMs)
      })
    })
  }

  /** One round at a time. */
  function run(signal: AbortSignal): Promise<boolean> {
    round ??= copyAll(signal).finally(() => {
      round = null
    })
    return round
  }

  async function catchUp(signal: AbortSignal): Promise<boolean> {
    // A round that already runs may have read before the newest receipt was there.
    await Promise.race([round, whenAborted(signal)])
    if (signal.aborted) return false
    return Promise.race([run(ending.signal), whenAborted(signal).then(() => false)])
  }

  /** Resolves with whether none is left. */
  async function copyAll(signal: AbortSignal): Promise<boolean> {
    // On every round, or a step of the clock is noticed late.
    const now = time.now()
    const records = await supervisor.ensure()
    if (records === null || source.holdReason() === 'disk_low') return false
    try {
      do {
        const copied = await copySlice(records, now ?? timeUnknown)
        await makeRoom(records, now)
        if (copied < options.sliceReceipts) return true
      } while (await pause(clock, options.sliceRestMs, signal))
    } catch (error) {
      if (!(error instanceof SourceError)) await supervisor.lost(records, error)
    }
    return false
  }

  /** Resolves with the number of receipts. */
  async function copySlice(records: Records, now: EpochMs): Promise<number> {
    const receipts = await fromSource(() => source.receipts({ limit: options.sliceReceipts }))
    const last = receipts.at(-1)
    if (last === undefined) return 0
    const { damaged } = await records.append(receipts, now)
    await fromSource(() => source.forgetReceipts(last.n))
    counters.damaged += damaged
    if (damaged > 0) emit({ kind: 'ledger_receipts_damaged', receipts: damaged })
    return receipts.length
  }

  async function makeRoom(records: Records, now: EpochMs | null): Promise<void> {
    for (;;) {
      if (now !== null) await records.dateOldest(now)
      const { bytes, oldestAt, records: payloads } = records.totals()
      const tooMuch = bytes > options.bytesMax
      const tooOld = now !== null && oldestAt !== null && oldestAt < now - options.retentionMs
      if (payloads === 0 || (!tooMuch && !tooOld)) break
      counters[tooOld ? 'expired' : 'dropped'] += await records.dropOldest()
      droppedBytes += bytes - records.totals().bytes
    }
    if (droppedBytes < Math.min(compactAfterBytes, options.bytesMax / 4)) return
    droppedBytes = 0
    await records.compact()
  }

  async function stop(deadline: AbortSignal): Promise<void> {
    cancel()
    if (!deadline.aborted) await catchUp(deadline)
    ending.abort()
    await round
  }
}

/** A failure of the spool, which reports it itself. The records are not affected. */
class SourceError extends Error {}

async function fromSource<Result>(ask: () => Promise<Result>): Promise<Result> {
  try {
    return await ask()
  } catch (error) {
    throw error instanceof GatewayError
      ? new SourceError('the spool did not answer', { cause: error })
      : error
  }
}
