// lane-assignment.ts: gives a lane whose provider is lost (lane-recovery.ts) to a provider. One small write;
// its payloads and batches stay as they are.

import { GatewayError } from '../../std/gateway-error.ts'
import type { LaneId, ProviderName } from '../../domain/ids.ts'
import { setClaimBatch } from '../chunk-log/lane-claims.ts'
import { isUnknown, putLane, putTotals } from '../chunk-log/lane.ts'
import type { Session } from '../session-state.ts'

/** Returns the number of open payloads. Rejects with LANE_KNOWN where there is nothing to assign. */
export async function assignLane(session: Session, id: LaneId, provider: ProviderName): Promise<number> {
  const lane = session.lanes.get(id)
  if (lane === undefined || !isUnknown(lane)) {
    const unknown = [...session.lanes.values()].filter(isUnknown).map((other) => other.id)
    throw new GatewayError('LANE_KNOWN', {
      what: `Lane ${id} cannot be assigned to a provider.`,
      why: lane === undefined ? 'There is no such lane.' : `It belongs to provider ${lane.provider}.`,
      act:
        unknown.length === 0
          ? 'Nothing was changed. No lane needs a provider.'
          : `Nothing was changed. These lanes need a provider: ${unknown.slice(0, 20).join(', ')}.`,
    })
  }
  lane.provider = provider
  for (const claim of lane.claims.values()) setClaimBatch(lane, claim, { ...claim.batch, provider })
  await session.committer.commit({
    prepare(ops) {
      putLane(lane, ops)
      putTotals(lane, ops)
    },
  })
  return lane.openPayloads
}
