// write-deadline.ts: when the next write must start.
//
// A write costs a fifth of a millisecond of processor time and wears the disk, whatever it holds. So what is
// to be written says how long it may wait, and the write starts at the earliest of these deadlines:
//
//   a message       a quarter of the time since the last acknowledgement of its connection. So a sender that
//                   waits for each one gets it at most a quarter of its own round later, and one that sends
//                   once a second shares its write with all others
//   nobody waits    without a bound of its own: seals and settles of batches that are not full, what expires,
//                   what time closes
//   the rest        does not wait, and takes along what is there
//
// `ackDelayMaxMs` bounds all of them. Below four milliseconds nothing waits: a timer may be late by
// one or two, and a sender that empties its backlog in the same network shall lose nothing.

import type { CancelTimer, Clock } from '../../std/clock.ts'

const waitMsMin = 4

export class WriteDeadline {
  readonly #clock: Clock
  readonly #passed: () => void
  #atMs = Number.POSITIVE_INFINITY
  /** When the timer fires. */
  #timerAtMs = Number.POSITIVE_INFINITY
  #cancelTimer: CancelTimer | null = null

  /** `passed` is called at the deadline, if `waits` has said that the write waits. */
  constructor({ clock, passed }: { clock: Clock; passed: () => void }) {
    this.#clock = clock
    this.#passed = passed
  }

  /** Something is to be written, and may wait so long. */
  add(waitMs: number): void {
    if (this.#atMs === Number.NEGATIVE_INFINITY) return
    const atMs = waitMs < waitMsMin ? Number.NEGATIVE_INFINITY : this.#clock.monotonic() + waitMs
    this.#atMs = Math.min(this.#atMs, atMs)
  }

  waits(): boolean {
    if (this.#atMs === Number.POSITIVE_INFINITY) return false
    const leftMs = this.#atMs - this.#clock.monotonic()
    if (leftMs <= 0) return false
    if (this.#atMs < this.#timerAtMs) {
      this.#cancelTimer?.()
      this.#timerAtMs = this.#atMs
      this.#cancelTimer = this.#clock.after(leftMs, this.#passed)
    }
    return true
  }

  /** A write takes everything, or none will come. */
  clear(): void {
    this.#cancelTimer?.()
    this.#cancelTimer = null
    this.#atMs = this.#timerAtMs = Number.POSITIVE_INFINITY
  }
}
