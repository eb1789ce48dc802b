// in-flight-batches.ts: the sealed batches of one provider that are not settled. For each it holds the state
// that is not on disk, how long it waits, and what ends the wait early.
//
// Bound: `batchesMax`. When it is reached nothing more is sealed, and payloads stay pending in their lanes.
// A healthy provider has at most `max_in_flight`, far below the bound: only batches that fail one by one
// accumulate here. Isolation (isolation.ts) may replace a batch by as many batches as it has payloads.

import type { Clock } from '../../std/clock.ts'
import type { Batch } from '../../spool/spool.ts'
import type { BackoffOptions } from '../delivery-options.ts'
import { batchWait } from './backoff.ts'
import type { PayloadResults } from './payload-results.ts'
import type { Wait } from './policy.ts'

const batchesMax = 1024

export type InFlightBatch = {
  readonly batch: Batch
  /** In a submission now. */
  running: boolean
  /** Monotonic; it waits until then, for the reason of `wait`. */
  readyAtMs: number
  wait: Wait
  /** Submissions by this process. */
  submissions: number
  sentBefore: boolean
  /** Failures in a row, for its own back-off. */
  failures: number
  /** Failures between which other batches succeeded. */
  failuresAlone: number
  /** Successes of the provider when this batch last failed, and when it was last answered 401 or 403. */
  failedAtSuccess: number
  unauthorizedAtSuccess: number | null
  stuck: boolean
  earlierResults: PayloadResults | null
  /** Its payloads as the ledger records them, once an answer has come (receipts/receipt-entries.ts). */
  entries: Uint8Array | null
  /** Order of the last submissions, so that probes alternate. */
  triedAt: number
}

export type InFlightBatches = {
  readonly size: number
  /** Nothing more may be sealed. */
  readonly full: boolean
  /** In the order of sealing. */
  all(): Iterable<InFlightBatch>
  add(batch: Batch, from: 'sealed' | 'recovered'): InFlightBatch
  remove(inFlight: InFlightBatch): void
  /** Begins a submission. */
  take(inFlight: InFlightBatch): void
  /** Ends a submission: the batch waits. Returns for how long. */
  rest(inFlight: InFlightBatch, wait: Wait, options?: { retryAfterMs: number }): number
  /** The endpoint is available again: ends the back-offs. */
  release(): void
  /** Ends the waits of one kind. */
  releaseWaiting(wait: 'isolation' | 'acceptance' | 'dead-letters'): void
  /** Ends all waits. */
  releaseAll(): void
}

export function createInFlightBatches(
  { clock, random }: { clock: Clock; random: () => number },
  { backoff }: { backoff: BackoffOptions },
): InFlightBatches {
  const open = new Set<InFlightBatch>()
  let tries = 0

  return {
    get size() {
      return open.size
    },
    get full() {
      return open.size >= batchesMax
    },
    all: () => open,
    add,
    remove: (inFlight) => void open.delete(inFlight),
    take(inFlight) {
      inFlight.running = true
      inFlight.triedAt = ++tries
    },
    rest,
    release() {
      for (const inFlight of open) {
        if (inFlight.wait !== 'backoff') continue
        inFlight.failures = 0
        ready(inFlight)
      }
    },
    releaseWaiting(wait) {
      for (const inFlight of open) if (inFlight.wait === wait) ready(inFlight)
    },
    releaseAll() {
      for (const inFlight of open) ready(inFlight)
    },
  }

  function add(batch: Batch, from: 'sealed' | 'recovered'): InFlightBatch {
    const inFlight: InFlightBatch = {
      batch,
      running: false,
      readyAtMs: clock.monotonic(),
      wait: 'none',
      submissions: 0,
      // A recovered batch may have been sent before the crash. Only a batch that was just sealed was
      // certainly not.
      sentBefore: from === 'recovered',
      failures: 0,
      failuresAlone: 0,
      failedAtSuccess: 0,
      unauthorizedAtSuccess: null,
      stuck: false,
      earlierResults: null,
      entries: null,
      triedAt: 0,
    }
    open.add(inFlight)
    return inFlight
  }

  function ready(inFlight: InFlightBatch): void {
    inFlight.readyAtMs = clock.monotonic()
    inFlight.wait = 'none'
  }

  function rest(inFlight: InFlightBatch, wait: Wait, { retryAfterMs } = { retryAfterMs: 0 }): number {
    inFlight.running = false
    if (wait === 'backoff' || wait === 'stuck') inFlight.failures += 1
    const waitMs = batchWait(random, wait, { failures: inFlight.failures, retryAfterMs }, backoff)
    inFlight.wait = wait
    inFlight.readyAtMs = clock.monotonic() + waitMs
    return waitMs
  }
}
