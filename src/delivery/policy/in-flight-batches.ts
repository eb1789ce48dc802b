// in-flight-batches.ts: the sealed batches of one provider that are not settled: what only this process knows
// of each, how long each waits, and what ends a wait early.
//
// A batch is in hand, or it is held (held-batches.ts) because its own answers say that trying again soon does
// not help. Bound: `batchesMax` in hand; there nothing more is sealed, and payloads stay pending in their
// lanes until a back-off ends, a minute later at most. It is far above what a provider has (`max_in_flight`),
// but taking a refused batch apart may add as many as it has payloads.

import type { Clock } from '../../std/clock.ts'
import type { Held } from '../../domain/held.ts'
import type { BatchId } from '../../domain/ids.ts'
import type { Batch } from '../../spool/spool.ts'
import type { BackoffOptions } from '../delivery-options.ts'
import { batchWait } from './backoff.ts'
import { createHeldBatches, type HeldBatches } from './held-batches.ts'
import type { InFlightBatch, Wait } from './types.ts'

const batchesMax = 1024

export type InFlightBatches = {
  /** Batches in hand. */
  size(): number
  /** Nothing more may be sealed. */
  full(): boolean
  /** The batches in hand, in the order of sealing. */
  all(): Iterable<InFlightBatch>
  readonly held: HeldBatches
  /** In hand or held; null where there is none. */
  find(batchId: BatchId): InFlightBatch | null
  add(batch: Batch, from: 'sealed' | 'recovered'): InFlightBatch
  remove(inFlight: InFlightBatch): void
  /** Begins a submission. */
  take(inFlight: InFlightBatch): void
  /**
   * Ends a submission: the batch waits. With `held` it is no longer in hand. Returns for how long it waits.
   */
  rest(inFlight: InFlightBatch, wait: Wait, options?: { retryAfterMs?: number; held?: Held | null }): number
  /** Ends what `take` began without a submission. */
  putBack(inFlight: InFlightBatch): void
  /** The endpoint is available again: ends the back-offs. */
  release(): void
  /** Ends the waits of one kind. */
  releaseWaiting(wait: ReleasedWait): void
  /** Ends all waits. The held batches still go one after the other. */
  releaseAll(): void
  /** Ends the wait of one batch. */
  releaseOne(inFlight: InFlightBatch): void
}

type ReleasedWait = 'acceptance' | 'other-batches'

export function createInFlightBatches(
  { clock, random }: { clock: Clock; random: () => number },
  { backoff }: { backoff: BackoffOptions },
): InFlightBatches {
  const inHand = new Set<InFlightBatch>()
  const byId = new Map<BatchId, InFlightBatch>()
  const held = createHeldBatches({ clock })
  /** How many wait so, because most calls of releaseWaiting() find none. */
  const waiting: Record<ReleasedWait, number> = {
    acceptance: 0,
    'other-batches': 0,
  }
  let tries = 0

  return {
    size() {
      return inHand.size
    },
    full() {
      return inHand.size >= batchesMax
    },
    all: () => inHand,
    held,
    find: (batchId) => byId.get(batchId) ?? null,
    add,
    remove(inFlight) {
      inFlight.running = false
      setWait(inFlight, 'none')
      inHand.delete(inFlight)
      held.remove(inFlight)
      byId.delete(inFlight.batch.batchId)
    },
    take(inFlight) {
      inFlight.running = true
      inFlight.triedAt = ++tries
      held.began(inFlight)
    },
    rest,
    putBack(inFlight) {
      inFlight.running = false
      held.ended(inFlight)
      if (inFlight.held !== null && held.has(inFlight)) held.put(inFlight, inFlight.held.reason)
    },
    release() {
      for (const inFlight of inHand) {
        if (inFlight.wait !== 'backoff') continue
        inFlight.failures = 0
        ready(inFlight)
      }
    },
    releaseWaiting(wait) {
      if (waiting[wait] === 0) return
      for (const inFlight of inHand) if (inFlight.wait === wait) ready(inFlight)
      for (const inFlight of held.all()) if (inFlight.wait === wait) ready(inFlight)
    },
    releaseAll() {
      for (const inFlight of inHand) ready(inFlight)
      for (const inFlight of held.all()) ready(inFlight)
    },
    releaseOne: ready,
  }

  function add(batch: Batch, from: 'sealed' | 'recovered'): InFlightBatch {
    const inFlight: InFlightBatch = {
      batch,
      running: false,
      readyAtMs: clock.monotonic(),
      wait: 'none',
      held: batch.held,
      submissions: 0,
      mayBeProcessed: from === 'recovered',
      timeouts: 0,
      refusals: 0,
      interruptions: 0,
      longAnswers: 0,
      origin: null,
      forbiddenAlone: false,
      failures: 0,
      slowTries: 0,
      failuresAlone: 0,
      failedAtSuccess: 0,
      stuck: batch.held?.reason === 'stuck',
      earlierResults: null,
      entries: null,
      answers: [],
      triedAt: 0,
    }
    byId.set(batch.batchId, inFlight)
    if (batch.held === null) inHand.add(inFlight)
    else held.put(inFlight, batch.held.reason)
    return inFlight
  }

  function ready(inFlight: InFlightBatch): void {
    inFlight.readyAtMs = clock.monotonic()
    setWait(inFlight, 'none')
    if (inFlight.held !== null) held.put(inFlight, inFlight.held.reason)
  }

  function setWait(inFlight: InFlightBatch, wait: Wait): void {
    if (isReleased(inFlight.wait)) waiting[inFlight.wait] -= 1
    if (isReleased(wait)) waiting[wait] += 1
    inFlight.wait = wait
  }

  function rest(
    inFlight: InFlightBatch,
    wait: Wait,
    { retryAfterMs = 0, held: heldNow = inFlight.held }: { retryAfterMs?: number; held?: Held | null } = {},
  ): number {
    inFlight.running = false
    held.ended(inFlight)
    if (wait === 'backoff' || wait === 'stuck') inFlight.failures += 1
    if (wait === 'slow') inFlight.slowTries += 1
    const failures = wait === 'slow' ? inFlight.slowTries : inFlight.failures
    const waitMs = batchWait(random, wait, { failures, retryAfterMs }, backoff)
    setWait(inFlight, wait)
    inFlight.readyAtMs = clock.monotonic() + waitMs
    inFlight.held = heldNow
    if (heldNow !== null) {
      inHand.delete(inFlight)
      held.put(inFlight, heldNow.reason)
    }
    return waitMs
  }

  function isReleased(wait: Wait): wait is ReleasedWait {
    return wait in waiting
  }
}
