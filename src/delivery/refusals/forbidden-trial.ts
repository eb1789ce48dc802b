// forbidden-trial.ts: is an answer 401 or 403 about one batch, or about us? A firewall in front of the
// service refuses a single batch with the same status as the service refuses unknown credentials.
//
//   batch A: 403, also freshly signed with credentials read again
//     another batch, submitted after that answer, is accepted   -> it is about A
//     three other batches, submitted after it, get 401 or 403   -> it is about us: unauthorized
//
// Meanwhile A waits, and one batch at a time is submitted. Where no other batch is due, the endpoint becomes
// unauthorized at once, so that a person sees it, and the next batches are still tried without delay, up to
// the three.
//
// Bound: one entry for each batch in hand.

import type { Forbidden, InFlightBatch } from '../policy/types.ts'

export type ForbiddenTrial = {
  /** An answer is being looked for: one submission at a time. */
  active(): boolean
  /** The number of a submission that starts now. */
  started(): number
  /** Of the submission that was accepted last; 0 before the first one. */
  lastAccepted(): number
  /** The submission `number` of `batch` was answered 401 or 403, with credentials read again. */
  forbidden(batch: InFlightBatch, number: number): Forbidden
  /** True where the answers 401 or 403 to other batches turned out to be about these. */
  accepted(number: number): boolean
  /** The batch is settled or replaced. */
  leave(batch: InFlightBatch): void
  /** The credentials changed, or the batches are void. */
  reset(): void
}

const testsMax = 3

export function createForbiddenTrial(): ForbiddenTrial {
  /** With the number of the last submission that had started at the first such answer. */
  const suspects = new Map<InFlightBatch, number>()
  /** Other batches that were submitted after the first of these answers and were refused too. */
  const tests = new Set<InFlightBatch>()
  /** Nothing was accepted since it turned out to be about us. */
  let concluded = false
  let submissions = 0
  let lastAccepted = 0

  return {
    active() {
      return suspects.size > 0
    },
    started: () => ++submissions,
    lastAccepted() {
      return lastAccepted
    },
    forbidden,
    accepted,
    leave(batch) {
      suspects.delete(batch)
      if (suspects.size === 0) tests.clear()
    },
    reset,
  }

  function forbidden(batch: InFlightBatch, number: number): Forbidden {
    // What is held as forbidden shows nothing about the credentials: others were accepted beside it.
    if (batch.forbiddenAlone || batch.held?.reason === 'forbidden') {
      batch.forbiddenAt ??= submissions
      return 'alone'
    }
    if (concluded) return 'all'
    const [first] = suspects
    if (first !== undefined && first[0] !== batch && number > first[1]) tests.add(batch)
    if (!suspects.has(batch)) suspects.set(batch, submissions)
    if (tests.size < testsMax) return 'unknown'
    reset()
    concluded = true
    return 'all'
  }

  function accepted(number: number): boolean {
    lastAccepted = Math.max(lastAccepted, number)
    concluded = false
    let found = false
    for (const [batch, at] of suspects) {
      if (number <= at) continue
      batch.forbiddenAlone = true
      suspects.delete(batch)
      found = true
    }
    if (suspects.size === 0) tests.clear()
    return found
  }

  function reset(): void {
    concluded = false
    suspects.clear()
    tests.clear()
  }
}
