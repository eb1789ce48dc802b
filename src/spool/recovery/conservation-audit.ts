// conservation-audit.ts: counts lanes, shelves and state by walking over them, and reports where the sums disagree (invariant 6).

import { codeOf } from '../../std/gateway-error.ts'
import type { Committer } from '../chunk-log/committer.ts'
import { countParts } from '../kept/state-entries.ts'
import type { SpoolState } from '../session-state.ts'
import { quietly, walk, walkedLane, walkedShelf, type WalkDeps, type Walked } from './open-count.ts'

type Deps = {
  state: SpoolState
  committer: Committer
  /** What to throw after a failed read. */
  blame: (error: unknown) => unknown
}

export function createAudit({ state, committer, blame }: Deps): (signal: AbortSignal) => Promise<void> {
  const { store, clock, emit } = state

  return async (signal) => {
    const deps: WalkDeps = { store, clock, signal, quiet: (look) => committer.quiet(look) }
    for (const lane of state.lanes.values()) {
      const count = await walked(deps, walkedLane(lane))
      if (count !== null && count.appended !== count.settled + count.open)
        emit({ kind: 'conservation_broken', lane: lane.id, ...count })
    }
    for (const shelf of state.shelves.values()) {
      const count = await walked(deps, walkedShelf(shelf))
      if (count !== null && count.appended !== count.settled + count.open)
        unbalanced('kept', shelf.name, count.appended - count.settled, count.open)
    }
    const seen = await quietly(deps, () => ({ ...state.parts.written, found: countParts(store) }))
    const found = seen === null ? null : await readable(seen.found)
    if (seen === null || found === null) return
    if (seen.entries !== found.entries || seen.bytes !== found.bytes)
      unbalanced('state', '', seen.entries, found.entries)
  }

  function walked(deps: WalkDeps, over: Walked) {
    return deps.signal.aborted ? null : readable(walk(deps, over))
  }

  /** A damaged block is reported by whoever needs what it holds: no count is better than none of the others. */
  async function readable<Count>(count: Promise<Count | null>): Promise<Count | null> {
    try {
      return await count
    } catch (error) {
      if (codeOf(error) === 'LEVEL_CORRUPTION') return null
      throw blame(error)
    }
  }

  function unbalanced(table: 'kept' | 'state', name: string, known: number, found: number): void {
    emit({ kind: 'records_unbalanced', table, name, known, found })
  }
}
