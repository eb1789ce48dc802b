// refusals.ts: is the batch at fault, or is it us? What the answers that refuse whole requests (400, 401,
// 403, 413) say together, of one provider.
//
// 400, 413   A refused batch is halved, and both halves are sent before the next cut, so an accepted half
//            shows early that the service accepts batches. Refusals in a row, with nothing accepted between,
//            are counted for the provider and for the batch that all parts come from. At the limit the
//            endpoint is unavailable, or the rest of that batch is held (verdict.ts). Once a part was
//            accepted, the other refusals of that batch say nothing of the service.
// 401, 403   A firewall in front of the service refuses a single batch with the status that the service has
//            for unknown credentials. So the batch waits, and others are tried, one at a time:
//              another one, submitted after that answer, is accepted   -> it is about the batch
//              three other ones get 401 or 403 as well                 -> it is about us: unauthorized
//            Where no other batch is due, the endpoint becomes unauthorized at once, so that a person sees
//            it, and the next batches are still tried without delay, up to the three.
//
// In memory only: after a restart the parts are ordinary batches. Bound: one entry for each batch in hand.

import type { Forbidden, InFlightBatch } from './types.ts'

/** Refusals in a row that are suspicious: then one batch at a time is sent. */
const suspiciousAfter = 3
const testsMax = 3

export class Refusals {
  #inRow = 0
  #successes = 0
  #submissions = 0
  /** Answered 401 or 403, each with the number of the last submission that had started then. */
  readonly #forbidden = new Map<InFlightBatch, number>()
  /** Other batches that were submitted after the first of these answers and were refused too. */
  readonly #tests = new Set<InFlightBatch>()
  /** Nothing was accepted since it turned out to be about us. */
  #isAboutUs = false

  /** Answers 400 or 413 in a row, with nothing accepted between. */
  get inRow(): number {
    return this.#inRow
  }

  /** It is not known whom a 401 or 403 is about. */
  get isTesting(): boolean {
    return this.#forbidden.size > 0
  }

  /** One submission at a time. */
  get isSuspicious(): boolean {
    return this.isTesting || this.#inRow >= (this.#successes > 0 ? suspiciousAfter : 1)
  }

  /** The number of a submission that starts now. */
  started(): number {
    this.#submissions += 1
    return this.#submissions
  }

  /** Something was accepted since `batch`, or the batch that it was cut from, was first refused. */
  acceptedSince({ origin }: InFlightBatch): boolean {
    return origin !== null && origin.successesBefore < this.#successes
  }

  /**
   * `isNews`: that says something about the service; of a batch that was held or sent before the start it
   * does not.
   */
  refused(batch: InFlightBatch, isNews: boolean): void {
    // One alone is not cut any more. Its end as a dead letter waits for an acceptance since then.
    if (!isNews && batch.batch.operation === 'batch') return
    batch.origin ??= { successesBefore: this.#successes, isAccepted: false, refusedInRow: 0 }
    if (!isNews) return
    batch.origin.refusedInRow += 1
    if (!batch.origin.isAccepted) this.#inRow += 1
  }

  /** The submission `number` of `batch` was answered 401 or 403, with credentials read again. */
  forbidden(batch: InFlightBatch, number: number): Forbidden {
    // What is held as forbidden shows nothing about the credentials: others were accepted beside it.
    if (batch.forbiddenAlone || batch.held?.reason === 'forbidden') return 'alone'
    if (this.#isAboutUs) return 'all'
    const [first] = this.#forbidden
    if (first !== undefined && first[0] !== batch && number > first[1]) this.#tests.add(batch)
    if (!this.#forbidden.has(batch)) this.#forbidden.set(batch, this.#submissions)
    if (this.#tests.size < testsMax) return 'unknown'
    this.reset()
    this.#isAboutUs = true
    return 'all'
  }

  /** True where a 401 or 403 to other batches turned out to be about these. `isByMode`: as configured. */
  accepted(batch: InFlightBatch, number: number, isByMode: boolean): boolean {
    // An accepted single payload does not show that the service accepts batches.
    if (isByMode) {
      this.#inRow = 0
      this.#successes += 1
      if (batch.origin !== null) Object.assign(batch.origin, { isAccepted: true, refusedInRow: 0 })
    }
    this.#isAboutUs = false
    const before = this.#forbidden.size
    for (const [other, at] of this.#forbidden) {
      if (number <= at) continue
      other.forbiddenAlone = true
      this.#forbidden.delete(other)
    }
    const isFound = this.#forbidden.size < before
    if (this.#forbidden.size === 0) this.#tests.clear()
    return isFound
  }

  /** `batch` is settled or replaced. */
  leave(batch: InFlightBatch): void {
    this.#forbidden.delete(batch)
    if (this.#forbidden.size === 0) this.#tests.clear()
  }

  /** The credentials changed, or the batches are void. */
  reset(): void {
    this.#isAboutUs = false
    this.#forbidden.clear()
    this.#tests.clear()
  }
}
