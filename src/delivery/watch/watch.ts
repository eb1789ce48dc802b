// watch.ts: the entry file of what makes standing still visible. One for each provider; it changes nothing.
//
//   hanging      a request waits longer than twice the median of the last 50 answers, at least 1 s (a fast
//                service must not flap), at most 30 s, and 10 s while no answer is known. On a slow link,
//                where the upload alone takes more than 15 s, also than one and a half times the upload
//   stalled      work is due and the endpoint is available, but for 20 s no batch was settled or cut, and no
//                request is in flight, or requests of these 20 s failed
//   Retry-After  the service asked for a wait of 30 s or more, from the answer until the wait is over
//   quality      the service answers late, or much of what is sent fails (answer-quality.ts)
//   acceptance   the service accepts nothing of what it answers (acceptance.ts)
//
// An endpoint that is not available, held batches, a lost store and slow writes of the spool have conditions
// of their own.
//
// It has no timer: ops asks for the states once a second, and then it looks.
//
// Bound: one entry for each request in flight.

import type { Clock, EpochMs } from '../../std/clock.ts'
import type { Outcome } from '../../domain/outcome.ts'
import type { StallReason, State } from '../../domain/condition-state.ts'
import type { ProviderOptions } from '../delivery-options.ts'
import type { BatchTable } from '../policy/batch-table.ts'
import type { Wait } from '../policy/types.ts'
import { endOf, reasonText } from '../provider-pipeline/outcome-text.ts'
import { createAnswerQuality, type AnswerQuality } from './answer-quality.ts'

/** What the pipeline of a provider does now. Times are monotonic. */
export type Sight = {
  batches: BatchTable
  /** A lane could give a batch now. */
  isLaneDue: boolean
  /** Payloads wait, also those that are not due yet. */
  hasPending: boolean
  isEndpointAvailable: boolean
  /** Writes of the spool hang or take long. */
  isSpoolSlow: boolean
  /** Requests that wait for a place of `max_in_flight_total`. */
  waitingForPlace: number
  /** Batches that are taken, sealed, loaded, sent or settled now. */
  running: number
  rateWaitMs: number
  /** As much waits for room in the dead letters as may. */
  waitsForRoom: boolean
}

type Stall = { reason: StallReason; untilMs: number | null }
type Request = { startedMs: number; uploadMs: number }

type Options = Pick<ProviderOptions, 'name' | 'baseUrl' | 'timeoutMs'>

const stalledMs = 20_000
const retryAfterShownMs = 30_000
const answersMax = 50
const limitMs = { unknown: 10_000, min: 1000, max: 30_000 }
const uploadSlowMs = 15_000

const stallReasons: Record<Exclude<Wait, 'none'>, StallReason> = {
  backoff: 'failing',
  stuck: 'failing',
  slow: 'failing',
  'other-batches': 'forbidden_trial',
  acceptance: 'acceptance',
}

export class Watch {
  readonly #clock: Clock
  readonly #look: () => Sight
  readonly #options: Options
  readonly #quality: AnswerQuality
  readonly #requests = new Set<Request>()
  #answersMs: number[] = []
  #hanging: { requests: number; oldestAt: EpochMs } | null = null
  /** Since when work is due and nothing of it moves; null where nothing is due. */
  #stillSinceMs: number | null = null
  #stalled: Stall | null = null
  #lastFailure: Outcome | null = null
  /** A request failed since the last progress. */
  #hasFailed = false
  #retry: { untilMs: number; askedMs: number; waitMs: number; requestId: string | null } | null = null

  constructor({ clock, look }: { clock: Clock; look: () => Sight }, options: Options) {
    this.#clock = clock
    this.#look = look
    this.#options = options
    this.#quality = createAnswerQuality({ isAvailable: () => look().isEndpointAvailable }, options)
  }

  /** A request starts; pass the result to `ended`. `uploadMs`: what its upload takes, as far as known. */
  began(uploadMs: number): Request {
    const request = { startedMs: this.#clock.monotonic(), uploadMs }
    this.#requests.add(request)
    return request
  }

  ended(request: Request, outcome: Outcome, tookMs: number): void {
    this.#lookAtRequests()
    this.#requests.delete(request)
    this.#quality.ended(outcome, tookMs)
    if ('message' in outcome) {
      this.#lastFailure = outcome
      this.#hasFailed = true
    }
    // Without an answer the service still hangs, as far as known.
    if (endOf(outcome) !== 'answered') return
    this.#answersMs = [...this.#answersMs, tookMs].slice(-answersMax)
    if (this.#late().length === 0) this.#hanging = null
  }

  /** What became of the payloads of a batch. */
  settled(counts: Parameters<AnswerQuality['settled']>[0]): void {
    this.#quality.settled(counts)
  }

  /** The service asked for a wait of `askedMs`; the gateway waits for `waitMs`. */
  retryAfter(asked: { askedMs: number; waitMs: number; requestId: string | null }): void {
    if (asked.waitMs < retryAfterShownMs) return
    const untilMs = Math.max(this.#retry?.untilMs ?? 0, this.#clock.monotonic() + asked.waitMs)
    this.#retry = { untilMs, ...asked }
  }

  /** The waits were ended early. */
  released(): void {
    this.#retry = null
  }

  /** A batch was settled or replaced. */
  progressed(): void {
    if (this.#stillSinceMs !== null) this.#stillSinceMs = this.#clock.monotonic()
    this.#hasFailed = false
    this.#stalled = null
  }

  /** There may be work. */
  consider(): void {
    if (this.#stillSinceMs !== null) return
    this.#stillSinceMs = this.#clock.monotonic()
    this.#hasFailed = false
  }

  *states(): Generator<State> {
    const nowMs = this.#clock.monotonic()
    const { name: provider, baseUrl: url } = this.#options
    if (this.#retry !== null && nowMs >= this.#retry.untilMs) this.#retry = null
    this.#lookAtRequests()
    this.#lookForStall(nowMs)
    if (this.#hanging !== null) yield { code: 'SERVICE_HANGING', provider, ...this.#hanging, url }
    if (this.#stalled !== null && this.#stillSinceMs !== null) {
      const { reason, untilMs } = this.#stalled
      yield {
        code: reason === 'rate_limit' ? 'RATE_LIMITED' : 'DELIVERY_STALLED',
        provider,
        reason,
        sinceAt: this.#wallAt(this.#stillSinceMs),
        untilAt: untilMs === null ? null : this.#wallAt(Math.max(untilMs, nowMs)),
        lastAnswer: this.#lastFailure === null ? null : reasonText(this.#lastFailure),
      }
    }
    if (this.#retry !== null) {
      const { untilMs, ...asked } = this.#retry
      yield { code: 'RETRY_AFTER', provider, ...asked, untilAt: this.#wallAt(untilMs) }
    }
    yield* this.#quality.states()
  }

  /** When the next submission may start; null: now. `opensAt`: as the endpoint has it. */
  nextAttemptAt(opensAt: EpochMs | null): EpochMs | null {
    const { batches, isEndpointAvailable, isLaneDue, running, rateWaitMs } = this.#look()
    if (!isEndpointAvailable) return opensAt
    const nowMs = this.#clock.monotonic()
    let earliestMs = batches.heldDueAt() ?? Number.POSITIVE_INFINITY
    for (const { running: isSent, readyAtMs } of batches.all())
      if (!isSent) earliestMs = Math.min(earliestMs, readyAtMs)
    const waitsForBatch = !isLaneDue && running === 0 && earliestMs < Number.POSITIVE_INFINITY
    const atMs = Math.max(nowMs + rateWaitMs, waitsForBatch ? earliestMs : nowMs)
    return atMs > nowMs ? Math.max(opensAt ?? 0, this.#wallAt(atMs)) : opensAt
  }

  /** The requests that hang now. */
  #late(): Request[] {
    const sorted = this.#answersMs.toSorted((one, other) => one - other)
    const median = sorted[(sorted.length - 1) >> 1]
    const usualMs =
      median === undefined ? limitMs.unknown : Math.max(limitMs.min, Math.min(limitMs.max, 2 * median))
    const nowMs = this.#clock.monotonic()
    return [...this.#requests].filter(({ startedMs, uploadMs }) => {
      const waitMs = uploadMs > uploadSlowMs ? Math.max(usualMs, 1.5 * uploadMs) : usualMs
      return nowMs >= startedMs + waitMs
    })
  }

  /** Since the first one: a request that takes the place of one that timed out hangs no less. */
  #lookAtRequests(): void {
    const late = this.#late()
    if (late.length === 0) return
    const oldestAt = this.#wallAt(Math.min(...late.map(({ startedMs }) => startedMs)))
    this.#hanging = {
      requests: late.length,
      oldestAt: Math.min(oldestAt, this.#hanging?.oldestAt ?? oldestAt),
    }
  }

  #lookForStall(nowMs: number): void {
    if (this.#stillSinceMs === null) return
    const sight = this.#look()
    const isVisible =
      !sight.isEndpointAvailable || sight.isSpoolSlow || this.#retry !== null || this.#hanging !== null
    // What waited for the disk gets its time when that works again.
    if (sight.isSpoolSlow) this.#stillSinceMs = nowMs
    // Payloads that become due while the limit allows nothing wake nobody.
    const isLimited = sight.rateWaitMs > 0 && sight.hasPending
    const isWorkDue = sight.batches.size() > 0 || sight.isLaneDue || isLimited
    // What stands still does so until something is settled, or nothing is left of it.
    const isWorkLeft = isWorkDue || (this.#stalled !== null && sight.hasPending)
    if (!isWorkLeft || isVisible) {
      this.#stillSinceMs = isWorkDue && sight.isEndpointAvailable ? this.#stillSinceMs : null
      this.#stalled = null
      return
    }
    if (nowMs - this.#stillSinceMs < stalledMs) return
    const isInFlight = this.#requests.size > 0
    // `hanging` says whether its answer is late, unless another one has failed.
    if (isInFlight && !this.#hasFailed) return
    const reason = this.#stalled?.reason ?? 'failing'
    this.#stalled = isInFlight ? { reason, untilMs: null } : stallOf(sight, nowMs)
  }

  #wallAt(atMs: number): EpochMs {
    return Math.round(this.#clock.now() + (atMs - this.#clock.monotonic()))
  }
}

/** Why nothing moves, where no request is in flight. */
function stallOf(sight: Sight, nowMs: number): Stall {
  const { batches, waitingForPlace, running, waitsForRoom, rateWaitMs } = sight
  if (waitingForPlace > 0) return { reason: 'no_place', untilMs: null }
  if (running > 0) return { reason: 'preparing', untilMs: null }
  if (waitsForRoom) return { reason: 'dead_letters_full', untilMs: null }
  if (rateWaitMs > 0) return { reason: 'rate_limit', untilMs: nowMs + rateWaitMs }
  let untilMs: number | null = null
  const waiting = new Map<StallReason, number>()
  for (const { running: isSent, wait, readyAtMs } of batches.all()) {
    if (isSent) continue
    untilMs = Math.min(untilMs ?? Number.POSITIVE_INFINITY, readyAtMs)
    if (wait !== 'none') waiting.set(stallReasons[wait], (waiting.get(stallReasons[wait]) ?? 0) + 1)
  }
  if (batches.full()) return { reason: 'batches_full', untilMs }
  const [most] = [...waiting].toSorted(([, one], [, other]) => other - one)
  return { reason: most?.[0] ?? 'unknown', untilMs }
}
