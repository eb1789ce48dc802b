// settlement.ts: the result for each payload of a batch. The verdict decides it, the spool carries it out
// in one atomic write.

import type { FailureRecord } from './outcome.ts'

export type PayloadSettlement =
  /** `note`: for the ledger, where not the answer of the service says so. */
  | { kind: 'delivered'; note?: { reason: string; detail: string } }
  /**
   * Goes to the end of a retry lane of `schedule` and `step`, and rests there for that step's delay.
   * `uncounted`: the answer is no attempt of the payload, because of an outage, or because the dead letters
   * have no room; then it rests until they have.
   */
  | {
      kind: 'retry'
      schedule: string
      step: number
      failure: FailureRecord
      uncounted?: 'outage' | 'no_room'
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
