// session-state.ts: what one opening of the store knows in memory. Everything in it comes from the database
// (recovery.ts) or is about to be written to it; it is thrown away when the store fails.

import type { Clock } from '../std/clock.ts'
import type { LaneId, NewId, ProviderName } from '../domain/ids.ts'
import type { Emit } from '../domain/event.ts'
import type { ShelfKind, ShelfName } from '../domain/message.ts'
import type { Store } from '../storage/storage.ts'
import { newLane, type Lane } from './chunk-log/lane.ts'
import type { Parts } from './kept/state-entries.ts'
import type { Receipts } from './chunk-log/receipt-queue.ts'
import type { RecentChunks } from './chunk-log/recent-chunks.ts'
import type { Shelf } from './kept/message-shelf.ts'
import type { IsLate, LaneRole } from './spool.ts'
import type { DedupWindow } from './chunk-log/dedup-window.ts'

/** Counted since the process started, when durable; survives reopening. */
export type SpoolCounters = {
  payloads: number
  duplicates: number
  delivered: number
  retried: number
  dead: number
  damaged: number
  /** Messages that were put on a shelf, and kept messages and dead letters that exchanges took away. */
  kept: number
  taken: number
  receiptsDropped: number
  /** Payloads that exchanges appended; they stand in `payloads` as well. */
  exchanged: number
}

export function newCounters(): SpoolCounters {
  return {
    payloads: 0,
    duplicates: 0,
    delivered: 0,
    retried: 0,
    dead: 0,
    damaged: 0,
    kept: 0,
    taken: 0,
    exchanged: 0,
    receiptsDropped: 0,
  }
}

export type SpoolState = {
  readonly store: Store
  readonly clock: Clock
  readonly newId: NewId
  readonly emit: Emit
  readonly isLate: IsLate
  readonly counters: SpoolCounters
  readonly window: DedupWindow
  readonly recent: RecentChunks
  readonly lanes: Map<LaneId, Lane>
  readonly liveLanes: Map<ProviderName, Lane>
  nextLane: number
  nextSeen: number
  /** Dead letters that stand in the database. */
  letters: { letters: number; bytes: number }
  /** Bytes of dead letters that were taken away since the disk was last given back. */
  lettersDrainedBytes: number
  /** Part of a dead letter's key; starts at random, so that a clock that steps back cannot make two alike. */
  nextLetter: number
  /** Payload bytes that are open, uncommitted ones included. */
  openBytes: number
  readonly parts: Parts
  readonly receipts: Receipts
  readonly shelves: Map<ShelfName, Shelf>
  /** Bytes of kept messages, uncommitted ones included. */
  readonly keptBytes: Record<ShelfKind, number>
  /** Records of the dedup window that were deleted since the disk was given back, and the last one's number. */
  forgotten: { records: number; last: number }
}

export function noteForgotten(state: SpoolState, numbers: readonly number[]): void {
  const last = numbers[numbers.length - 1]
  if (last === undefined) return
  state.forgotten.records += numbers.length
  state.forgotten.last = last
}

/** What counts towards the limit of the spool (invariant 8), uncommitted included. */
export function usedBytes({ openBytes, letters, keptBytes, parts, receipts }: SpoolState): number {
  return openBytes + letters.bytes + keptBytes.quarantine + keptBytes.deferred + parts.bytes + receipts.bytes
}

/** Opens a lane in memory. Whoever does this writes its record in the same write as its first chunk. */
export function openLane(state: SpoolState, provider: ProviderName, role: LaneRole): Lane {
  const lane = newLane(state.nextLane as LaneId, provider, role, state.clock.now())
  state.nextLane += 1
  state.lanes.set(lane.id, lane)
  if (role.kind === 'live') state.liveLanes.set(provider, lane)
  return lane
}

/** The backfill lane that late payloads go to: the one that was opened or rotated last. */
export function youngestBackfill(state: SpoolState, provider: ProviderName): Lane | undefined {
  let youngest: Lane | undefined
  for (const lane of state.lanes.values()) {
    if (lane.role.kind !== 'backfill' || lane.provider !== provider) continue
    if (youngest === undefined || lane.id > youngest.id) youngest = lane
  }
  return youngest
}

export function findRetryLane(
  state: SpoolState,
  provider: ProviderName,
  schedule: string,
  step: number,
): Lane | null {
  for (const lane of state.lanes.values()) {
    const { role } = lane
    if (role.kind !== 'retry' || lane.provider !== provider) continue
    if (role.schedule === schedule && role.step === step) return lane
  }
  return null
}
