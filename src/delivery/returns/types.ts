// types.ts: what is returned, and how it is asked for.

import type { EpochMs } from '../../std/clock.ts'
import type { PayloadId, ProviderName } from '../../domain/ids.ts'

/** A payload that is handed over. */
export type ReturnedPayload = {
  provider: ProviderName
  payloadId: PayloadId
  /** Its bytes, as they are stored. */
  json: Buffer
  /** How often the service answered `failed` for it. */
  attempts: number
  /** When it came to where it waited. */
  committedAt: EpochMs
}

export type ReturnRequest = {
  olderThanMs: number
  /** At most so many, and the rest of a batch or chunk. */
  payloadsMax: number
  /** Of these also what was never submitted. */
  providersDown: readonly ProviderName[]
}

export type Returns = {
  /**
   * Hands the oldest waiting payloads over, a batch or a run of a lane at a time, and removes each in one
   * durable write when `hand` has resolved. Rejects as `hand` and the spool do; what was removed before
   * remains so. Resolves with their number; 0: none waits.
   */
  returnWaiting(
    request: ReturnRequest,
    hand: (payloads: readonly ReturnedPayload[]) => Promise<void>,
    signal: AbortSignal,
  ): Promise<number>
}
