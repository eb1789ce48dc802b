// next-look.ts: how soon the pipeline looks again at what is due. At a thousand messages a second there are
// hundreds of commits, and hardly one of them fills a batch: a look after each costs more than its payloads.
//
// After a look that found nothing due, the next one is
//
//   when something is due by its time
//   when the payloads that were added since would fill a batch
//   `restMs` after the first of them at the latest: their bytes may fill a batch
//
// Other looks (the end of a submission, an operator) come whenever they are called for.

import type { Clock } from '../../std/clock.ts'
import type { WakeTimer } from '../watch/wake-timer.ts'
import type { LanePlan } from './scheduler.ts'

type NextLook = {
  /** A look begins. Unless it ends with `waitFor`, the next commit is looked at. */
  begins(this: void): void
  added(this: void, payloads: number): void
  /** A look found nothing that is due before `dueAtMs` (monotonic). */
  waitFor(this: void, plans: readonly LanePlan[], dueAtMs: number): void
}

const restMs = 20

export function createNextLook(
  { clock, wakeTimer }: { clock: Clock; wakeTimer: WakeTimer },
  look: () => void,
): NextLook {
  /** Payloads until a batch is full; 0: a look follows each commit. */
  let room = 0
  return { begins, added, waitFor }

  function begins(): void {
    room = 0
  }

  function added(payloads: number): void {
    room -= payloads
    // The timer keeps the earliest time, and fires for all that it was set for.
    if (room > 0) wakeTimer.set(clock.monotonic() + restMs)
    else look()
  }

  function waitFor(plans: readonly LanePlan[], dueAtMs: number): void {
    wakeTimer.set(dueAtMs)
    if (dueAtMs <= clock.monotonic()) return
    for (const { lane, limits } of plans) {
      const left = lane.role.kind === 'retry' ? 0 : limits.payloadsMax - lane.pending
      if (left > 0 && (room === 0 || left < room)) room = left
    }
  }
}
