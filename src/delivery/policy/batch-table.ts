// batch-table.ts: the sealed batches of one provider that are not settled: what only this process knows of
// each, how long each waits, and what ends a wait early.
//
//   in hand   is sent, or waits for its next try. Bound: `batchesMax`; there nothing more is sealed, and
//             payloads stay pending in their lanes until a back-off ends, a minute later at most. It is far
//             above what a provider has (`max_in_flight`), but taking a refused batch apart may add as many
//             as it has payloads
//   held      waits because its own answers say that trying again soon does not help. It takes no place among
//             those in hand, so any number delays nothing else. Bound: the disk
//
// At most one held batch is in a submission, and beside other work they get a tenth of the time of one place.
// Thousands become ready at once when an outage ends, at a restart and at SIGHUP: they are retried one after
// the other, the one that was tried longest ago first, and time-outs of 30 s cost the others little.

import type { Clock, EpochMs } from '../../std/clock.ts'
import type { State } from '../../domain/condition-state.ts'
import type { Emit } from '../../domain/event.ts'
import { heldReasons, type Held, type HeldReason } from '../../domain/held.ts'
import type { BatchId } from '../../domain/ids.ts'
import type { Batch } from '../../spool/spool.ts'
import type { ProviderOptions } from '../delivery-options.ts'
import { batchWait } from './backoff.ts'
import type { InFlightBatch, Wait } from './types.ts'

const batchesMax = 1024

/** Times its own duration that a submission of a held batch is followed by none, while other work is due. */
const restFactor = 9

type Deps = { clock: Clock; random: () => number; emit: Emit }

/** The held batches of one reason, the oldest first. */
type Group = { members: Set<InFlightBatch>; payloads: number; latest: InFlightBatch }

export class BatchTable {
  readonly #deps: Deps
  readonly #options: Pick<ProviderOptions, 'name' | 'backoff'>
  readonly #byId = new Map<BatchId, InFlightBatch>()
  /** In the order of sealing. */
  readonly #inHand = new Set<InFlightBatch>()
  /** In the order of their last tries. */
  readonly #held = new Set<InFlightBatch>()
  readonly #groups = new Map<HeldReason, Group>()
  /** Held, and in a submission or in the hands of an operator's command. */
  readonly #heldRunning = new Set<InFlightBatch>()
  #heldBeganAtMs = 0
  #heldRestsUntilMs = 0
  /** No held batch is ready before. */
  #heldDueAtMs = Number.POSITIVE_INFINITY
  #tries = 0

  constructor(deps: Deps, options: Pick<ProviderOptions, 'name' | 'backoff'>) {
    this.#deps = deps
    this.#options = options
  }

  /** Batches in hand. */
  size(): number {
    return this.#inHand.size
  }

  /** Nothing more may be sealed. */
  full(): boolean {
    return this.#inHand.size >= batchesMax
  }

  /** The batches in hand, in the order of sealing. */
  all(): Iterable<InFlightBatch> {
    return this.#inHand
  }

  allHeld(): Iterable<InFlightBatch> {
    return this.#held
  }

  /** In hand or held; null where there is none. */
  find(batchId: BatchId): InFlightBatch | null {
    return this.#byId.get(batchId) ?? null
  }

  add(batch: Batch, from: 'sealed' | 'recovered'): InFlightBatch {
    const inFlight: InFlightBatch = {
      batch,
      running: false,
      readyAtMs: this.#deps.clock.monotonic(),
      wait: 'none',
      held: null,
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
    this.#byId.set(batch.batchId, inFlight)
    this.#inHand.add(inFlight)
    if (batch.held !== null) this.#hold(inFlight, batch.held)
    return inFlight
  }

  remove(inFlight: InFlightBatch): void {
    this.putBack(inFlight)
    this.#leaveGroup(inFlight)
    this.#inHand.delete(inFlight)
    this.#held.delete(inFlight)
    this.#byId.delete(inFlight.batch.batchId)
  }

  /** Begins a submission. */
  take(inFlight: InFlightBatch): void {
    inFlight.running = true
    inFlight.triedAt = this.#tries += 1
    if (inFlight.held === null) return
    this.#heldRunning.add(inFlight)
    this.#heldBeganAtMs = this.#deps.clock.monotonic()
  }

  /** Ends what `take` began. */
  putBack(inFlight: InFlightBatch): void {
    inFlight.running = false
    if (!this.#heldRunning.delete(inFlight)) return
    const nowMs = this.#deps.clock.monotonic()
    this.#heldRestsUntilMs = nowMs + restFactor * (nowMs - this.#heldBeganAtMs)
    this.#heldDueAtMs = Math.min(this.#heldDueAtMs, inFlight.readyAtMs)
  }

  /**
   * Ends a submission: the batch waits. With `held` it is no longer in hand. Returns for how long it waits.
   */
  rest(
    inFlight: InFlightBatch,
    wait: Wait,
    { retryAfterMs = 0, held = inFlight.held }: { retryAfterMs?: number; held?: Held | null } = {},
  ): number {
    if (wait === 'backoff' || wait === 'stuck') inFlight.failures += 1
    if (wait === 'slow') inFlight.slowTries += 1
    const failures = wait === 'slow' ? inFlight.slowTries : inFlight.failures
    const { clock, random } = this.#deps
    const waitMs = batchWait(random, wait, { failures, retryAfterMs }, this.#options.backoff)
    inFlight.wait = wait
    inFlight.readyAtMs = clock.monotonic() + waitMs
    this.putBack(inFlight)
    if (held !== null) this.#hold(inFlight, held)
    return waitMs
  }

  /** The endpoint is available again: ends the back-offs. */
  release(): void {
    for (const inFlight of this.#inHand) {
      if (inFlight.wait !== 'backoff') continue
      inFlight.failures = 0
      this.releaseOne(inFlight)
    }
  }

  /** Ends the waits of one kind. */
  releaseWaiting(wait: 'acceptance' | 'other-batches'): void {
    for (const set of [this.#inHand, this.#held])
      for (const inFlight of set) if (inFlight.wait === wait) this.releaseOne(inFlight)
  }

  /** Ends all waits. The held batches still go one after the other. */
  releaseAll(): void {
    for (const inFlight of this.#byId.values()) this.releaseOne(inFlight)
  }

  /** Ends the wait of one batch. */
  releaseOne(inFlight: InFlightBatch): void {
    inFlight.readyAtMs = this.#deps.clock.monotonic()
    inFlight.wait = 'none'
    if (inFlight.held !== null) this.#heldDueAtMs = Math.min(this.#heldDueAtMs, inFlight.readyAtMs)
  }

  /** Held batches had their share of the time: none of them goes while other work is due. */
  heldRest(): boolean {
    return this.#deps.clock.monotonic() < this.#heldRestsUntilMs
  }

  /** The held batch that may be submitted now. Null while another one is running. */
  nextHeld(): InFlightBatch | null {
    const nowMs = this.#deps.clock.monotonic()
    if (this.#heldRunning.size > 0 || nowMs < this.#heldDueAtMs) return null
    let dueAtMs = Number.POSITIVE_INFINITY
    for (const inFlight of this.#held) {
      if (inFlight.readyAtMs <= nowMs) return inFlight
      dueAtMs = Math.min(dueAtMs, inFlight.readyAtMs)
    }
    this.#heldDueAtMs = dueAtMs
    return null
  }

  /** Monotonic, or before; null where none waits or one is running. */
  heldDueAt(): number | null {
    return this.#heldRunning.size > 0 || this.#held.size === 0 ? null : this.#heldDueAtMs
  }

  /** To be called whenever batches of the reason were added or removed. */
  reportHeld(reason: HeldReason): void {
    const { members, payloads = 0 } = this.#groups.get(reason) ?? {}
    const counts = { batches: members?.size ?? 0, payloads }
    this.#deps.emit({ kind: 'held_batches_changed', provider: this.#options.name, reason, ...counts })
  }

  *heldStates(): Generator<State> {
    const { name: provider } = this.#options
    for (const reason of Object.keys(heldReasons) as HeldReason[]) {
      const group = this.#groups.get(reason)
      const [oldest] = group?.members ?? []
      if (group === undefined || oldest === undefined) continue
      const { members, payloads, latest } = group
      const last = members.has(latest) ? latest : oldest
      const oldestAt: EpochMs = oldest.held?.since ?? this.#deps.clock.now()
      const { requestId = null, why = '' } = last.held ?? {}
      const code = reason === 'stuck' ? 'BATCH_STUCK' : 'BATCHES_HELD'
      const counts = { batches: members.size, payloads, oldestAt }
      yield { code, provider, reason, ...counts, batchId: last.batch.batchId, why, requestId }
    }
  }

  #hold(inFlight: InFlightBatch, held: Held): void {
    if (inFlight.held?.reason !== held.reason) {
      this.#leaveGroup(inFlight)
      const group = this.#groups.get(held.reason) ?? { members: new Set(), payloads: 0, latest: inFlight }
      group.members.add(inFlight)
      group.payloads += inFlight.batch.payloads
      this.#groups.set(held.reason, group)
    }
    this.#groups.get(held.reason)!.latest = inFlight
    inFlight.held = held
    this.#inHand.delete(inFlight)
    // To the end: the others were tried longer ago.
    this.#held.delete(inFlight)
    this.#held.add(inFlight)
    this.#heldDueAtMs = Math.min(this.#heldDueAtMs, inFlight.readyAtMs)
  }

  #leaveGroup(inFlight: InFlightBatch): void {
    const group = inFlight.held === null ? undefined : this.#groups.get(inFlight.held.reason)
    if (group?.members.delete(inFlight)) group.payloads -= inFlight.batch.payloads
  }
}
