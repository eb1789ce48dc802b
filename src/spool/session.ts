// session.ts: opens and closes a session, which lasts from one opening of the store to its loss. After a
// failed write the handle of the store is unusable, so the session ends: everything in memory is discarded
// and read again from the disk.

import { codeOf, GatewayError } from '../std/gateway-error.ts'
import type { Store, StoreOp } from '../storage/storage.ts'
import { loadRefs } from './batches/seal.ts'
import { createCommitter } from './chunk-log/committer.ts'
import { createCompactor } from './chunk-log/compactor.ts'
import { isCorruption } from './chunk-log/damage-scan.ts'
import { createWindow, type HeldKeys } from './chunk-log/dedup-window.ts'
import { createGroup, expireKeys } from './chunk-log/group.ts'
import { expireJournal, newIntakeJournal } from './kept/intake-journal.ts'
import { deleteDrainedLanes } from './chunk-log/lane-cleanup.ts'
import { newReceiptQueue } from './chunk-log/receipt-queue.ts'
import { createChunkBuffers, createRecentChunks } from './chunk-log/recent-chunks/recent-chunks.ts'
import { createAttachments } from './kept/commit-attachments.ts'
import { createReservations } from './kept/entry-reservations.ts'
import type { HighWaterMark } from './high-water-mark/high-water-mark.ts'
import { createEviction } from './kept/eviction.ts'
import { createExchange } from './kept/exchange.ts'
import { endLateRecords, newStateEntries } from './kept/state-entries.ts'
import { newDeadLetterBytes, newStores } from './kept/store-use.ts'
import { recover } from './recovery/recovery.ts'
import type { Session, SpoolState } from './session-state.ts'
import { closedFault, explainDamage, explainRead, explainWrite } from './spool-errors.ts'
import type { SpoolDeps, SpoolOptions } from './spool-options.ts'
import type { SpoolCounters } from './views.ts'

export type SessionDeps = Pick<SpoolDeps, 'clock' | 'newId' | 'random' | 'emit' | 'isLate' | 'ourNow'> & {
  store: Store
  mark: HighWaterMark
  /** What CURRENT of the database named before it was opened; null if unknown. */
  manifestBefore: string | null
  counters: SpoolCounters
  heldKeys: HeldKeys
  /** After every durable write, and when the committer becomes congested or stops being so. */
  changed: () => void
  /** Acks were given; the first message of their write has waited so long. */
  acked: (waitMs: number) => void
  /** The store failed and the session is over. `unawaited` messages (QoS 0) were lost with it. */
  lost: (fault: GatewayError, unawaited: number) => void
}

/** Keys expire without traffic in writes of at most this many records. */
const expiredPerRunMax = 10_000

export async function openSession(deps: SessionDeps, options: SpoolOptions): Promise<Session> {
  const { store } = deps
  const state = newState(deps, options)
  await recover(state, deps.manifestBefore)
  const committer = createCommitter(
    {
      store,
      clock: deps.clock,
      mark: state.mark,
      makeGroup: () => createGroup(state, createAttachments),
      explain: explainWrite,
      changed: deps.changed,
      acked: deps.acked,
      failed: deps.lost,
    },
    options,
  )
  const compactor = createCompactor(state, (error) => void failRead(error))
  const base = Object.assign(state, { committer, compactor, reservations: createReservations(), failRead })
  const exchanging = Object.assign(base, { exchange: createExchange(base) })
  const session = Object.assign(exchanging, { eviction: createEviction(exchanging) })
  // The age of the oldest payload is known from the start. One chunk of each: there can be many lanes.
  for (const lane of session.lanes.values())
    if (lane.refsEnd < lane.committedSeq) await loadRefs(session, lane, 1)
  return session

  /** A failed read is a failure of the store. A programming error is returned unchanged. */
  function failRead(error: unknown): unknown {
    const code = codeOf(error)
    if (error instanceof GatewayError || code === undefined) return error
    // The store was closed during the read.
    if (code === 'LEVEL_DATABASE_NOT_OPEN' || code === 'LEVEL_ITERATOR_NOT_OPEN') return closedFault()
    // Reopening would not repair it, and the rest of the spool works.
    if (isCorruption(error)) return explainDamage(error)
    const fault = explainRead(error)
    committer.fail(fault)
    return fault
  }
}

function newState(deps: SessionDeps, options: SpoolOptions): SpoolState {
  const { store, mark, clock, newId, random, emit, counters, isLate = () => false } = deps
  const { ourNow = clock.now } = deps
  const buffers = createChunkBuffers(options.buffers)
  const firstDeadLetter = Math.floor(random() * 2 ** 40)
  return {
    store,
    mark,
    clock,
    newId,
    emit,
    isLate,
    ourNow,
    options,
    counters,
    window: createWindow(options.window, deps.heldKeys),
    recent: createRecentChunks({ bytesMax: options.recentBytesMax }, buffers),
    buffers,
    lanes: new Map(),
    liveLanes: new Map(),
    nextLane: 1,
    nextWindowRecord: 0,
    committedWindowRecord: 0,
    deadLetters: { count: 0, bytes: 0, bytesIn: newDeadLetterBytes(), drainedBytes: 0 },
    nextDeadLetter: firstDeadLetter,
    firstDeadLetter,
    openBytes: 0,
    stateEntries: newStateEntries(options.lateRecords),
    receipts: newReceiptQueue(),
    journal: newIntakeJournal(),
    shelves: new Map(),
    stores: newStores(options),
    expired: { records: 0, last: 0 },
  }
}

/** Deletes what expired in the dedup window and the journal although no message comes, and drained lanes. */
export async function upkeep(session: Session): Promise<void> {
  const { committer, compactor, clock } = session
  const expire = (ops: StoreOp[]) => {
    expireKeys(session, clock.monotonic(), expiredPerRunMax, ops)
    expireJournal(session, expiredPerRunMax, ops)
  }
  await committer.commit({ prepare: expire }, Infinity)
  compactor.afterExpiry()
  await deleteDrainedLanes(session)
}

/** Commits the open group and closes the store. */
export async function closeSession(session: Session): Promise<void> {
  const { committer, compactor, eviction, mark, store, stateEntries } = session
  eviction.end()
  await eviction.idle()
  await committer.idle()
  // Fewer records for the next start. Where it fails, which the committer reports, they stay in force.
  await committer.commit({ prepare: (ops) => endLateRecords(stateEntries, ops) }).catch(() => undefined)
  committer.fail(closedFault())
  await compactor.idle()
  mark.close()
  await store.close()
}
