// window-watch.ts: finds out that the broker's window is what limits a connection: again and again the same
// small number of messages is outstanding, and nothing more comes until they are acknowledged.

import type { Clock } from '../../../std/clock.ts'

export type WindowWatch = {
  taken(outstanding: number): void
  /** The acknowledgements of a commit were written. */
  flushed(): void
}

const periodMs = 60_000
/** Mosquitto has 20 by default. A larger window is not worth a warning. */
const smallMax = 32
const commitsMin = 1000

export function createWindowWatch(clock: Clock, found: (messages: number | null) => void): WindowWatch {
  let startedAtMs = clock.monotonic()
  let peak = 0
  let atPeak = 0
  let commits = 0
  let isSmall = false

  function flushed(): void {
    commits += 1
    if (clock.monotonic() - startedAtMs < periodMs) return
    const small = commits >= commitsMin && peak > 1 && peak <= smallMax && atPeak * 2 > commits
    if (small !== isSmall) found(small ? peak : null)
    isSmall = small
    startedAtMs = clock.monotonic()
    peak = 0
    atPeak = 0
    commits = 0
  }

  return {
    taken(outstanding) {
      if (outstanding === peak) atPeak += 1
      else if (outstanding > peak) {
        peak = outstanding
        atPeak = 1
      }
    },
    flushed,
  }
}
