// known-keys.ts: keeps the keys of what is not acknowledged to the engine in the dedup window, whatever their
// age: an outage is longer than the window, and the engine delivers all of that again after each of its
// restarts, and after ours.
//
// A unit has the number of the first record of the window that can hold keys of it. A duplicate renews its
// key (dedup-window.ts), so a message that came again has its key in the records of its new unit.
//
//   records of the window   | acknowledged before | held                                  | not committed
//                                                 ^ held from    ^ next    ^ first unit
//
// An acknowledgement may not have arrived: keys are held until the sources could deliver for `redeliveryMs`
// after it. While a source is not connected, or nothing is taken, that time stands still. Bound: `max_ids` of
// the window.

import type { Unit } from './custody-units.ts'
import type { CustodySpool } from './types.ts'

export type KnownKeys = {
  /** The first record of the messages that were committed since the last call. */
  nextUnit(): number
  /** So much time, in which every source could deliver. `first`: the first unit. */
  passed(ms: number, first: Unit | undefined): void
  /** The store was lost: all of its keys count as not acknowledged. */
  restart(): void
}

const redeliveryMs = 600_000

export function createKnownKeys(spool: Pick<CustodySpool, 'holdKeys' | 'committedKeys'>): KnownKeys {
  let heldNext = 0
  let notInUnit = 0
  let passedMs = 0
  restart()

  function restart(): void {
    heldNext = 0
    notInUnit = 0
    passedMs = 0
    spool.holdKeys(0)
  }

  return {
    nextUnit() {
      const from = notInUnit
      notInUnit = spool.committedKeys()
      return from
    },
    passed(ms, first) {
      passedMs += ms
      if (passedMs < redeliveryMs) return
      passedMs = 0
      spool.holdKeys(heldNext)
      heldNext = first?.keysFrom ?? notInUnit
    },
    restart,
  }
}
