// lane-status.ts: the lanes in /status, in the order in which they drain.

import { isoTime, isoTimeOrNull } from '../std/clock.ts'
import { oldestOf } from './lane-age.ts'
import type { LaneRole, LaneView } from '../spool/spool.ts'
import type { Status } from './status-schema/status-schema.ts'

const urgencies: readonly LaneRole['kind'][] = ['live', 'retry', 'backfill']

/**
 * A lane behind another one of its provider waits for that one too. `rates`: payloads per second of each
 * provider that delivers now; without one, the time to drain is not known.
 */
export function statusLanes(lanes: readonly LaneView[], rates: ReadonlyMap<string, number>): Status['lanes'] {
  const before = new Map<string, number>()
  return [...lanes]
    .sort((a, b) => urgencies.indexOf(a.role.kind) - urgencies.indexOf(b.role.kind) || a.id - b.id)
    .map((lane) => {
      const open = lane.pending + lane.sealed
      // Held batches wait for a person, or for hours: they do not drain at any rate.
      const drains = open - lane.heldPayloads
      const ahead = (before.get(lane.provider) ?? 0) + drains
      before.set(lane.provider, ahead)
      const ratePerS = rates.get(lane.provider) ?? 0
      const toDrain = ratePerS > 0 && drains > 0 ? Math.ceil(ahead / ratePerS) : null
      return {
        id: lane.id,
        provider: lane.provider,
        urgency: lane.role.kind,
        retry: lane.role.kind === 'retry' ? { schedule: lane.role.schedule, step: lane.role.step } : null,
        pending: lane.pending,
        sealed: lane.sealed,
        held: lane.heldPayloads,
        bytes: lane.pendingBytes + lane.sealedBytes,
        openedAt: isoTime(lane.openedAt),
        oldestAt: isoTimeOrNull(oldestOf(lane)),
        secondsToDrain: open === 0 ? 0 : toDrain,
      }
    })
}
