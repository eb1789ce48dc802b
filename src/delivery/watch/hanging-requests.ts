// hanging-requests.ts: which requests wait for an answer longer than the service usually takes.
//
// Longer means: twice the median of the last 50 answers, at least 1 s (a fast service must not flap), at most
// 30 s, and 10 s while no answer is known. On a slow link, where the upload alone takes more than 15 s, it is
// also one and a half times the upload.
//
// Bound: one entry for each request in flight.

import type { Clock, EpochMs } from '../../std/clock.ts'

export type Hanging = { requests: number; oldestAt: EpochMs }

export type HangingRequests = {
  /** A request starts; returns its number. `uploadMs`: what its upload takes, as far as known. */
  began(uploadMs: number): number
  ended(number: number): void
  answered(tookMs: number): void
  /** Requests in flight. */
  size(): number
  /** The requests that hang now; null where none does. */
  look(): Hanging | null
  /** When the next request may hang, monotonic; null where none is in flight. */
  dueAtMs(): number | null
}

type Request = { startedMs: number; uploadMs: number }

const answersMax = 50
const limitUnknownMs = 10_000
const limitMinMs = 1000
const limitMaxMs = 30_000
const uploadSlowMs = 15_000

export function createHangingRequests({ clock }: { clock: Clock }): HangingRequests {
  const requests = new Map<number, Request>()
  const answers = new Float64Array(answersMax)
  let answersSeen = 0
  let limitMs = limitUnknownMs
  let numbers = 0

  return {
    began(uploadMs) {
      numbers += 1
      requests.set(numbers, { startedMs: clock.monotonic(), uploadMs })
      return numbers
    },
    size() {
      return requests.size
    },
    ended: (number) => void requests.delete(number),
    answered(tookMs) {
      answers[answersSeen % answersMax] = tookMs
      answersSeen += 1
      limitMs = limitNowMs()
    },
    look,
    dueAtMs,
  }

  function look(): Hanging | null {
    const nowMs = clock.monotonic()
    let count = 0
    let oldestMs = nowMs
    for (const request of requests.values()) {
      if (nowMs < hangsAtMs(request)) continue
      count += 1
      oldestMs = Math.min(oldestMs, request.startedMs)
    }
    return count === 0 ? null : { requests: count, oldestAt: Math.round(clock.now() - (nowMs - oldestMs)) }
  }

  function dueAtMs(): number | null {
    const nowMs = clock.monotonic()
    let earliestMs = Number.POSITIVE_INFINITY
    for (const request of requests.values()) {
      const atMs = hangsAtMs(request)
      if (atMs > nowMs) earliestMs = Math.min(earliestMs, atMs)
    }
    return earliestMs === Number.POSITIVE_INFINITY ? null : earliestMs
  }

  function hangsAtMs({ startedMs, uploadMs }: Request): number {
    return startedMs + (uploadMs > uploadSlowMs ? Math.max(limitMs, 1.5 * uploadMs) : limitMs)
  }

  function limitNowMs(): number {
    const sorted = answers.slice(0, Math.min(answersSeen, answersMax)).toSorted()
    const median = sorted[(sorted.length - 1) >> 1] ?? 0
    return Math.max(limitMinMs, Math.min(limitMaxMs, 2 * median))
  }
}
