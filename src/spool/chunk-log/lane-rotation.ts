// lane-rotation.ts: fresh first is a change of roles. The live lane of a provider becomes a backfill lane by one small write,
// and the next group that takes a payload in opens a new live lane. A group that is being filled meanwhile still
// goes to the lane in which it began; what it holds is behind by one write at most.
//
// The write of a rotation is asked for before any group can open the new lane, and the committer keeps that order; so
// no power cut leaves a provider with two live lanes.

import type { ProviderName } from '../../domain/ids.ts'
import type { Committer } from './committer.ts'
import { putLane } from './lane.ts'
import type { SpoolState } from '../session-state.ts'

/** False where nothing is pending, or where there are as many backfill lanes as may be. */
export async function rotate(
  state: SpoolState,
  committer: Committer,
  provider: ProviderName,
  { backfillLanesMax }: { backfillLanesMax: number },
): Promise<boolean> {
  const lane = state.liveLanes.get(provider)
  if (lane === undefined || lane.committedSeq === lane.sealSeq) return false
  let backfill = 0
  for (const { role, provider: owner } of state.lanes.values())
    if (role.kind === 'backfill' && owner === provider) backfill += 1
  if (backfill >= backfillLanesMax) return false
  lane.role = { kind: 'backfill' }
  state.liveLanes.delete(provider)
  await committer.control({
    prepare: (ops) => putLane(lane, ops),
    committed() {},
  })
  return true
}
