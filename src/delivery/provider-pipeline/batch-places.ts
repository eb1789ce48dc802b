// batch-places.ts: the places of one provider for its batches (`max_in_flight`).
//
// A batch has a place from when it is chosen until the service has accepted it; where it has not, until all
// of its work is done. A settle needs no place: the disk takes as long as the service. At the bound, as many
// settles as places, a batch keeps its place until it is settled.

import type { ProviderName } from '../../domain/ids.ts'
import type { PipelineDeps } from './types.ts'

export type BatchPlaces = {
  /** None is free. */
  full(): boolean
  /** One place stays free for live data where there is more than one. */
  mayBackfill(): boolean
  take(isBackfill: boolean): BatchPlace
  /** Batches that have a place. */
  taken(): number
  /** Batches that gave theirs back, and whose settle is not durable. */
  settling(): number
}

export type BatchPlace = {
  /** The service has the payloads. True where the place is free now. */
  accepted(): boolean
  /** The work for the batch has ended. */
  leave(): void
}

/** What waits for room in the dead letters would pass its bound, if `moreBytes` were refused. */
export function mustWaitForRoom(
  { spool, waitingBytesMax }: Pick<PipelineDeps, 'spool' | 'waitingBytesMax'>,
  of: ProviderName,
  moreBytes: number,
): boolean {
  if (!spool.deadLettersFull()) return false
  // Of a small spool a single batch may be more than the bound.
  let bytes = Math.min(moreBytes, waitingBytesMax() / 2)
  for (const { provider, role, pendingBytes, sealedBytes } of spool.lanes())
    if (provider === of && role.kind === 'retry' && role.waitsForRoom === true)
      bytes += pendingBytes + sealedBytes
  return bytes > waitingBytesMax()
}

/** `limit`: places now. With one, the next batch waits for all of the one before. */
export function createBatchPlaces(limit: () => number, options: { shareMax: number }): BatchPlaces {
  let taken = 0
  let backfill = 0
  let settling = 0
  return {
    full: () => taken >= limit(),
    mayBackfill,
    take,
    taken: () => taken,
    settling: () => settling,
  }

  function mayBackfill(): boolean {
    const places = limit()
    return backfill < Math.max(1, Math.min(places - 1, Math.floor(places * options.shareMax)))
  }

  function take(isBackfill: boolean): BatchPlace {
    let settles = false
    taken += 1
    if (isBackfill) backfill += 1
    return {
      accepted() {
        if (settles || limit() === 1 || settling >= limit()) return false
        settles = true
        settling += 1
        giveBack()
        return true
      },
      leave() {
        if (settles) settling -= 1
        else giveBack()
      },
    }

    function giveBack(): void {
      taken -= 1
      if (isBackfill) backfill -= 1
    }
  }
}
