// receipt-follower.ts: copies receipts from the spool to the records, in the background, and then lets the spool forget them.
//
//   receipts of the spool -> [a slice] -> records (one write) -> the spool forgets them -> what is too old or too much goes
//
// It looks every few seconds and copies a slice at a time with a rest between them, so that a long backlog does not take
// the time of the road. At most one slice is in memory. Where it dies after the write and before the forgetting, the
// records know the numbers that come again (ledger-records.ts). It ends with stop().

import { pause, type CancelTimer, type Clock, type EpochMs } from '../std/clock.ts'
import { GatewayError } from '../std/gateway-error.ts'
import type { Emit } from '../domain/event.ts'
import type { RecordsSupervisor } from './records-supervisor.ts'
import type { NumberedReceipt, Records } from './ledger-records.ts'
import type { TrustedTime } from './trusted-time.ts'

/** Where receipts come from: the spool. Rejections are its own business; the follower comes again. */
export type ReceiptSource = {
  receipts(options: { limit: number }): Promise<readonly NumberedReceipt[]>
  forgetReceipts(n: number): Promise<void>
  totals(): { receipts: number; receiptBytes: number; receiptsDropped: number }
  /** Why the spool takes nothing in. */
  readonly holdReason: string | null
}

export type FollowerOptions = {
  bytesMax: number
  retentionMs: number
  followEveryMs: number
  sliceReceipts: number
  sliceRestMs: number
}

export type FollowerCounters = {
  /** Payloads that went since the start: beyond the bound, and by age. */
  dropped: number
  expired: number
  /** Receipts that could not be read. */
  damaged: number
}

export type Follower = {
  start(): void
  /** Copies what is there now; resolves when it has, or when `signal` aborts. Never rejects. */
  catchUp(signal: AbortSignal): Promise<void>
  counters(): FollowerCounters
  /** Copies what is there until `deadline` aborts, then ends. */
  stop(deadline: AbortSignal): Promise<void>
}

type Deps = { clock: Clock; emit: Emit; keeper: RecordsSupervisor; source: ReceiptSource; time: TrustedTime }

/** So much that was dropped is worth a compaction. */
const compactAfterBytes = 16 * 1024 * 1024

export function createFollower(deps: Deps, options: FollowerOptions): Follower {
  const { clock, emit, keeper, source, time } = deps
  const counters: FollowerCounters = { dropped: 0, expired: 0, damaged: 0 }
  const ending = new AbortController()
  let cancel: CancelTimer = () => {}
  let round: Promise<void> | null = null
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
  function run(signal: AbortSignal): Promise<void> {
    round ??= copyAll(signal).finally(() => {
      round = null
    })
    return round
  }

  async function catchUp(signal: AbortSignal): Promise<void> {
    // What runs already may have looked before the newest one was there.
    await Promise.race([round, aborted(signal)])
    if (!signal.aborted) await Promise.race([run(ending.signal), aborted(signal)])
  }

  async function copyAll(signal: AbortSignal): Promise<void> {
    // On every round, or a step of the clock is seen late.
    const now = time.now()
    const records = await keeper.ensure()
    if (records === null || source.holdReason === 'disk_low') return
    try {
      do {
        const copied = await copySlice(records, now ?? clock.now())
        await makeRoom(records, now)
        if (copied < options.sliceReceipts) return
      } while (await pause(clock, options.sliceRestMs, signal))
    } catch (error) {
      if (error instanceof SourceError) return
      await keeper.lost(records, error)
    }
  }

  /** Gives how many receipts there were. */
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
      const { bytes, oldestAt } = records.totals()
      const tooMuch = bytes > options.bytesMax
      const tooOld = now !== null && oldestAt !== null && oldestAt < now - options.retentionMs
      if (oldestAt === null || (!tooMuch && !tooOld)) break
      const payloads = await records.dropOldest()
      counters[tooOld ? 'expired' : 'dropped'] += payloads
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

/** A failure of the spool, which says nothing about the records and is told by the spool. */
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

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
