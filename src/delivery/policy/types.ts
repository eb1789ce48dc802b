// types.ts: types that several files of the policy share.

import type { Held } from '../../domain/held.ts'
import type { Batch } from '../../spool/spool.ts'
import type { BatchAnswer } from '../types.ts'
import type { PayloadResults } from './payload-results.ts'

export type InFlightBatch = {
  /** Replaced where the spool changes the claim; batchId, range and timestamp stay. */
  batch: Batch
  /** In a submission now. */
  running: boolean
  /** Monotonic; it waits until then, for the reason of `wait`. */
  readyAtMs: number
  wait: Wait
  /** Why it is held; null in hand. */
  held: Held | null
  /** Submissions by this process. */
  submissions: number
  /**
   * The service may have processed it: a submission was written to its last byte, and the answer to it was no
   * refusal. A batch that is found at the start counts as sent.
   */
  mayBeProcessed: boolean
  /** Time-outs after it was written completely. */
  timeouts: number
  /** Answers 400 or 413 in a row to these bytes. */
  refusals: number
  /** Losses of the thread in a row while it was sent. */
  interruptions: number
  /** Answers in a row that were too long. */
  longAnswers: number
  /** Shared with the parts of the same batch that was refused; null while none was (refusals.ts). */
  origin: { successesBefore: number; isAccepted: boolean; refusedInRow: number } | null
  /** The service refuses this batch, or the one it was cut from, with 401 or 403 and accepts others. */
  forbiddenAlone: boolean
  /** Failures in a row, for its own back-off. */
  failures: number
  /** Tries as a held batch that changed nothing. */
  slowTries: number
  /** Failures between which other batches succeeded. */
  failuresAlone: number
  /** Successes of the provider when this batch last failed. */
  failedAtSuccess: number
  stuck: boolean
  earlierResults: PayloadResults | null
  /** Its payloads as the ledger records them, once an answer has come (receipts/receipt-entries.ts). */
  entries: Uint8Array | null
  /** The last answers to it, oldest first; for an operator. */
  answers: readonly BatchAnswer[]
  /** Order of the last submissions, so that probes alternate. */
  triedAt: number
}

/** Why a batch waits: what ends the wait. backoff.ts has the lengths. */
export type Wait =
  | 'none'
  /** Until its back-off is over or the endpoint is available again. */
  | 'backoff'
  /** Until its own, longer back-off is over. */
  | 'stuck'
  /** For a probe interval, which doubles. */
  | 'slow'
  /** Until other batches show whom a 403 is about, for a probe interval at most. */
  | 'other-batches'
  /** Until something else is accepted, for a probe interval at most. */
  | 'acceptance'

/** Whom an answer 401 or 403 is about: this batch `alone`, us (`all`), or not known yet. */
export type Forbidden = 'unknown' | 'alone' | 'all'
