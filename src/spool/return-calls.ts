// return-calls.ts: the calls that give payloads back to the server that their messages came from. It keeps a
// message until it is acknowledged, so a payload that is still there, or that was stored there again, may be
// removed here. A batch is returned by its settlement; what is in no batch by these calls.

import type { EpochMs } from '../std/clock.ts'
import type { LaneId, PayloadId, ProviderName } from '../domain/ids.ts'

/** A run of pending payloads, as it was read. */
export type PendingRange = {
  lane: LaneId
  provider: ProviderName
  firstSeq: number
  endSeq: number
  payloads: number
  bytes: number
  /** Where its chunks begin, by number and by bytes of the lane, and what they hold. */
  chunks: readonly { firstSeq: number; count: number; startBytes: number; bytes: number }[]
}

export type PendingPayload = {
  payloadId: PayloadId
  /** Its JSON bytes, as stored. */
  json: Buffer
  /** How often the service answered `failed` for it. */
  attempts: number
  /** When it was committed to this lane. */
  committedAt: EpochMs
}

export type PendingRun = PendingRange & { contents: readonly PendingPayload[] }

export type PendingLimits = {
  /** By default the head of the lane. Else a number with which a commit began. */
  fromSeq?: number
  /** Whole chunks, and at least one of them. */
  payloadsMax: number
  bytesMax: number
  /** Only payloads committed to the lane at or before this time. */
  committedUntil?: EpochMs
  /** Nothing if an exchange appended payloads at or behind `fromSeq`: no message would bring them again. */
  messagesOnly?: boolean
}

export type ReturnCalls = {
  /** Reads pending payloads and changes nothing. Null: there are none, or they cannot be read. */
  readPending(lane: LaneId, limits: PendingLimits): Promise<PendingRun | null>
  /**
   * Removes pending payloads in one atomic write, which stores the receipts as a settle does. The ranges of a
   * lane begin at its head and follow each other; nothing may be sealed between their reading and this call.
   * False: they are not there any more, and nothing has happened.
   * `forgetKeys`: the dedup window is empty when they are gone, so that their messages may come again.
   */
  returnPending(
    ranges: readonly PendingRange[],
    options: { receipts: readonly Buffer[]; forgetKeys: boolean },
  ): Promise<boolean>
}
