// state.ts: what one opening of the store knows in memory. Everything in it comes from the database
// (recover.ts) or is about to be written to it; it is thrown away when the store fails.

import type { Clock } from '../std/clock.ts'
import type { LaneId, NewId, ProviderName } from '../domain/ids.ts'
import type { Emit } from '../domain/event.ts'
import type { Store } from '../storage/storage.ts'
import { newLane, type Lane } from './lane.ts'
import type { RecentChunks } from './recent.ts'
import type { Role } from './spool.ts'
import type { DedupWindow } from './window.ts'

/** Counted since the process started, when durable; survives reopening. */
export type SpoolCounters = {
  payloads: number
  copies: number
  delivered: number
  retried: number
  dead: number
  damaged: number
}

export type SpoolState = {
  readonly store: Store
  readonly clock: Clock
  readonly newId: NewId
  readonly emit: Emit
  readonly counters: SpoolCounters
  readonly window: DedupWindow
  readonly recent: RecentChunks
  readonly lanes: Map<LaneId, Lane>
  readonly liveLanes: Map<ProviderName, Lane>
  nextLane: number
  nextSeen: number
  /** Dead letters that stand in the database. */
  letters: { letters: number; bytes: number }
  /** Part of a dead letter's key; starts at random, so that a clock that steps back cannot make two alike. */
  nextLetter: number
  /** Payload bytes that are open, uncommitted ones included. */
  openBytes: number
  /** Records of the dedup window that were deleted since the disk was given back, and the last one's number. */
  forgotten: { records: number; last: number }
}

export function noteForgotten(state: SpoolState, numbers: readonly number[]): void {
  const last = numbers[numbers.length - 1]
  if (last === undefined) return
  state.forgotten.records += numbers.length
  state.forgotten.last = last
}

/** Opens a lane in memory. Whoever does this writes its record in the same write as its first chunk. */
export function openLane(state: SpoolState, provider: ProviderName, role: Role): Lane {
  const lane = newLane(state.nextLane as LaneId, provider, role, state.clock.now())
  state.nextLane += 1
  state.lanes.set(lane.id, lane)
  if (role.kind === 'live') state.liveLanes.set(provider, lane)
  return lane
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
