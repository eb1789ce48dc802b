// return-calls.ts: the calls of custody `delivered`. They remove payloads that were stored in a queue of the
// server that their messages came from: a batch is returned by its settlement, what is in no batch by these
// calls. And they keep what the server may deliver again in the dedup window.

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
  /** Whole chunks, and at least one of them. */
  payloadsMax: number
  bytesMax: number
  /** Only payloads committed to the lane at or before this time. */
  committedUntil?: EpochMs
}

export type ReturnCalls = {
  /**
   * Keys of the dedup window that were committed at or behind `from` are kept whatever their age, and a
   * duplicate renews its key; Infinity, as at the start: none are. It outlasts the loss of the store.
   */
  holdKeys(from: number): void
  /** What is not durable yet has its keys at or behind this number. */
  committedKeys(): number
  /** Reads the head of what is pending, and changes nothing. Null: there is none, or it cannot be read. */
  readPending(lane: LaneId, limits: PendingLimits): Promise<PendingRun | null>
  /**
   * Removes a run in one atomic write, which stores the receipt as a settle does. Nothing may be sealed
   * between its reading and this call. False: it is not there any more, and nothing has happened.
   */
  returnPending(range: PendingRange, receipt: Buffer | null): Promise<boolean>
}

/** The calls of the ledger. */
export type ReceiptCalls = {
  /** Oldest first. A damaged receipt has no bytes. */
  receipts(options: { limit: number }): Promise<readonly NumberedReceipt[]>
  /** Forgets the receipts up to and including `n`. */
  forgetReceipts(n: number): Promise<void>
}

export type NumberedReceipt = { n: number; value: Buffer }
