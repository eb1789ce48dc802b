// lane-age.ts: how old a lane is.

import type { EpochMs } from '../std/clock.ts'
import type { LaneView } from '../spool/spool.ts'

/** When the oldest payload of a lane was stored, whether or not it is sealed. */
export function oldestOf({
  oldestAt,
  oldestSealedAt,
}: Pick<LaneView, 'oldestAt' | 'oldestSealedAt'>): EpochMs | null {
  return oldestAt === null || (oldestSealedAt !== null && oldestSealedAt < oldestAt)
    ? oldestSealedAt
    : oldestAt
}
