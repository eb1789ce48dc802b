// clock-offset.ts: what has to be added to our wall clock to get the true time, as the answers of the service tell.
// Asked once a message, so it is looked up once a second.

import type { CancelTimer, Clock } from '../std/clock.ts'
import type { Delivery } from '../delivery/delivery.ts'

export type ClockOffset = {
  /** Null while our own time is unknown. */
  offsetMs(this: void): number | null
  /** From now on the answers to this delivery are listened to. */
  follow(delivery: Pick<Delivery, 'providers'>): void
  stop(): void
}

const lookEveryMs = 1000

export function createClockOffset({ clock }: { clock: Clock }): ClockOffset {
  let offsetMs: number | null = null
  let cancel: CancelTimer = () => {}
  return { offsetMs: () => offsetMs, follow, stop: () => cancel() }

  function follow(delivery: Pick<Delivery, 'providers'>): void {
    offsetMs = null
    for (const { clockOffsetMs } of delivery.providers()) offsetMs ??= clockOffsetMs
    cancel = clock.after(lookEveryMs, () => follow(delivery))
  }
}
