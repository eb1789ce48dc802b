// lane-view.ts: what the spool reports of a lane.

import type { EpochMs } from '../std/clock.ts'
import type { BatchId } from '../domain/ids.ts'
import type { LaneView } from './views.ts'
import { firstOpenSeq, settledPayloads, type Lane } from './chunk-log/lane.ts'

export function laneView(lane: Lane): LaneView {
  return new View(lane)
}

/**
 * A class, since delivery makes one of each lane at each look: an object literal with getters takes V8
 * ten times as long.
 */
class View implements LaneView {
  readonly id
  readonly provider
  readonly role
  readonly openedAt
  readonly pending
  readonly pendingBytes
  readonly sealed
  readonly sealedBytes
  readonly heldBatches
  readonly heldPayloads
  readonly heldBytes
  readonly oldestAt
  readonly sealSeq
  readonly committedSeq
  readonly appended
  readonly settled
  readonly open
  readonly #lane: Lane

  constructor(lane: Lane) {
    const { claimed } = lane
    this.id = lane.id
    this.provider = lane.provider
    this.role = lane.role
    this.openedAt = lane.openedAt
    this.pending = lane.committedSeq - lane.sealSeq - lane.gapPayloads
    this.pendingBytes = lane.committedBytes - lane.sealBytes
    this.sealed = claimed.payloads
    this.sealedBytes = claimed.bytes
    this.heldBatches = claimed.heldBatches
    this.heldPayloads = claimed.heldPayloads
    this.heldBytes = claimed.heldBytes
    this.oldestAt = lane.refs[0]?.committedAt ?? null
    this.sealSeq = lane.sealSeq
    this.committedSeq = lane.committedSeq
    this.appended = lane.nextSeq
    this.settled = settledPayloads(lane.settled)
    this.open = lane.openPayloads
    this.#lane = lane
  }

  /** For people only: there can be many thousand claims, and delivery reads this view with each batch. */
  get oldestSealedAt(): EpochMs | null {
    return oldestClaimAt(this.#lane)
  }

  get lowSeq(): number {
    return lowSeq(this.#lane, firstOpenSeq(this.#lane))
  }

  lowSeqBeside(isApart: (batchId: BatchId) => boolean): number {
    let first = this.#lane.sealSeq
    for (const { batch } of this.#lane.claims.values())
      if (batch.firstSeq < first && !isApart(batch.batchId)) first = batch.firstSeq
    return lowSeq(this.#lane, first)
  }
}

function oldestClaimAt({ claims }: Lane): EpochMs | null {
  let oldest: EpochMs | null = null
  for (const { batch, refs } of claims.values()) {
    const at = refs?.[0]?.committedAt ?? batch.timestamp
    if (oldest === null || at < oldest) oldest = at
  }
  return oldest
}

function lowSeq(lane: Lane, firstOpen: number): number {
  let low = firstOpen
  for (const firstSeq of lane.leaving) if (firstSeq < low) low = firstSeq
  return low
}
