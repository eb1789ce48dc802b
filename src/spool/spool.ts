// spool.ts: the durable queue between ingest and delivery. Entry file of this folder.
//
// Guarantees
//   An ack is given after the fsync of the write that holds the message, in order of arrival.
//   An acknowledged message is in exactly one place until the service has accepted it, or its source has it
//   again: a lane, a sealed batch, the mapping state, a shelf, or a dead letter. kill -9, a power cut, a full
//   disk or a failed write change nothing about it.
//   A sealed batch has the same batchId and the same bytes at every submission, over every crash.
//   A payload that a device sends again is acknowledged and not stored again, within the dedup window, and as
//   long as its source has no acknowledgement where that comes after the delivery (`holdKeys`).
//
// Storage (key-layout.ts has the tables, chunk-codec.ts and record-codec.ts the bytes)
//   A lane is a FIFO of one provider's payloads, numbered from 0 and never twice. What one commit adds to a
//   lane is one chunk, under one key. A batch is a claim on a run of chunks: sealing and settling move
//   nothing. Other changes move nothing either. A live lane becomes a backfill lane by its record, a batch is
//   split or changes its operation by its claim, and a drained backfill lane is deleted.
//   Beside the lanes are mapping state, whole messages on shelves, dead letters, and receipts of settles.
//
//     append, addDeadLetter, putState, keepMessage, endMessage -> group --+
//     exchange --------------------------------------------------> group --+-> committer -> one atomic
//     seal, settle, rotate, reseal, setOperation, setHeld, returnPending --+   write, fsync -> acks
//
//   chunk-log/            chunks, lanes, the committer
//   high-water-mark/      counts writes beside the database, which shows whether it lost some
//   batches/              seal, load, settle, reseal, return
//   kept/                 shelves, dead letters, mapping state, exchanges
//   opening/              checks the files before LevelDB opens them
//   recovery/             reads a store after a start or a failure
//   salvage/              checks a spool, and reads a damaged one
//   spool-repair/         makes a spool with damaged files one that starts again
//   snapshot/             copies of a whole spool, and the way back
//   message-intake.ts     the calls of the hot path
//   intake-limits.ts      whether messages may come in
//   session.ts            one opening of the store
//   store-supervisor.ts   opens the store again after a failure
//   write-watch.ts        sees writes that hang or take long
//
// Failures
//   the process dies      recovery reads lanes, totals, claims and the window, but no payloads
//   a write fails         nothing of it is acknowledged. The handle of the store is unusable, so the store is
//                         closed, and opened again after a pause. Everybody who waits gets the fault.
//   a limit is reached    intake is held; settles and exchanges continue in the reserve. It resumes
//   writes are missing    what the high-water mark counts and the database lacks is reported and counted
//   a record is damaged   it is set aside unchanged, reported and counted, and the rest continues
//   files are damaged     SPOOL_DAMAGED: they are not opened until `spool repair` has made them whole. The
//                         damaged files are kept
//
// Trade-offs: a group costs one fsync however small it is, so a single message waits for the disk. Keys leave
// the dedup window after ten minutes or a million others, so a later duplicate is stored again.

import { createBatchCalls, createReturnCalls } from './batches/batches.ts'
import type { Lane } from './chunk-log/lane.ts'
import { laneView } from './lane-view.ts'
import { forgetting, readReceipts } from './chunk-log/receipt-queue.ts'
import { createIntakeLimits } from './intake-limits.ts'
import { createKeptCalls } from './kept/kept.ts'
import { storeLimits } from './kept/store-limits.ts'
import { createMessageIntake } from './message-intake.ts'
import { assignLane } from './recovery/lane-assignment.ts'
import { createWalkCalls } from './salvage/live-walk.ts'
import type { Session } from './session-state.ts'
import type { SpoolDeps, SpoolOptions } from './spool-options.ts'
import { newCounters, totalsOf } from './spool-totals.ts'
import { createSnapshotCalls } from './snapshot/live-snapshot.ts'
import { superviseStore } from './store-supervisor.ts'
import type { Batch, Spool, SpoolListener } from './types.ts'
import { createWriteWatch } from './write-watch.ts'

export type * from './types.ts'
export type * from './return-calls.ts'
export type * from './views.ts'
export type { IsLate, SpoolDeps, SpoolOptions } from './spool-options.ts'
export type { StoreMemory } from './opening/known-store.ts'
export { formatVersion } from './chunk-log/record-codec.ts'
export { initSpool, isSpoolAt, missingStoreFault } from './opening/spool-marker.ts'
export { storeChanged, storeSignature } from './opening/store-watch.ts'
export { isUnknown } from './chunk-log/lane.ts'
export { openRestingSpool, openSalvage, type RestingSpool, type Salvage } from './salvage/salvage.ts'
export {
  repairSpool,
  type MergeReport,
  type RepairOptions,
  type RepairReport,
} from './spool-repair/spool-repair.ts'
export { restoreSpool, type RestoreReport } from './snapshot/restore.ts'
export { snapshotResting } from './snapshot/resting-snapshot.ts'
export type { Salvaged } from './salvage/salvaged-records.ts'

/**
 * No payload waits whose delivery makes room, so work on what is kept must go on: that does. It takes what
 * it replaces in the same write.
 */
export function isFullOfKept(spool: Pick<Spool, 'holdReason' | 'totals'>): boolean {
  return spool.holdReason() === 'spool_full' && spool.totals().openBytes === 0
}

export async function openSpool(deps: SpoolDeps, options: SpoolOptions): Promise<Spool> {
  const listeners = new Set<SpoolListener>()
  const counters = newCounters()
  const heldKeys = { from: Infinity }
  const limits = createIntakeLimits({ ...deps, changed: intakeChanged }, options)
  let busy = false
  let congested = false
  let seen = { payloads: 0, kept: 0 }
  const writes = createWriteWatch({
    ...deps,
    ended: (tookMs) => notify((listener) => listener.writeEnded?.(tookMs)),
  })
  const supervised = { ...deps, counters, limits, heldKeys, writes, changed, acked, notify }
  const store = await superviseStore(supervised, options)
  const { run, peek } = store

  function notify(call: (listener: SpoolListener) => void): void {
    for (const listener of listeners) call(listener)
  }

  function intakeChanged(): void {
    notify((listener) => listener.intakeChanged?.())
  }

  /** A commit, or the congestion changed. */
  function changed(session: Session): void {
    updateCongestion(session)
    limits.update(session)
    session.eviction.check()
    const { payloads, kept } = counters
    const before = seen
    seen = { payloads, kept }
    const added = payloads - before.payloads
    if (added !== 0) notify((listener) => listener.payloadsAdded?.(added))
    if (kept !== before.kept) notify((listener) => listener.messagesKept?.())
  }

  function acked(waitMs: number): void {
    counters.ackWaitMs = Math.round(waitMs)
    notify((listener) => listener.acksGiven?.(waitMs))
  }

  function updateCongestion({ committer, eviction }: Session): void {
    const isCongested = committer.congested() || eviction.isBehind()
    if (isCongested === congested && committer.busy() === busy) return
    congested = isCongested
    busy = committer.busy()
    intakeChanged()
  }

  function lanesNow(): Lane[] {
    return [...(peek()?.lanes.values() ?? [])]
  }

  return {
    ...createMessageIntake(store, heldKeys, {
      ended: limits.updateAfterMessage,
      keptEnded(session) {
        limits.updateAfterKept(session)
        updateCongestion(session)
      },
    }),
    ...createBatchCalls(store),
    ...createReturnCalls(store, heldKeys),
    ...createKeptCalls(store),
    ...createWalkCalls(store),
    ...createSnapshotCalls(store, options),
    async assignLane(lane, provider) {
      const payloads = await run((session) => assignLane(session, lane, provider))
      notify((listener) => listener.laneAssigned?.(provider))
      return payloads
    },
    receipts: (bounds) =>
      run((session) => readReceipts(session.receipts, session.store, { ...bounds, counters })),
    forgetReceipts: (n) =>
      run(async ({ committer, compactor, receipts }) => {
        await committer.commit(forgetting(receipts, n), Infinity)
        compactor.afterForgottenReceipts()
      }),
    previousEnd: store.previousEnd,
    holdReason() {
      return limits.holdReason()
    },
    busy() {
      return busy
    },
    congested() {
      return congested
    },
    commits() {
      return peek()?.committer.commits() ?? 0
    },
    nextDeadLetter() {
      return peek()?.nextDeadLetter ?? null
    },
    deadLettersFull() {
      return limits.stores.isFull('dead_letters')
    },
    isFull: limits.stores.isFull,
    holds(name, client, device) {
      const session = peek()
      return session !== null && limits.stores.holds(session, name, client, device)
    },
    lanes: () => lanesNow().map(laneView),
    batches: () => lanesNow().flatMap(batchesOf),
    listen(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    totals() {
      const { bytesMax, reserveBytes, freeBytesMin } = options
      return totalsOf(peek(), counters, {
        bytesMax,
        reserveBytes,
        diskBytes: limits.diskBytes(),
        freeBytes: limits.freeBytes(),
        freeBytesMin,
        limits: storeLimits(options),
      })
    },
    writeState: writes.state,
    isWriting: writes.isWriting,
    *states() {
      for (const one of [store, limits, writes]) yield* one.states()
    },
    close: store.close,
  }
}

function batchesOf({ claims }: Lane): Batch[] {
  return [...claims.values()].map(({ batch }) => batch).sort((a, b) => a.firstSeq - b.firstSeq)
}
