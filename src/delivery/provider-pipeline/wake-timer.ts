// wake-timer.ts: one timer, for the earliest moment that was asked for.

import type { CancelTimer, Clock } from '../../std/clock.ts'

export type WakeTimer = {
  /** Rings at `atMs` of the monotonic clock, unless it rings before; ringing once forgets everything asked. */
  set(atMs: number): void
  cancel(): void
}

export function createWakeTimer({ clock }: { clock: Clock }, ring: () => void): WakeTimer {
  let armed: { atMs: number; cancel: CancelTimer } | null = null

  return {
    set(atMs) {
      if (armed !== null && armed.atMs <= atMs) return
      armed?.cancel()
      // At least a millisecond: a timer that fires a hair early must not spin.
      const delayMs = Math.max(1, Math.ceil(atMs - clock.monotonic()))
      const fire = () => {
        armed = null
        ring()
      }
      armed = { atMs, cancel: clock.after(delayMs, fire) }
    },
    cancel() {
      armed?.cancel()
      armed = null
    },
  }
}
