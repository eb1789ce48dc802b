// forbidden-limit.ts: how many payloads may become dead letters because of a 403. A firewall that limits our
// rate answers 403 as well, to payloads without a fault; so beyond ten an hour they are held instead.

import type { Clock } from '../../std/clock.ts'

export type ForbiddenLimit = {
  reached(): boolean
  /** One payload became a dead letter. */
  add(): void
}

const deadLettersMax = 10
const windowMs = 3_600_000

export function createForbiddenLimit({ clock }: { clock: Clock }): ForbiddenLimit {
  /** Monotonic times of the latest ones. */
  const times: number[] = []
  return {
    reached() {
      const oldest = times[times.length - deadLettersMax]
      return oldest !== undefined && clock.monotonic() - oldest < windowMs
    },
    add() {
      times.push(clock.monotonic())
      if (times.length > deadLettersMax) times.shift()
    },
  }
}
