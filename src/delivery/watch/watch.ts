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
// One timer, for the earliest of these; it is set only while there is something to watch. While something
// hangs or stands still it looks again every 10 s, so that the numbers in the condition are current.

import type { Clock, EpochMs } from '../../std/clock.ts'
import type { Emit } from '../../domain/event.ts'
import type { Outcome } from '../../domain/outcome.ts'
import type { ProviderOptions } from '../delivery-options.ts'
import { endOf, reasonText } from '../provider-pipeline/outcome-text.ts'
import type { StallReason } from '../../domain/event-fields/stall-event.ts'
import { createAnswerQuality } from './answer-quality.ts'
import { createHangingRequests, type Hanging } from './hanging-requests.ts'
import { nextStartMs, stallOf, type Sight, type Stall } from './stall.ts'
import { createWakeTimer } from './wake-timer.ts'

export { sightOf, type Sight } from './stall.ts'

export type Watch = {
  /** A request starts; returns its number. `uploadMs`: what its upload takes, as far as known. */
  began(uploadMs: number): number
  ended(number: number, outcome: Outcome, tookMs: number): void
  /** Passes the event on, and sees what became of the payloads of a batch. */
  emit: Emit
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
  stop(): void
}

type Deps = { clock: Clock; emit: Emit; look: () => Sight }

type Options = Pick<ProviderOptions, 'name' | 'baseUrl' | 'timeoutMs'>

const stalledMs = 20_000
const againMs = 10_000
const retryAfterShownMs = 30_000

export function createWatch({ clock, emit, look }: Deps, options: Options): Watch {
  const { name: provider, baseUrl: url } = options
  const requests = createHangingRequests({ clock })
  const isAvailable = () => look().isEndpointAvailable
  const quality = createAnswerQuality({ emit, isAvailable }, options)
  const timer = createWakeTimer({ clock }, check)
  let hanging: Hanging | null = null
  /** Since when work is due and nothing of it moves; null where nothing is due. */
  let stillSinceMs: number | null = null
  let stalled: StallReason | null = null
  let lastFailure: Outcome | null = null
  /** A request failed since the last progress. */
  let hasFailed = false
  /** Monotonic end of the wait that the service asked for; null where it asked for none. */
  let retryUntilMs: number | null = null

  return {
    began(uploadMs) {
      const number = requests.began(uploadMs)
      const dueAtMs = requests.dueAtMs()
      if (dueAtMs !== null) timer.set(dueAtMs)
      return number
    },
    ended,
    emit(event) {
      emit(event)
      if (event.kind === 'batch_settled') quality.settled(event)
    },
    retryAfter,
    released: endRetryAfter,
    progressed() {
      if (stillSinceMs !== null) stillSinceMs = clock.monotonic()
      hasFailed = false
      if (stalled !== null) resume()
    },
    nextAttemptAt,
    consider() {
      if (stillSinceMs !== null) return
      stillSinceMs = clock.monotonic()
      hasFailed = false
      timer.set(stillSinceMs + stalledMs)
    },
    stop: () => timer.cancel(),
  }

  function ended(number: number, outcome: Outcome, tookMs: number): void {
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
    if (hanging === null) return
    const now = requests.look()
    if (now !== null) return report(now)
    emit({ kind: 'requests_answered', provider, hungMs: Math.max(0, clock.now() - hanging.oldestAt) })
    hanging = null
  }

  function check(): void {
    const nowMs = clock.monotonic()
    if (retryUntilMs !== null && nowMs >= retryUntilMs) endRetryAfter()
    const now = requests.look()
    if (now !== null) report(now)
    checkStall(nowMs)
    const nextHangMs = requests.dueAtMs()
    if (nextHangMs !== null) timer.set(nextHangMs)
    if (retryUntilMs !== null) timer.set(retryUntilMs)
    if (now !== null || stalled !== null) timer.set(nowMs + againMs)
    else if (stillSinceMs !== null) timer.set(Math.max(stillSinceMs + stalledMs, nowMs + 1000))
  }

  function report(now: Hanging): void {
    const changed = now.requests !== hanging?.requests || now.oldestAt !== hanging.oldestAt
    const first = hanging === null
    // Since the first one: a request that takes the place of one that timed out hangs no less.
    hanging = { requests: now.requests, oldestAt: Math.min(now.oldestAt, hanging?.oldestAt ?? now.oldestAt) }
    if (changed) emit({ kind: 'requests_hanging', provider, ...hanging, url, first })
  }

  function checkStall(nowMs: number): void {
    if (stillSinceMs === null) return
    const sight = look()
    const isVisible =
      !sight.isEndpointAvailable || sight.isSpoolSlow || retryUntilMs !== null || hanging !== null
    // What waited for the disk gets its time when that works again.
    if (sight.isSpoolSlow) stillSinceMs = nowMs
    // Payloads that become due while the limit allows nothing wake nobody.
    const isLimited = sight.rateWaitMs > 0 && sight.hasPending
    const isWorkDue = sight.inHand > 0 || sight.isLaneDue || isLimited
    // What stands still does so until something is settled, or nothing is left of it.
    const isWorkLeft = isWorkDue || (stalled !== null && sight.hasPending)
    if (!isWorkLeft || isVisible) {
      stillSinceMs = isWorkDue && sight.isEndpointAvailable ? stillSinceMs : null
      if (stalled !== null) resume()
      return
    }
    if (nowMs - stillSinceMs < stalledMs) return
    const isInFlight = requests.size() > 0
    // Whether its answer is late is for hanging-requests.ts to say, unless another one has failed.
    if (isInFlight && !hasFailed) return
    const inFlight: Stall = { reason: stalled ?? 'failing', untilMs: null }
    const { reason, untilMs } = isInFlight ? inFlight : stallOf(sight, nowMs)
    const sinceAt = wallAt(stillSinceMs)
    const untilAt = untilMs === null ? null : wallAt(Math.max(untilMs, nowMs))
    const first = stalled !== reason
    const lastAnswer = lastFailure === null ? null : reasonText(lastFailure)
    stalled = reason
    emit({ kind: 'delivery_stalled', provider, reason, sinceAt, untilAt, lastAnswer, first })
  }

  function nextAttemptAt(opensAt: EpochMs | null): EpochMs | null {
    const sight = look()
    const atMs = sight.isEndpointAvailable ? nextStartMs(sight, clock.monotonic()) : null
    return atMs === null ? opensAt : Math.max(opensAt ?? 0, wallAt(atMs))
  }

  function resume(): void {
    stalled = null
    emit({ kind: 'delivery_moves', provider })
  }

  function retryAfter({
    askedMs,
    waitMs,
    requestId,
  }: {
    askedMs: number
    waitMs: number
    requestId: string | null
  }) {
    if (waitMs < retryAfterShownMs) return
    const first = retryUntilMs === null
    retryUntilMs = Math.max(retryUntilMs ?? 0, clock.monotonic() + waitMs)
    timer.set(retryUntilMs)
    emit({
      kind: 'retry_after_waits',
      provider,
      askedMs,
      waitMs,
      untilAt: wallAt(retryUntilMs),
      requestId,
      first,
    })
  }

  function endRetryAfter(): void {
    if (retryUntilMs === null) return
    retryUntilMs = null
    emit({ kind: 'retry_after_ended', provider })
  }

  function wallAt(atMs: number): EpochMs {
    return Math.round(clock.now() + (atMs - clock.monotonic()))
  }
}
