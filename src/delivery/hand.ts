// hand.ts: the sealed batches of one provider that are not settled, with what only this process knows of each.
//
// Bound: `batchesMax`; when it is reached nothing more is sealed, the payloads stay pending in their lanes. It
// is far above what a healthy road holds (`max_in_flight`): only batches that fail one by one pile up here.

import type { Clock } from '../std/clock.ts'
import type { Batch } from '../spool/spool.ts'
import { around, fullJitter } from './backoff.ts'
import type { Pace } from './options.ts'
import type { Said } from './verdict.ts'

export const batchesMax = 1024

export type InHand = {
  readonly batch: Batch
  /** In a submission now. */
  running: boolean
  /** Monotonic; it rests until then. */
  readyAtMs: number
  /** Why it rests: a back-off ends when the endpoint is available again, a slow wait does not. */
  wait: 'none' | 'backoff' | 'slow'
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
  earlier: Said | null
  /** Order of the last tries, for probes in turn. */
  triedAt: number
}

export type Hand = {
  readonly size: number
  all(): Iterable<InHand>
  add(batch: Batch, from: 'sealed' | 'recovered'): InHand
  remove(inHand: InHand): void
  /** Begins a try. */
  take(inHand: InHand): void
  /** Lets it rest after a try, as the verdict says; gives how long. `failed` where the try was a failure. */
  rest(inHand: InHand, wait: InHand['wait'], options: { failed: boolean; retryAfterMs: number }): number
  /** The endpoint is available again: what rested for its sake may go. */
  release(): void
  /** Someone asked for a try now: everything may go. */
  releaseAll(): void
}

export function createHand(
  { clock, random }: { clock: Clock; random: () => number },
  { pace }: { pace: Pace },
): Hand {
  const held = new Set<InHand>()
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
    releaseAll() {
      for (const inHand of held) ready(inHand)
    },
  }

  function add(batch: Batch, from: 'sealed' | 'recovered'): InHand {
    const inHand: InHand = {
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
      earlier: null,
      triedAt: 0,
    }
    held.add(inHand)
    return inHand
  }

  function ready(inHand: InHand): void {
    inHand.readyAtMs = clock.monotonic()
    inHand.wait = 'none'
  }

  function rest(
    inHand: InHand,
    wait: InHand['wait'],
    { failed, retryAfterMs }: { failed: boolean; retryAfterMs: number },
  ): number {
    inHand.running = false
    if (failed) inHand.failures += 1
    const bounds = {
      minMs: pace.backoffMinMs,
      maxMs: inHand.stuck ? pace.stuckBackoffMaxMs : pace.backoffMaxMs,
    }
    let waitMs = 0
    if (wait === 'backoff') waitMs = Math.max(retryAfterMs, fullJitter(random, inHand.failures, bounds))
    if (wait === 'slow') waitMs = around(random, pace.slowProbeMs, pace.slowProbeJitter)
    inHand.wait = wait
    inHand.readyAtMs = clock.monotonic() + waitMs
    return waitMs
  }
}
