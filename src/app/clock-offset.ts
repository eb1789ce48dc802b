// clock-offset.ts: what has to be added to our wall clock to get the true time, learned from the answers of
// the service. It is read once a message, so it is updated once a second.

import type { CancelTimer, Clock } from '../std/clock.ts'
import type { Delivery } from '../delivery/delivery.ts'

export type ClockOffset = {
  /** Null while our own time is unknown. */
  offsetMs(this: void): number | null
  /** From now on the offset is that of this delivery. */
  follow(delivery: Pick<Delivery, 'providers'>): void
  stop(): void
}

const updateEveryMs = 1000

export function createClockOffset({ clock }: { clock: Clock }): ClockOffset {
  let offsetMs: number | null = null
  let cancel: CancelTimer = () => {}
  return { offsetMs: () => offsetMs, follow, stop: () => cancel() }

  function follow(delivery: Pick<Delivery, 'providers'>): void {
    offsetMs = null
    for (const { clockOffsetMs } of delivery.providers()) offsetMs ??= clockOffsetMs
    cancel = clock.after(updateEveryMs, () => follow(delivery))
  }
}
