// lane-claims.ts: the claims of a lane, and their sums. A lane can hold many thousand held batches, so the
// sums are adjusted with each change instead of counted at each view.

import type { Batch } from '../types.ts'
import type { Claim, ClaimSums, Lane } from './lane.ts'

/** Adds a claim. It replaces the claim with the same first number. */
export function setClaim(lane: Lane, claim: Claim): void {
  deleteClaim(lane, claim.batch.firstSeq)
  lane.claims.set(claim.batch.firstSeq, claim)
  adjust(lane.claimed, claim.batch, 1)
}

export function deleteClaim(lane: Lane, firstSeq: number): void {
  const claim = lane.claims.get(firstSeq)
  if (claim === undefined) return
  lane.claims.delete(firstSeq)
  adjust(lane.claimed, claim.batch, -1)
}

/** Gives a claim another operation or held state. */
export function setClaimBatch(lane: Lane, claim: Claim, batch: Batch): void {
  adjust(lane.claimed, claim.batch, -1)
  claim.batch = batch
  adjust(lane.claimed, batch, 1)
}

function adjust(sums: ClaimSums, { payloads, bytes, held }: Batch, sign: 1 | -1): void {
  sums.payloads += sign * payloads
  sums.bytes += sign * bytes
  if (held === null) return
  sums.heldBatches += sign
  sums.heldPayloads += sign * payloads
  sums.heldBytes += sign * bytes
}
