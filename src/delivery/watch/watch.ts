// watch.ts: the entry file of what makes standing still visible. One for each provider; it changes nothing.
//
//   hanging      a request waits longer than the service usually takes (hanging-requests.ts)
//   stalled      work is due and the endpoint is available, but for 20 s no batch was settled or cut, and no
//                request is in flight, or requests of these 20 s failed (stall.ts)
//   Retry-After  the service asked for a wait of 30 s or more, from the answer until the wait is over
//   quality      the service answers late, or much of what is sent fails (answer-quality.ts)
//
// An endpoint that is not available, held batches, a lost store and slow writes of the spool have conditions
// of their own.
//
// It has no timer: ops asks for the states once a second, and then it looks.

import type { Clock, EpochMs } from '../../std/clock.ts'
import type { Outcome } from '../../domain/outcome.ts'
import type { State } from '../../domain/condition-state.ts'
import type { ProviderOptions } from '../delivery-options.ts'
import { endOf, reasonText } from '../provider-pipeline/outcome-text.ts'
import { createAnswerQuality, type AnswerQuality } from './answer-quality.ts'
import { createHangingRequests, type Hanging } from './hanging-requests.ts'
import { nextStartMs, stallOf, type Sight, type Stall } from './stall.ts'

export { sightOf, type Sight } from './stall.ts'

export type Watch = {
  /** A request starts; returns its number. `uploadMs`: what its upload takes, as far as known. */
  began(uploadMs: number): number
  ended(number: number, outcome: Outcome, tookMs: number): void
  /** What became of the payloads of a batch. */
  settled: AnswerQuality['settled']
  /** The service asked for a wait of `askedMs`; the gateway waits for `waitMs`. */
  retryAfter(request: { askedMs: number; waitMs: number; requestId: string | null }): void
  /** The waits were ended early. */
  released(): void
  /** A batch was settled or replaced. */
  progressed(): void
  /** When the next submission may start; null: now. `opensAt`: as the endpoint has it. */
  nextAttemptAt(opensAt: EpochMs | null): EpochMs | null
  /** There may be work. */
  consider(): void
  states(): Iterable<State>
}

type Deps = { clock: Clock; look: () => Sight }

type Options = Pick<ProviderOptions, 'name' | 'baseUrl' | 'timeoutMs'>

const stalledMs = 20_000
const retryAfterShownMs = 30_000

export function createWatch({ clock, look }: Deps, options: Options): Watch {
  const { name: provider, baseUrl: url } = options
  const requests = createHangingRequests({ clock })
  const isAvailable = () => look().isEndpointAvailable
  const quality = createAnswerQuality({ isAvailable }, options)
  let hanging: Hanging | null = null
  /** Since when work is due and nothing of it moves; null where nothing is due. */
  let stillSinceMs: number | null = null
  let stalled: Stall | null = null
  let lastFailure: Outcome | null = null
  /** A request failed since the last progress. */
  let hasFailed = false
  let retry: { untilMs: number; askedMs: number; waitMs: number; requestId: string | null } | null = null

  return {
    began: requests.began,
    ended,
    settled: quality.settled,
    retryAfter({ askedMs, waitMs, requestId }) {
      if (waitMs < retryAfterShownMs) return
      const untilMs = Math.max(retry?.untilMs ?? 0, clock.monotonic() + waitMs)
      retry = { untilMs, askedMs, waitMs, requestId }
    },
    released() {
      retry = null
    },
    progressed() {
      if (stillSinceMs !== null) stillSinceMs = clock.monotonic()
      hasFailed = false
      stalled = null
    },
    nextAttemptAt,
    consider() {
      if (stillSinceMs !== null) return
      stillSinceMs = clock.monotonic()
      hasFailed = false
    },
    states,
  }

  function ended(number: number, outcome: Outcome, tookMs: number): void {
    lookAtRequests()
    requests.ended(number)
    quality.ended(outcome, tookMs)
    const end = endOf(outcome)
    if ('message' in outcome) {
      lastFailure = outcome
      hasFailed = true
    }
    // Without an answer the service still hangs, as far as known.
    if (end !== 'answered') return
    requests.answered(tookMs)
    if (requests.look() === null) hanging = null
  }

  function* states(): Generator<State> {
    const nowMs = clock.monotonic()
    if (retry !== null && nowMs >= retry.untilMs) retry = null
    lookAtRequests()
    lookForStall(nowMs)
    if (hanging !== null) yield { code: 'SERVICE_HANGING', provider, ...hanging, url }
    if (stalled !== null && stillSinceMs !== null) yield stallState(stalled, stillSinceMs)
    if (retry !== null) {
      const { untilMs, ...asked } = retry
      yield { code: 'RETRY_AFTER', provider, ...asked, untilAt: wallAt(untilMs) }
    }
    yield* quality.states()
  }

  /** Since the first one: a request that takes the place of one that timed out hangs no less. */
  function lookAtRequests(): void {
    const now = requests.look()
    if (now === null) return
    const oldestAt = Math.min(now.oldestAt, hanging?.oldestAt ?? now.oldestAt)
    hanging = { requests: now.requests, oldestAt }
  }

  function lookForStall(nowMs: number): void {
    if (stillSinceMs === null) return
    const sight = look()
    const isVisible = !sight.isEndpointAvailable || sight.isSpoolSlow || retry !== null || hanging !== null
    // What waited for the disk gets its time when that works again.
    if (sight.isSpoolSlow) stillSinceMs = nowMs
    // Payloads that become due while the limit allows nothing wake nobody.
    const isLimited = sight.rateWaitMs > 0 && sight.hasPending
    const isWorkDue = sight.inHand > 0 || sight.isLaneDue || isLimited
    // What stands still does so until something is settled, or nothing is left of it.
    const isWorkLeft = isWorkDue || (stalled !== null && sight.hasPending)
    if (!isWorkLeft || isVisible) {
      stillSinceMs = isWorkDue && sight.isEndpointAvailable ? stillSinceMs : null
      stalled = null
      return
    }
    if (nowMs - stillSinceMs < stalledMs) return
    const isInFlight = requests.size() > 0
    // Whether its answer is late is for hanging-requests.ts to say, unless another one has failed.
    if (isInFlight && !hasFailed) return
    stalled = isInFlight ? { reason: stalled?.reason ?? 'failing', untilMs: null } : stallOf(sight, nowMs)
  }

  function stallState({ reason, untilMs }: Stall, sinceMs: number): State {
    return {
      code: reason === 'rate_limit' ? 'RATE_LIMITED' : 'DELIVERY_STALLED',
      provider,
      reason,
      sinceAt: wallAt(sinceMs),
      untilAt: untilMs === null ? null : wallAt(Math.max(untilMs, clock.monotonic())),
      lastAnswer: lastFailure === null ? null : reasonText(lastFailure),
    }
  }

  function nextAttemptAt(opensAt: EpochMs | null): EpochMs | null {
    const sight = look()
    const atMs = sight.isEndpointAvailable ? nextStartMs(sight, clock.monotonic()) : null
    return atMs === null ? opensAt : Math.max(opensAt ?? 0, wallAt(atMs))
  }

  function wallAt(atMs: number): EpochMs {
    return Math.round(clock.now() + (atMs - clock.monotonic()))
  }
}
