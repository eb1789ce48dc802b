// dead-letter.ts: a message or payload we gave up on, kept whole with its reason, so that a person can mend it.

import type { EpochMs } from '../std/clock.ts'
import type { BatchId, PayloadId, ProviderName } from './ids.ts'
import type { Envelope } from './message.ts'
import type { FailureRecord } from './outcome.ts'

/** Where on the road it was given up. */
export type DeadLetterStage = 'mapping' | 'delivery'

/** Reason of the letters that a person made of messages in quarantine: nobody means these by asking for all. */
export const droppedByPerson = 'DROPPED_BY_OPERATOR'

export type DeadLetter = {
  stage: DeadLetterStage
  at: EpochMs
  /** Stable upper-case word, such as `NOT_JSON` or `Validation`. */
  reason: string
  /** One sentence for a person. */
  detail: string
  provider: ProviderName | null
  device: string | null
  /** The message as it came; for letters of the mapping. */
  envelope: Envelope | null
  /** The payload as it was sent, parsed JSON; for letters of the delivery. */
  payload: unknown
  payloadId: PayloadId | null
  batchId: BatchId | null
  requestId: string | null
  failure: FailureRecord | null
}
