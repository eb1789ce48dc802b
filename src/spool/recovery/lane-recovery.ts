// lane-recovery.ts: finds every lane of a store, and whose it is.
//
// A lane exists where anything shows it: its record, its totals, a chunk or a claim. Chunks are not read for
// that: one read behind each known lane finds the next number. A lane without a readable record gets provider
// and role from the high-water mark, else from the copy in its totals. Where both are lost it is kept as a
// backfill lane of a provider that no config names, and reported until an operator assigns it
// (lane-assignment.ts). Its number is never given again.

import type { State } from '../../domain/condition-state.ts'
import type { LaneId } from '../../domain/ids.ts'
import type { StoreEntry, StoreOp } from '../../storage/storage.ts'
import { isClaimOf } from '../batches/claim.ts'
import { readChunk } from '../chunk-log/chunk-codec.ts'
import { firstReadable, isCorruption } from '../chunk-log/damage-scan.ts'
import {
  isLane,
  isLaneKey,
  isSeqKey,
  keyAfter,
  laneOf,
  seqKey,
  table,
  tableRange,
} from '../chunk-log/key-layout.ts'
import { isUnknown, newLane, putLane, unknownProvider } from '../chunk-log/lane.ts'
import { laneRecord, totalsRecord, type LaneRecord, type TotalsRecord } from '../chunk-log/record-codec.ts'
import type { SpoolState } from '../session-state.ts'
import type { LaneRole } from '../views.ts'
import { reportUnreadable } from './repair.ts'
import { readTable, reportRecord, setRecordAside } from './table-records.ts'

/** What the table of totals holds for a lane; null if it is damaged. */
export type FoundTotals = ReadonlyMap<LaneId, TotalsRecord | null>

/** The records of the table of batches. */
export type FoundClaims = readonly StoreEntry[]

export type FoundLanes = {
  totals: FoundTotals
  claims: FoundClaims
  isTotalsTableWhole: boolean
  /** Chunks with a wrong checksum under the keys of lanes that nothing else shows. */
  misplaced: StoreEntry[]
}

/** More than the lanes of which an unreadable block holds the records. */
const lanesSkipped = 1000

/** Opens all lanes in memory, without their numbers. */
export async function findLanes(state: SpoolState, repairs: StoreOp[]): Promise<FoundLanes> {
  const records = await readLaneRecords(state, repairs)
  const totals = new Map<LaneId, TotalsRecord | null>()
  let isTotalsTableWhole = true
  const totalsRead = {
    range: tableRange(table.totals),
    table: 'totals' as const,
    isKey: isTotalsKey,
    repairs,
    skipped: () => void (isTotalsTableWhole = false),
  }
  for await (const [key, value] of readTable(state, totalsRead))
    if (isLane(laneOf(key))) totals.set(laneOf(key), totalsRecord.decode(value))
  const claims: StoreEntry[] = []
  const claimsRead = { range: tableRange(table.batches), table: 'batches' as const, isKey: isSeqKey, repairs }
  for await (const [key, value] of readTable(state, claimsRead)) {
    if (isClaimOf(key, value)) claims.push([key, value])
    else {
      // Its payloads are found without a batch, and are sent under a new batchId.
      reportRecord(state, 'batches', 'the key of the record of a batch is damaged; it was set aside')
      setRecordAside(key, value, repairs)
    }
  }
  const shown = [...totals.keys(), ...claims.map(([key]) => laneOf(key))]
  const known = new Set<LaneId>([...records.keys(), ...shown])
  const misplaced: StoreEntry[] = []
  for (const id of await lanesWithChunks(state, known, misplaced)) known.add(id)
  for (const id of [...known].sort((a, b) => a - b)) openFound(state, id, { records, totals }, repairs)
  state.nextLane = Math.max(state.nextLane, (await lastSetAside(state)) + 1)
  return { totals, claims, isTotalsTableWhole, misplaced }
}

/** The special totals have numbers that no lane has. */
function isTotalsKey(key: Buffer): boolean {
  return isLaneKey(key) || (key.length === 5 && (laneOf(key) === 0 || laneOf(key) > 2 ** 32 - 100))
}

/** Null for a damaged record. */
async function readLaneRecords(
  state: SpoolState,
  repairs: StoreOp[],
): Promise<Map<LaneId, LaneRecord | null>> {
  const records = new Map<LaneId, LaneRecord | null>()
  const read = {
    range: tableRange(table.lanes),
    table: 'lanes' as const,
    isKey: isLaneKey,
    repairs,
    skipped: () => void (state.nextLane += lanesSkipped),
  }
  for await (const [key, value] of readTable(state, read)) {
    const record = laneRecord.decode(value)
    if (record === null) setRecordAside(key, value, repairs)
    records.set(laneOf(key), record)
  }
  return records
}

/**
 * Lanes that have chunks and are not known: one read in each interval between the known ones. A chunk whose
 * checksum is wrong shows no lane: a bit of its key may have flipped.
 */
async function lanesWithChunks(
  state: SpoolState,
  known: ReadonlySet<LaneId>,
  misplaced: StoreEntry[],
): Promise<LaneId[]> {
  const { store } = state
  const found: LaneId[] = []
  const firstKey = (lane: number) => seqKey(table.chunks, lane as LaneId, 0)
  let from = tableRange(table.chunks).gte
  for (const next of [...[...known].sort((a, b) => a - b), 2 ** 31]) {
    const lt = firstKey(next)
    while (from.compare(lt) < 0) {
      const { entry } = await firstReadable(store, { gte: from, lt })
      if (entry === null) break
      const [key, value] = entry
      // A key of a wrong form shows no lane; what follows it may.
      const isChunk = isSeqKey(key) && readChunk(key, value) !== null
      if (isChunk) found.push(laneOf(key))
      else if (isSeqKey(key)) misplaced.push(entry)
      from = isChunk ? firstKey(laneOf(key) + 1) : keyAfter(key)
    }
    from = firstKey(next + 1)
  }
  return found
}

function openFound(
  state: SpoolState,
  id: LaneId,
  { records, totals }: { records: ReadonlyMap<LaneId, LaneRecord | null>; totals: FoundTotals },
  repairs: StoreOp[],
): void {
  const record = records.get(id) ?? null
  const { provider, role, openedAt, from } =
    record === null ? recordFor(state, id, totals) : withSource(record)
  const lane = newLane(id, provider, role, openedAt)
  lane.recorded = true
  state.lanes.set(id, lane)
  state.nextLane = Math.max(state.nextLane, id + 1)
  if (from === null) return
  const what = records.has(id) ? 'the record of the lane is damaged' : 'the record of the lane is missing'
  reportUnreadable(state, id, 0, `${what}; ${from}`)
  putLane(lane, repairs)
}

type Found = LaneRecord & { from: string | null }

function withSource(record: LaneRecord): Found {
  return { ...record, from: null }
}

function recordFor(state: SpoolState, id: LaneId, totals: FoundTotals): Found {
  const { found } = state.mark
  const openedAt = state.clock.now()
  const marked = found.kind === 'mark' ? found.mark.lanes.find((lane) => lane.id === id) : undefined
  if (marked !== undefined) {
    const { provider, role } = marked
    return { provider, role, openedAt, from: 'provider and role come from the high-water mark' }
  }
  const copy = totals.get(id)
  if (copy?.provider !== undefined && copy.role !== undefined)
    return {
      provider: copy.provider,
      role: copy.role,
      openedAt,
      from: 'provider and role come from its totals',
    }
  const provider = unknownProvider(id)
  const role: LaneRole = { kind: 'backfill' }
  return { provider, role, openedAt: 0, from: 'its provider is unknown; its payloads are kept' }
}

/** The highest number of a lane of which something was set aside; 0 if there is none. */
async function lastSetAside({ store }: SpoolState): Promise<number> {
  try {
    for await (const page of store.pages(tableRange(table.damaged), { reverse: true, limit: 1 }))
      for (const [key] of page) if (key.length >= 5 && isLane(laneOf(key))) return laneOf(key)
  } catch (error) {
    if (!isCorruption(error)) throw error
  }
  return 0
}

/**
 * Each provider has one live lane: the newest. Two of them are left where the record of a rotation is lost.
 */
export function chooseLiveLanes(state: SpoolState, repairs: StoreOp[]): void {
  const newestFirst = [...state.lanes.values()].sort((one, other) => other.id - one.id)
  for (const lane of newestFirst) {
    if (lane.role.kind !== 'live') continue
    if (!state.liveLanes.has(lane.provider)) {
      state.liveLanes.set(lane.provider, lane)
      continue
    }
    lane.role = { kind: 'backfill' }
    putLane(lane, repairs)
  }
}

/** The lanes that an operator must assign. */
export function* unknownLanes({ lanes }: Pick<SpoolState, 'lanes'>): Generator<State> {
  for (const lane of lanes.values())
    if (isUnknown(lane) && lane.openPayloads > 0)
      yield { code: 'LANE_UNKNOWN', lane: lane.id, payloads: lane.openPayloads }
}
