// waits-for.ts: what the oldest unacknowledged messages wait for, in words: a batch, a lane, a shelf.

import { quote } from '../../std/quote.ts'
import type { Batch, LaneView, ShelfView } from '../../spool/spool.ts'
import { blocker, type Places, type Unit } from './custody-units.ts'

export function waitsFor(unit: Unit, places: Places, batches: () => readonly Batch[]): string | null {
  if (unit.place === 'done') return null
  const what = blocker(unit, places)
  if (what === null) return null
  if (typeof what === 'object') return 'shelf' in what ? shelfText(what) : laneText(what, batches())
  if (what === 'records') return 'open records of the mapping'
  if (what === 'dead_letters') return 'copies of dead letters in the engine'
  return 'a write of the spool'
}

function shelfText({ shelf, messages }: ShelfView): string {
  return `${messages} messages on the shelf ${quote(shelf, 80)}`
}

function laneText({ id, provider, role, lowSeq, open }: LaneView, batches: readonly Batch[]): string {
  const kind = role.kind === 'retry' ? `retry lane (step ${role.step + 1})` : `${role.kind} lane`
  const lane = `the ${kind} of provider ${quote(provider, 64)}`
  const batch = batches.find((one) => one.lane === id && one.firstSeq === lowSeq)
  if (batch === undefined) return `${open} payloads of ${lane}`
  const held = batch.held === null ? '' : `, which is held (${batch.held.reason})`
  return `batch ${batch.batchId} of ${lane}${held}`
}
