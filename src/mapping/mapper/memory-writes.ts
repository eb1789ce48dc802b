// memory-writes.ts: adds the changes of the memory to what is committed with a message or a tick.

import type { Memory } from '../memory/memory.ts'
import type { StateChanges } from '../state/state-changes.ts'
import type { MapResult } from '../types.ts'
import type { RecordMemory } from './record-memory.ts'

const nothing: StateChanges = { payloads: [], writes: [], closed: 0, unsent: [] }

export function createMemoryWrites(
  memory: Pick<Memory, 'takeWrites' | 'takeCleanup'>,
  records: Pick<RecordMemory, 'ended'>,
) {
  return { ofResult, ofChanges, ofTick }

  function ofResult(result: MapResult): MapResult {
    records.ended(result)
    const writes = memory.takeWrites()
    if (writes !== null) result.writes = result.writes === undefined ? writes : [...result.writes, ...writes]
    return result
  }

  function ofChanges(changes: StateChanges): StateChanges {
    const writes = memory.takeWrites()
    return writes === null ? changes : { ...changes, writes: [...changes.writes, ...writes] }
  }

  /** Deletes the entries of sources that do not exist any more, too. */
  function ofTick(closed: StateChanges | null): StateChanges | null {
    const cleanup = memory.takeCleanup()
    if (cleanup.length === 0) return closed === null ? null : ofChanges(closed)
    const changes = closed ?? nothing
    return ofChanges({ ...changes, writes: [...changes.writes, ...cleanup] })
  }
}
