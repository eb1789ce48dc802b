// in-flight-batches.ts: the sealed batches of one provider that are not settled, with what only this process knows of each.
//
// Bound: `batchesMax`; when it is reached nothing more is sealed, the payloads stay pending in their lanes. It
// is far above what a healthy road holds (`max_in_flight`): only batches that fail one by one pile up here. What is taken
// apart (isolation.ts) may add as many as one batch has payloads.

import type { Clock } from '../../std/clock.ts'
import type { Batch } from '../../spool/spool.ts'
import { around, fullJitter } from './backoff.ts'
import type { BackoffOptions } from '../delivery-options.ts'
import type { PayloadResults } from './payload-results.ts'
import type { Wait } from './verdict.ts'

export const batchesMax = 1024

export type InFlightBatch = {
  readonly batch: Batch
  /** In a submission now. */
  running: boolean
  /** Monotonic; it rests until then. */
  readyAtMs: number
  /**
   * Why it rests: a back-off ends when the endpoint is available again, a slow wait does not; `turn` ends when no other
   * batch is taken apart any more, `witness` when something else was accepted, `room` when the dead letters have some.
   * The last three rest as long as a slow one at most.
   */
  wait: Wait
  /** Submissions by this process. */
  submissions: number
  sentBefore: boolean
  /** Failures in a row, for its own back-off. */
  failures: number
  /** Failures between which other batches succeeded. */
  failuresAlone: number
  /** `successes` of the road when it failed last, and when it was refused with 401 or 403 last. */
  failedAtSuccess: number
  forbiddenAtSuccess: number | null
  stuck: boolean
  earlierResults: PayloadResults | null
  /** Its payloads as the ledger knows them, once an answer has come (receipts/receipt-entries.ts). */
  entries: Uint8Array | null
  /** Order of the last tries, for probes in turn. */
  triedAt: number
}

export type InFlightBatches = {
  readonly size: number
  all(): Iterable<InFlightBatch>
  add(batch: Batch, from: 'sealed' | 'recovered'): InFlightBatch
  remove(inHand: InFlightBatch): void
  /** Begins a try. */
  take(inHand: InFlightBatch): void
  /** Lets it rest after a try, as the verdict says; gives how long. `failed` where the try was a failure. */
  rest(
    inHand: InFlightBatch,
    wait: InFlightBatch['wait'],
    options: { failed: boolean; retryAfterMs: number },
  ): number
  /** The endpoint is available again: what rested for its sake may go. */
  release(): void
  /** What waits for this may go. */
  releaseWaiting(wait: 'turn' | 'witness' | 'room'): void
  /** Someone asked for a try now: everything may go. */
  releaseAll(): void
}

export function createInFlightBatches(
  { clock, random }: { clock: Clock; random: () => number },
  { backoff }: { backoff: BackoffOptions },
): InFlightBatches {
  const held = new Set<InFlightBatch>()
  let tries = 0

  return {
    get size() {
      return held.size
    },
    all: () => held,
    add,
    remove: (inHand) => void held.delete(inHand),
    take(inHand) {
      inHand.running = true
      inHand.triedAt = ++tries
    },
    rest,
    release() {
      for (const inHand of held) {
        if (inHand.wait !== 'backoff' || inHand.stuck) continue
        inHand.failures = 0
        ready(inHand)
      }
    },
    releaseWaiting(wait) {
      for (const inHand of held) if (inHand.wait === wait) ready(inHand)
    },
    releaseAll() {
      for (const inHand of held) ready(inHand)
    },
  }

  function add(batch: Batch, from: 'sealed' | 'recovered'): InFlightBatch {
    const inHand: InFlightBatch = {
      batch,
      running: false,
      readyAtMs: clock.monotonic(),
      wait: 'none',
      submissions: 0,
      // A recovered batch may have left before the crash; only a batch sealed by us just now certainly did not.
      sentBefore: from === 'recovered',
      failures: 0,
      failuresAlone: 0,
      failedAtSuccess: 0,
      forbiddenAtSuccess: null,
      stuck: false,
      earlierResults: null,
      entries: null,
      triedAt: 0,
    }
    held.add(inHand)
    return inHand
  }

  function ready(inHand: InFlightBatch): void {
    inHand.readyAtMs = clock.monotonic()
    inHand.wait = 'none'
  }

  function rest(
    inHand: InFlightBatch,
    wait: InFlightBatch['wait'],
    { failed, retryAfterMs }: { failed: boolean; retryAfterMs: number },
  ): number {
    inHand.running = false
    if (failed) inHand.failures += 1
    const bounds = {
      minMs: backoff.minMs,
      maxMs: inHand.stuck ? backoff.stuckMaxMs : backoff.maxMs,
    }
    let waitMs = 0
    if (wait === 'backoff') waitMs = Math.max(retryAfterMs, fullJitter(random, inHand.failures, bounds))
    else if (wait !== 'none') waitMs = around(random, backoff.probeEveryMs, backoff.probeJitter)
    inHand.wait = wait
    inHand.readyAtMs = clock.monotonic() + waitMs
    return waitMs
  }
}
