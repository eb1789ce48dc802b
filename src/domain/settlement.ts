// settlement.ts: the result for each payload of a batch. The verdict decides it, the spool carries it out
// in one atomic write: also into retry lanes, whose role keeps how often their payloads were answered.

import type { FailureRecord } from './outcome.ts'

export type PayloadSettlement =
  /** `note`: for the ledger, where not the answer of the service says so. */
  | { kind: 'delivered'; note?: { reason: string; detail: string } }
  /**
   * Goes to the end of a retry lane of `schedule` and `step`, and rests there for that step's delay.
   * `uncounted`: the answer is no attempt of the payload, because of an outage, because it does not name the
   * payload, or because the dead letters have no room; then it rests until they have.
   */
  | {
      kind: 'retry'
      schedule: string
      step: number
      failure: FailureRecord
      uncounted?: 'outage' | 'unanswered' | 'no_room'
    }
  /** Becomes a dead letter; with `discard` it is deleted instead, because an operator wants that. */
  | { kind: 'dead'; reason: string; detail: string; failure: FailureRecord | null; discard?: true }
  /** Removed: the server that its message came from has it again. Not where it may have been processed. */
  | { kind: 'returned'; reason: string; detail: string }

/** What receipts and the ledger call these, in the order of the bits in a receipt. */
export const ledgerOutcomes = ['delivered', 'retried', 'dead', 'returned'] as const

export type LedgerOutcome = (typeof ledgerOutcomes)[number]

/** One entry for each payload of the batch, in the order of the batch; or the usual case as one word. */
export type Settlement = {
  payloads: 'all delivered' | readonly PayloadSettlement[]
  requestId: string | null
}

/** What a lane is for. A record, not part of a key: it can change while the lane holds payloads. */
export type LaneRole =
  | { kind: 'live' }
  | { kind: 'backfill' }
  /**
   * Payloads that the service answered `failed` for. Each waits here for the delay of that step of
   * `schedule`. `counted`: how many of these answers counted, by schedule; missing where they are `step + 1`
   * of this one. `waitsForRoom`: they would be dead letters, and there was no room.
   */
  | { kind: 'retry'; schedule: string; step: number; counted?: AttemptCounts; waitsForRoom?: true }

type AttemptCounts = Readonly<Record<string, number>>

/** The answers `failed` that counted for the payloads of a lane, by schedule. */
export function attemptsIn(role: LaneRole): Map<string, number> {
  if (role.kind !== 'retry') return new Map()
  return new Map(Object.entries(role.counted ?? { [role.schedule]: role.step + 1 }))
}
