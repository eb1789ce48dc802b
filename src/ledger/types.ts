// types.ts: the queries and answers of the ledger, shared by the files of this folder.

import type { EpochMs } from '../std/clock.ts'
import type { LedgerOutcome } from '../domain/settlement.ts'

/** An entry matches when it meets every condition that is set. */
export type LedgerQuery = {
  device?: string | undefined
  /** Range of the device time, both ends included. */
  from?: EpochMs | undefined
  to?: EpochMs | undefined
  payload?: string | undefined
  batch?: string | undefined
  request?: string | undefined
  outcome?: LedgerOutcome | undefined
  limit: number
  /** Continues behind the last entry of an answer: its `next`. */
  after?: string | undefined
}

/** A receipt by number, and a payload in it by index; the entries that follow are older. */
export type Cursor = { number: number; index: number }

/** What one settlement did with one payload. */
export type LedgerEntry = {
  /** Time of the settlement. */
  at: EpochMs
  payloadId: string
  /** Null where the payload names none. */
  device: string | null
  deviceTime: EpochMs | null
  outcome: LedgerOutcome
  /** Of a retry: its schedule, and the number of failures before. */
  schedule: string | null
  step: number | null
  /** Of a payload that was not delivered. */
  reason: string | null
  detail: string | null
  provider: string
  lane: number
  batchId: string
  requestId: string | null
}

export type LedgerAnswer = {
  /** Newest settlement first. */
  entries: readonly LedgerEntry[]
  /** Pass it as `after` to continue; null where nothing follows. */
  next: string | null
  /** Settlement time of the oldest entry; null where the ledger is empty. */
  oldestAt: EpochMs | null
  /** Receipts in the spool that are not in the ledger yet. */
  behind: number
}
