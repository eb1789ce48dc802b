// conservation-audit.ts: counts lanes, shelves and state from their records, and reports where the totals
// disagree (invariant 6).

import { isCorruption } from '../chunk-log/damage-scan.ts'
import { countStateEntries } from '../kept/state-entries.ts'
import type { Session } from '../session-state.ts'
import { countByWalk, walkableLane, walkableShelf, type Walkable } from './open-count.ts'

/** Ends early when `signal` aborts. Rejects if a read fails. */
export async function audit(session: Session, signal: AbortSignal): Promise<void> {
  const { lanes, shelves, stateEntries, committer, emit, store } = session
  for (const lane of lanes.values()) {
    const count = await walked(walkableLane(lane))
    if (count !== null && count.appended !== count.settled + count.open)
      emit({ kind: 'conservation_broken', lane: lane.id, ...count })
  }
  for (const shelf of shelves.values()) {
    const count = await walked(walkableShelf(shelf))
    if (count === null || count.appended === count.settled + count.open) continue
    const known = count.appended - count.settled
    emit({ kind: 'records_unbalanced', table: 'kept', name: shelf.name, known, found: count.open })
  }
  // The snapshot of the read and the totals belong to the same moment.
  const look = () => ({ ...stateEntries.written, counting: countStateEntries(store) })
  const seen = await committer.betweenWrites(look, signal)
  const found = seen === null ? null : await readable(seen.counting)
  if (seen === null || found === null) return
  const { entries: known, bytes } = seen
  if (known !== found.entries || bytes !== found.bytes)
    emit({ kind: 'records_unbalanced', table: 'state', name: '', known, found: found.entries })

  async function walked(walkable: Walkable) {
    return signal.aborted ? null : readable(countByWalk(session, walkable, signal))
  }

  /** Null where a block is damaged: its readers report it, and the other counts are still worth having. */
  async function readable<Count>(count: Promise<Count | null>): Promise<Count | null> {
    try {
      return await count
    } catch (error) {
      if (isCorruption(error)) return null
      throw session.failRead(error)
    }
  }
}
