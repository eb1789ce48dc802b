// lane-rotation.ts: fresh payloads go first by a change of roles. One small write turns the live lane of a
// provider into a backfill lane, and the next group that takes a payload opens a new live lane. A group that
// is being filled meanwhile still goes to its lane, so its payloads are late by one write at most.
//
// The write of a rotation is queued before any group can open the new lane, and the committer keeps that
// order. So no power cut leaves a provider with two live lanes.

import type { ProviderName } from '../../domain/ids.ts'
import { putLane, putTotals } from './lane.ts'
import type { Session } from '../session-state.ts'

/** False if nothing is pending, or if the provider has the maximum of backfill lanes. */
export async function rotate(session: Session, provider: ProviderName): Promise<boolean> {
  const lane = session.liveLanes.get(provider)
  if (lane === undefined || lane.committedSeq === lane.sealSeq) return false
  let backfill = 0
  for (const { role, provider: owner } of session.lanes.values())
    if (role.kind === 'backfill' && owner === provider) backfill += 1
  if (backfill >= session.options.backfillLanesMax) return false
  lane.role = { kind: 'backfill' }
  session.liveLanes.delete(provider)
  await session.committer.commit({
    prepare(ops) {
      putLane(lane, ops)
      putTotals(lane, ops)
    },
  })
  return true
}
