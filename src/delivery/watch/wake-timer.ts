// wake-timer.ts: one timer, for the earliest time that was requested.

import type { CancelTimer, Clock } from '../../std/clock.ts'

export type WakeTimer = {
  /** Fires at `atMs` of the monotonic clock, or before; firing once forgets all requests. */
  set(atMs: number): void
  cancel(): void
}

export function createWakeTimer({ clock }: { clock: Clock }, wake: () => void): WakeTimer {
  let armed: { atMs: number; cancel: CancelTimer } | null = null

  return {
    set(atMs) {
      if (armed !== null && armed.atMs <= atMs) return
      armed?.cancel()
      // At least a millisecond: a timer that fires slightly early must not spin.
      const delayMs = Math.max(1, Math.ceil(atMs - clock.monotonic()))
      const fire = () => {
        armed = null
        wake()
      }
      armed = { atMs, cancel: clock.after(delayMs, fire) }
    },
    cancel() {
      armed?.cancel()
      armed = null
    },
  }
}
