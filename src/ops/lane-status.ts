// lane-status.ts: the lanes in /status, in the order in which they drain.

import { isoTime, isoTimeOrNull } from '../std/clock.ts'
import type { LaneRole, LaneView } from '../spool/spool.ts'

export type StatusLane = {
  id: number
  provider: string
  urgency: LaneRole['kind']
  role: LaneRole
  pending: number
  sealed: number
  bytes: number
  openedAt: string
  oldestAt: string | null
  /** Until this lane is empty at the present rate, urgent lanes first; null while the rate is not known. */
  secondsToDrain: number | null
}

const urgencies: readonly LaneRole['kind'][] = ['live', 'retry', 'backfill']

/** A lane behind another one of its provider waits for that one too. */
export function statusLanes(lanes: readonly LaneView[], rates: ReadonlyMap<string, number>): StatusLane[] {
  const before = new Map<string, number>()
  return [...lanes]
    .sort((a, b) => urgencies.indexOf(a.role.kind) - urgencies.indexOf(b.role.kind) || a.id - b.id)
    .map((lane) => {
      const open = lane.pending + lane.sealed
      const ahead = (before.get(lane.provider) ?? 0) + open
      before.set(lane.provider, ahead)
      const ratePerS = rates.get(lane.provider) ?? 0
      const toDrain = ratePerS > 0 ? Math.ceil(ahead / ratePerS) : null
      return {
        id: lane.id,
        provider: lane.provider,
        urgency: lane.role.kind,
        role: lane.role,
        pending: lane.pending,
        sealed: lane.sealed,
        bytes: lane.pendingBytes + lane.sealedBytes,
        openedAt: isoTime(lane.openedAt),
        oldestAt: isoTimeOrNull(lane.oldestAt),
        secondsToDrain: open === 0 ? 0 : toDrain,
      }
    })
}
