// dead-letter.ts: a message or payload that was given up, kept whole with its reason, so that a person can
// correct it.

import type { EpochMs } from '../std/clock.ts'
import type { BatchId, PayloadId, ProviderName } from './ids.ts'
import type { KeptStore } from './kept-store.ts'
import type { Envelope } from './message.ts'
import type { FailureRecord } from './outcome.ts'

/** The stage that gave it up. */
export type DeadLetterStage = 'mapping' | 'delivery'

/** Reason of messages that an operator dropped from quarantine. A requeue of all leaves these out. */
export const droppedByPerson = 'DROPPED_BY_OPERATOR'

export type DeadLetter = {
  stage: DeadLetterStage
  at: EpochMs
  /** Stable code, such as `NOT_JSON` or `Validation`. */
  reason: string
  /** One sentence for a person. */
  detail: string
  provider: ProviderName | null
  device: string | null
  /** Of a message with records of several devices, whose `device` is null: the first of them. */
  devices?: readonly string[]
  /** How many more there are. */
  moreDevices?: number
  /** The message as it came; for letters of the mapping. */
  envelope: Envelope | null
  /** The payload as it was sent, parsed JSON; for letters of the delivery. */
  payload: unknown
  payloadId: PayloadId | null
  batchId: BatchId | null
  requestId: string | null
  failure: FailureRecord | null
  /** The store that it counts in; `dead_letters` where it is missing. */
  store?: DeadLetterStore
}

/** Names in a dead letter: a message of 10,000 vehicles must not double its size. */
export const devicesOfDeadLetterMax = 64

export type DeadLetterStore = Extract<KeptStore, `${string}dead_letters`>
