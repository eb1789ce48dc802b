// conservation-audit.ts: counts lanes, shelves, dead letters and state from their records, and reports where
// the totals disagree (invariant 6). Totals of kept messages and dead letters are corrected then, and what is
// missing is counted: it is reported once and not at every start. Pending payloads that are missing or
// damaged are counted now, and not when the head of their lane gets there, which can be days later.

import type { EventOf } from '../../domain/event.ts'
import type { StoreOp } from '../../storage/storage.ts'
import { setAsideAhead } from '../batches/damage-quarantine.ts'
import { isCorruption } from '../chunk-log/damage-scan.ts'
import { countDeadLetters, putDeadLetterTotals } from '../kept/dead-letter-table.ts'
import { correctShelf } from '../kept/message-shelf.ts'
import { countStateEntries } from '../kept/state-entries.ts'
import { removeFromStore } from '../kept/store-use.ts'
import type { Session, Shelf } from '../session-state.ts'
import { countByWalk, walkableLane, walkableShelf, type Walkable } from './open-count.ts'

type Unbalanced = Omit<EventOf<'records_unbalanced'>, 'kind'>

/** Ends early when `signal` aborts. Rejects if a read or a correction fails. */
export async function audit(session: Session, signal: AbortSignal): Promise<void> {
  const { lanes, shelves, stateEntries, deadLetters, counters, committer, emit, store } = session
  // The small tables first: until then their counters may be wrong.
  await auditDeadLetters()
  for (const shelf of shelves.values()) await auditShelf(shelf)
  for (const lane of lanes.values()) {
    const count = await walked(walkableLane(lane))
    if (count === null) continue
    const { appended, settled, open, holes } = count
    if (appended !== settled + open)
      emit({ kind: 'conservation_broken', lane: lane.id, appended, settled, open })
    for (const hole of holes) if (!signal.aborted) await setAsideAhead(session, lane, hole)
  }
  await auditState()

  async function auditDeadLetters(): Promise<void> {
    const look = () => ({
      count: deadLetters.count,
      bytes: deadLetters.bytes,
      counting: countDeadLetters(store),
    })
    const known = await committer.betweenWrites(look, signal)
    const found = known === null ? null : await readable(known.counting)
    if (known === null || found === null || known.count === found.count) return
    await correct({ table: 'dead letters', name: '', known: known.count, found: found.count }, (ops) => {
      deadLetters.count -= known.count - found.count
      deadLetters.bytes -= known.bytes - found.bytes
      deadLetters.bytesIn.dead_letters -= known.bytes - found.bytes
      removeFromStore(session.stores.dead_letters, known.bytes - found.bytes)
      putDeadLetterTotals(session, ops)
    })
  }

  async function auditShelf(shelf: Shelf): Promise<void> {
    const count = await walked(walkableShelf(shelf))
    if (count === null || count.appended === count.settled + count.open) return
    const known = count.appended - count.settled
    const missing = { messages: known - count.open, bytes: count.knownBytes - count.foundBytes }
    await correct({ table: 'kept', name: shelf.name, known, found: count.open }, (ops) =>
      correctShelf(session, shelf, missing, ops),
    )
  }

  async function auditState(): Promise<void> {
    // The snapshot of the read and the totals belong to the same moment.
    const look = () => ({ ...stateEntries.written, counting: countStateEntries(store) })
    const seen = await committer.betweenWrites(look, signal)
    const found = seen === null ? null : await readable(seen.counting)
    if (seen === null || found === null) return
    const { entries: known, bytes } = seen
    if (known !== found.entries || bytes !== found.bytes)
      emit({ kind: 'records_unbalanced', table: 'state', name: '', known, found: found.entries })
  }

  /** By the difference: the totals may have changed since the count. */
  async function correct(unbalanced: Unbalanced, prepare: (ops: StoreOp[]) => void): Promise<void> {
    if (signal.aborted) return
    await committer.commit({ prepare })
    counters.recordsMissing += Math.max(0, unbalanced.known - unbalanced.found)
    emit({ kind: 'records_unbalanced', ...unbalanced })
  }

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
