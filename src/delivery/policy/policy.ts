// policy.ts: the entry file of delivery's decisions. This folder says what happens next, and
// provider-pipeline/ does it. Nothing here sends; the only write is the rotation of a lane (backfill-policy).
//
// A batch from its lane to its settlement, and who decides
//   what goes next          scheduler        sealed batches and lanes in turn: live, retry, backfill
//   how large, how many     ../pacing/
//                           batch-parts      when a batch is cut before it is sent
//   may it be sent now      endpoint         available, unavailable or unauthorized (invariant 9)
//                           concurrency      how many submissions at once
//                           rate-limit       payloads and requests per second
//   what an outcome means   verdict          the table: each payload, the batch, the endpoint (invariant 10)
//                           payload-results  what several answers to one batch said about each payload
//                           refusals         whether refusals are about one batch or about us
//   when it goes again      retry-delays     payloads that the service answered `failed` for, by errorType
//                           backoff          how long a held batch, or the endpoint, waits
//                           batch-table      the sealed batches, how long each waits, what ends it early
//   what waits too long     backfill-policy  when the live lane becomes backfill
//
// Four rules hold everywhere. A payload becomes final only where the service answered for it. An answer that
// names every payload of a batch is settled, and that batchId is never sent again: the service may remember
// its answer. No outage counts an attempt of a payload, or it would turn every payload into a dead letter. A
// failure delays its own batch and lowers concurrency; only many failures over several batches stop a
// provider.

import type { HeldReason } from '../../domain/held.ts'
import type { PayloadId } from '../../domain/ids.ts'
import type { Settlement } from '../../domain/settlement.ts'
import type { BatchOperation, LaneRole } from '../../spool/spool.ts'
import type { OnRefusedRepeat, OnRepeat, RetryRules } from '../delivery-options.ts'
import type { PayloadResults } from './payload-results.ts'
import type { Forbidden, Wait } from './types.ts'

/** What the verdict needs to know beside the outcome. */
export type Facts = {
  payloads: number
  payloadIds(): readonly PayloadId[]
  /** Answers `failed` that counted for each payload before this batch. */
  attempts(): readonly number[]
  role: LaneRole
  operation: BatchOperation
  /** The service may have processed this batch before this submission. */
  mayBeProcessed: boolean
  /** Answers 400 or 413 in a row to these bytes, before this one. */
  refusals: number
  /** Losses of the thread, and answers that were too long, in a row before this submission. */
  interruptions: number
  longAnswers: number
  /** It is no longer in hand (batch-table.ts). */
  isHeld: boolean
  /** What an earlier answer to this batch said, when it left some payloads out; else null. */
  earlierResults: PayloadResults | null
  /** Live or backfill batches in a row, before this one, with nothing accepted. */
  emptyAnswers: number
  /** The service accepted a payload within the last minutes, and of the last live or backfill batch. */
  acceptedLately: boolean
  /** The endpoint is unavailable because of an outage that the service reported inside a 200. */
  outage: boolean
  /** Requests refused with 400 or 413 in a row, before this one, with nothing accepted between. */
  refusedInRow: number
  /** The same of this batch, or the batch that it was cut from, and its parts; 401 and 403 as well. */
  refusedOfOrigin: number
  /** Something was accepted since this batch, or the batch that it was cut from, was first refused. */
  acceptedSince: boolean
  /**
   * The same bytes may be accepted at once: other credentials may be found than those of this request, or
   * another time for its signature.
   */
  mayResubmit: boolean
  /** Whom an answer 401 or 403 is about; `unknown` for other answers. */
  forbidden: Forbidden
  /** No other batch is in hand, none is due, and no request succeeded within the last minute. */
  alone(): boolean
  /** Failures of this batch between which others succeeded; this submission included, if it failed. */
  failuresAlone: number
  /** This batch reached `failuresToStuck` before. */
  stuck: boolean
  deadLettersFull: boolean
}

export type RetryPolicy = {
  retryRules: RetryRules
  onRepeat: OnRepeat
  onRefusedRepeat: OnRefusedRepeat
  mode: BatchOperation
  emptyAnswersToUnavailable: number
  refusalsToUnavailable: number
  failuresToStuck: number
  /** Longest back-off of a batch in hand. */
  maxMs: number
}

export type Verdict = {
  /** Null: the batch stays sealed, unless `reseal` or `operation` replaces it. */
  settlement: Settlement | null
  /** Batches of so many payloads under new batchIds. */
  reseal: readonly number[] | null
  /** The other operation, under the same claim. */
  operation: BatchOperation | null
  /** Read the credentials again and submit the same batch once more, at once. */
  resubmit: boolean
  wait: Wait
  /** The batch is no longer in hand, and a person sees why; null where it only waits. */
  heldAs: HeldReason | null
  endpoint:
    'success' | 'failure' | 'refused' | 'isolating' | 'wrapper' | 'unauthorized' | 'outage' | 'unchanged'
  /** A sentence for a person, where the outcome alone does not say why the batch is held or cut. */
  why: string | null
  /** What was wrong with an answer that could be read. */
  deviations: readonly string[]
  /** What an answer with gaps said; the next answer fills the gaps. */
  results: PayloadResults | null
  /**
   * What the service says of the payloads, where it accepted nothing of several batches in a row; else null.
   */
  nothingAccepted: string | null
  /** What becomes of `Facts.emptyAnswers`. */
  emptyAnswers: 'increment' | 'reset' | 'unchanged'
}
