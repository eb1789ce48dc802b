// held.ts: why a sealed batch is not sent for now. It is part of the claim of the batch, so a restart and a
// reopened store keep it. Delivery sets and removes it (spool.setHeld).

import type { EpochMs } from '../std/clock.ts'

/** The reasons, each with its meaning. The names are part of the format of the spool. */
export const heldReasons = {
  repeated: 'the service answered 409: it has seen the batchId before',
  refused_repeat: 'the service refused the batch with 400 or 413 and may have processed it before',
  forbidden: 'the service answered 403 to this batch and accepts others',
  stuck: 'the batch fails while others succeed',
  unlisted: 'the answers name none of the payloads of the batch',
  not_accepted: 'the service refused the batch and has accepted nothing since',
  deferred: 'the service asked to send the batch much later',
  incomplete_answer: 'the answer has more than 8 MiB, so the results are unknown',
  /** Only of version 0.1. */
  dead_letters_full: 'a payload became a dead letter, and the dead letters have no room',
} as const

export type HeldReason = keyof typeof heldReasons

export type Held = {
  reason: HeldReason
  since: EpochMs
  /** Of the last answer; null without one. */
  requestId: string | null
  /** At most `heldWhyMax` characters; the spool cuts a longer text. */
  why: string
}

export const heldWhyMax = 300
