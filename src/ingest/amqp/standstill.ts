// standstill.ts: notices that this process stood still (frozen, or starved) for longer than the server waits
// for heartbeats. The server has given its messages to another gateway then, and has more of them in the
// sockets here: they must not be stored. Node reads the sockets before its timers run, so each delivery asks,
// and not the timer alone.

import { every, type CancelTimer, type Clock } from '../../std/clock.ts'

const tickMs = 1000

export class Standstill {
  readonly #clock: Clock
  readonly #limitMs: number
  readonly #found: (stoodMs: number) => void
  readonly #endTicks: CancelTimer
  #tickedMs: number

  /** `found`: before anything else that came meanwhile is used. */
  constructor(clock: Clock, { limitMs }: { limitMs: number }, found: (stoodMs: number) => void) {
    this.#clock = clock
    this.#limitMs = limitMs
    this.#found = found
    this.#tickedMs = clock.monotonic()
    this.#endTicks = every(clock, tickMs, () => this.look())
  }

  look(): void {
    const now = this.#clock.monotonic()
    const stoodMs = now - this.#tickedMs
    this.#tickedMs = now
    if (stoodMs > this.#limitMs) this.#found(stoodMs)
  }

  close(): void {
    this.#endTicks()
  }
}
