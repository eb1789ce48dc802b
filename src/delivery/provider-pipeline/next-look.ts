// next-look.ts: when the pipeline looks again at what is due. At a thousand messages a second there are
// hundreds of commits, and hardly one of them fills a batch: a look after each costs more than its payloads.
//
// After a look that found nothing due, the next one is
//
//   when something is due by its time
//   when the payloads that were added since would fill a batch
//   `restMs` after the first of them at the latest: their bytes may fill a batch
//
// Other looks (the end of a submission, an operator) come whenever they are called for.

import type { CancelTimer, Clock } from '../../std/clock.ts'
import type { LanePlan } from '../policy/scheduler.ts'

const restMs = 20

export class NextLook {
  readonly #clock: Clock
  readonly #look: () => void
  /** One timer, for the earliest time that was asked for. */
  #timer: { atMs: number; cancel: CancelTimer } | null = null
  /** Payloads until a batch is full; 0: a look follows each commit. */
  #room = 0

  constructor({ clock }: { clock: Clock }, look: () => void) {
    this.#clock = clock
    this.#look = look
  }

  /** A look begins. Unless it ends with `waitFor`, the next commit is looked at. */
  begins(): void {
    this.#room = 0
  }

  added(payloads: number): void {
    this.#room -= payloads
    if (this.#room > 0) this.at(this.#clock.monotonic() + restMs)
    else this.#look()
  }

  /** A look found nothing that is due before `dueAtMs` (monotonic). */
  waitFor(plans: readonly LanePlan[], dueAtMs: number): void {
    this.at(dueAtMs)
    if (dueAtMs <= this.#clock.monotonic()) return
    for (const { lane, limits } of plans) {
      const left = lane.role.kind === 'retry' ? 0 : limits.payloadsMax - lane.pending
      if (left > 0 && (this.#room === 0 || left < this.#room)) this.#room = left
    }
  }

  /** Looks at `atMs` of the monotonic clock, or before; a look forgets all requests. */
  at(atMs: number): void {
    if (this.#timer !== null && this.#timer.atMs <= atMs) return
    this.cancel()
    // At least a millisecond: a timer that fires slightly early must not spin.
    const delayMs = Math.max(1, Math.ceil(atMs - this.#clock.monotonic()))
    const fire = () => {
      this.#timer = null
      this.#look()
    }
    this.#timer = { atMs, cancel: this.#clock.after(delayMs, fire) }
  }

  cancel(): void {
    this.#timer?.cancel()
    this.#timer = null
  }
}
