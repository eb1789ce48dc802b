// lane-numbers.ts: how far a lane was numbered, and what of it is settled.
//
//   nextSeq   the largest of: totals, end of the last chunk, end of the last claim, high-water mark
//   sealSeq   the larger of: totals, end of the last claim
//
//   totals lost          they are made anew (lane-recount.ts). Without the mark the next number keeps a
//                        distance that is larger than what can have been given
//   newest chunk under   it gets its key back: the checksum shows which bit has flipped
//   another key
//   last chunk damaged   what is known otherwise shows its end. If nothing does, it is set aside now, and the
//                        next number keeps a distance that no chunk can span; the distance is unexplained
//   tail missing         a gap (missing-writes.ts)

import type { LaneId } from '../../domain/ids.ts'
import type { StoreOp, StoreRange } from '../../storage/storage.ts'
import { keyBeforeFlip, plausibleCount, readChunk } from '../chunk-log/chunk-codec.ts'
import { firstReadable, isCorruption, readOne, scan } from '../chunk-log/damage-scan.ts'
import { isSeqKey, laneKey, laneOf, seqKey, seqOf, seqRange, table } from '../chunk-log/key-layout.ts'
import { emptySettled, putTotals, type Lane } from '../chunk-log/lane.ts'
import { claimRecord, totalsRecord, type TotalsRecord } from '../chunk-log/record-codec.ts'
import type { MarkedLane } from '../high-water-mark/high-water-mark.ts'
import type { SpoolState } from '../session-state.ts'
import type { FoundLanes } from './lane-recovery.ts'
import { addGap, raiseNumbers } from './missing-writes.ts'
import { recountLane, type LostTotals, type Recount } from './lane-recount.ts'
import { reportUnreadable, setBadAside } from './repair.ts'
import { reportRecord, setMisplacedAside } from './table-records.ts'

/** The last chunk of a lane as it is on the disk. */
export type LaneEnd = {
  /** End of the last chunk that can be read. */
  seq: number
  bytes: number
  /** First numbers of the damaged chunks behind that. */
  damaged: number[]
  /** A block behind that cannot be read. */
  isUnreadable: boolean
  /** Null unless the totals were lost. */
  recount: Recount | null
}

/** More payloads than one chunk can hold, or an unreadable part of a table. */
const damagedStride = 1_000_000

const lastSeq = Number.MAX_SAFE_INTEGER

/** Reads the numbers of all lanes; returns their ends. */
export async function readNumbers(
  state: SpoolState,
  found: FoundLanes,
  repairs: StoreOp[],
): Promise<ReadonlyMap<Lane, LaneEnd>> {
  const claimEnds = endsOfClaims(found)
  const ends = new Map<Lane, LaneEnd>()
  for (const lane of state.lanes.values()) ends.set(lane, await endOf(state, lane))
  await putNewestBack(state, { found, claimEnds, ends }, repairs)
  for (const [lane, end] of ends) {
    const totals = await totalsOf(state, lane, found)
    const record = typeof totals === 'string' ? null : totals
    lane.settled = { ...emptySettled(), ...record?.settled }
    lane.sealSeq = record?.sealSeq ?? 0
    lane.gapPayloads = record?.gapPayloads ?? 0
    const { numbered = 0, sealed = 0 } = claimEnds.get(lane.id) ?? {}
    lane.nextSeq = Math.max(record?.nextSeq ?? 0, end.seq, numbered)
    lane.nextBytes = Math.max(record?.nextBytes ?? 0, end.bytes)
    if (typeof totals !== 'string') continue
    const marked = markedLane(state, lane.id) ?? null
    const shown = { lost: totals, claims: claimsOf(found, lane.id), claimsEnd: sealed, marked }
    end.recount = await recountLane(state, lane, shown)
    putTotals(lane, repairs)
  }
  return ends
}

/**
 * A chunk whose key has a flipped bit is counted as missing where it was, by what was written behind it.
 * Behind the newest chunk of a lane nothing was: it gets its key back.
 */
async function putNewestBack(
  state: SpoolState,
  { found, claimEnds, ends }: { found: FoundLanes; claimEnds: ClaimEnds; ends: ReadonlyMap<Lane, LaneEnd> },
  repairs: StoreOp[],
): Promise<void> {
  const { store } = state
  const damaged = [...found.misplaced]
  for (const [lane, end] of ends)
    for (const seq of end.damaged) {
      const key = seqKey(table.chunks, lane.id, seq)
      const { value } = await readOne(store, key)
      if (value !== undefined) damaged.push([key, value])
    }
  const entries = damaged.map(([key, value]) => ({ key, value, before: keyBeforeFlip(key, value) }))
  entries.sort((one, other) => (one.before ?? one.key).compare(other.before ?? other.key))
  for (const { key, value, before } of entries) {
    const lane = before === null ? undefined : state.lanes.get(laneOf(before))
    const end = lane === undefined ? undefined : ends.get(lane)
    if (before !== null && lane !== undefined && end !== undefined && isPending(lane, end, before)) {
      await store.write(
        [
          { type: 'put', key: before, value },
          { type: 'del', key },
        ],
        { sync: true },
      )
      const former = ends.get(state.lanes.get(laneOf(key)) ?? lane)
      if (former !== undefined) former.damaged = former.damaged.filter((seq) => seq !== seqOf(key))
      const behind = end.damaged.filter((seq) => seq > seqOf(before))
      addEnd(end, before, value)
      end.damaged = behind
      reportRecord(state, 'chunks', 'the key of the newest chunk of a lane was damaged; it has its key again')
    } else if (found.misplaced.some(([one]) => one === key)) setMisplacedAside(state, key, value, repairs)
  }

  function isPending({ id }: Lane, { seq, damaged }: LaneEnd, before: Buffer): boolean {
    const totals = found.totals.get(id)
    const firstSeq = seqOf(before)
    // Only the totals say what was settled.
    if (totals === null || (totals === undefined && firstSeq > 0)) return false
    const sealed = Math.max(totals?.sealSeq ?? 0, claimEnds.get(id)?.sealed ?? 0)
    return firstSeq >= Math.max(seq, sealed) && !damaged.includes(firstSeq)
  }
}

/** Null if the lane has none, because nothing of it was ever settled. */
async function totalsOf(
  { store }: SpoolState,
  lane: Lane,
  { totals, isTotalsTableWhole }: FoundLanes,
): Promise<TotalsRecord | null | LostTotals> {
  const known = totals.get(lane.id)
  if (known !== undefined) return known ?? 'damaged'
  if (!isTotalsTableWhole) {
    // A newer version of the record than the damaged one may be elsewhere.
    const { value, isUnreadable } = await readOne(store, laneKey(table.totals, lane.id))
    if (isUnreadable) return 'damaged'
    if (value !== undefined) return totalsRecord.decode(value) ?? 'damaged'
  }
  const { entry, isComplete } = await firstReadable(store, seqRange(table.chunks, lane.id, 0, lastSeq))
  return entry !== null && isComplete && seqOf(entry[0]) === 0 ? null : 'missing'
}

/** Where the numbers of claims end at least, and what is sealed for sure: of a damaged one nothing. */
type ClaimEnds = ReadonlyMap<LaneId, { numbered: number; sealed: number }>

function endsOfClaims({ claims }: FoundLanes): ClaimEnds {
  const ends = new Map<LaneId, { numbered: number; sealed: number }>()
  for (const [key, value] of claims) {
    const { numbered = 0, sealed = 0 } = ends.get(laneOf(key)) ?? {}
    const endSeq = claimRecord.decode(value)?.endSeq ?? null
    ends.set(laneOf(key), {
      numbered: Math.max(numbered, endSeq ?? seqOf(key) + 1),
      sealed: Math.max(sealed, endSeq ?? seqOf(key)),
    })
  }
  return ends
}

/** Those that can be read, in order. */
function claimsOf({ claims }: FoundLanes, lane: LaneId): { firstSeq: number; endSeq: number }[] {
  return claims.flatMap(([key, value]) => {
    const record = laneOf(key) === lane ? claimRecord.decode(value) : null
    return record === null ? [] : [{ firstSeq: seqOf(key), endSeq: record.endSeq }]
  })
}

function markedLane({ mark: { found } }: SpoolState, lane: LaneId): MarkedLane | undefined {
  return found.kind === 'mark' ? found.mark.lanes.find(({ id }) => id === lane) : undefined
}

async function endOf(state: SpoolState, lane: Lane): Promise<LaneEnd> {
  const { store } = state
  const range = seqRange(table.chunks, lane.id, 0, lastSeq)
  const end: LaneEnd = { seq: 0, bytes: 0, damaged: [], isUnreadable: false, recount: null }
  try {
    // Back to one that can be read: it says how many bytes the lane has.
    for (let lt: Buffer | null = range.lt; lt !== null;) {
      const before: StoreRange = { gte: range.gte, lt }
      lt = null
      for await (const page of store.pages(before, { reverse: true, limit: 1 }))
        for (const [key, value] of page) {
          addEnd(end, key, value)
          if (end.seq === 0) lt = key
        }
    }
    end.damaged = []
    // LevelDB steps over a damaged block, and says so only at the end of an iteration.
    const rest = { ...range, gte: seqKey(table.chunks, lane.id, Math.max(end.seq, lane.sealSeq)) }
    for await (const page of store.pages(rest)) for (const [key, value] of page) addEnd(end, key, value)
    return end
  } catch (error) {
    if (!isCorruption(error)) throw error
  }
  end.isUnreadable = true
  const what = 'a block with the last payloads of the lane is damaged'
  reportUnreadable(state, lane.id, 0, what)
  // The mark knows the end; without it, all chunks before the damage are read to find it.
  if (markedLane(state, lane.id) === undefined)
    for await (const page of scan(store, range))
      if (page.kind === 'entries') for (const [key, value] of page.entries) addEnd(end, key, value)
  return end
}

function addEnd(end: LaneEnd, key: Buffer, value: Buffer): void {
  if (!isSeqKey(key)) return
  const chunk = readChunk(key, value)
  if (chunk === null) {
    end.damaged.push(seqOf(key))
    return
  }
  end.damaged = []
  end.seq = seqOf(key) + chunk.count
  end.bytes = chunk.startBytes + chunk.bytes
}

/**
 * Makes the end of a lane certain. Its claims must be known. `isMarkCurrent`: the database is not ahead of
 * the mark, so nothing follows what the mark counts.
 */
export async function closeEnd(
  state: SpoolState,
  lane: Lane,
  { end, isMarkCurrent }: { end: LaneEnd; isMarkCurrent: boolean },
  repairs: StoreOp[],
): Promise<void> {
  const marked = markedLane(state, lane.id)
  const knownSeq = Math.max(lane.nextSeq, marked?.nextSeq ?? 0)
  if (end.isUnreadable) {
    extend(lane, knownSeq)
    if (!isMarkCurrent) addGap(lane, damagedStride, 'unexplained', repairs)
    return
  }
  const damaged = end.damaged.filter((firstSeq) => firstSeq >= lane.sealSeq)
  const beyond = damaged.filter((firstSeq) => firstSeq >= knownSeq)
  // Nothing was numbered so far: the key is damaged, and what it held is missing where it was.
  const isMisplaced = (firstSeq: number) => isMarkCurrent || firstSeq >= knownSeq + damagedStride
  for (const firstSeq of beyond.filter(isMisplaced)) {
    const key = seqKey(table.chunks, lane.id, firstSeq)
    const { value } = await readOne(state.store, key)
    if (value !== undefined) setMisplacedAside(state, key, value, repairs)
  }
  const last = beyond.findLast((firstSeq) => !isMisplaced(firstSeq))
  if (last !== undefined) await setLastAside(state, lane, last, repairs)
  // Other damaged chunks are set aside when they are counted.
  else if (beyond.length < damaged.length) extend(lane, knownSeq)
  else closeTail(state, lane, end, repairs)
  if (end.recount === null || (isMarkCurrent && marked !== undefined)) return
  // Nothing else is left of the payloads of these chunks: they were the last ones.
  keepDistance(state, lane, { damaged: end.recount.strays, what: 'the keys of chunks are damaged' }, repairs)
}

/** What follows the last chunk is missing, unless it is sealed. */
function closeTail(state: SpoolState, lane: Lane, end: LaneEnd, repairs: StoreOp[]): void {
  const firstSeq = Math.max(end.seq, lane.sealSeq)
  const numbers = lane.nextSeq - firstSeq
  if (numbers <= 0) return
  const payloads = numbers - (end.recount?.settledAtEnd ?? 0)
  raiseNumbers(lane, firstSeq)
  lane.openPayloads -= payloads
  addGap(lane, payloads, 'damaged', repairs)
  addGap(lane, numbers - payloads, null, repairs)
  if (payloads === 0) return
  state.counters.damaged += payloads
  const what = 'it is missing at the end of the lane'
  state.emit({ kind: 'chunk_damaged', lane: lane.id, firstSeq, payloads, what })
}

/** What was numbered beyond the known end is open, until the head of the lane gets there. */
function extend(lane: Lane, nextSeq: number): void {
  lane.openPayloads += nextSeq - lane.nextSeq
  raiseNumbers(lane, nextSeq)
}

async function setLastAside(
  state: SpoolState,
  lane: Lane,
  firstSeq: number,
  repairs: StoreOp[],
): Promise<void> {
  const payloads = plausibleCount(await setBadAside(state, lane.id, firstSeq, repairs))
  extend(lane, firstSeq)
  const what = 'the checksum of the last chunk is wrong; the number of its payloads is estimated'
  keepDistance(state, lane, { damaged: payloads, what }, repairs)
}

/** Numbers go on behind everything that can have been given. The first ones are known to be damaged. */
function keepDistance(
  state: SpoolState,
  lane: Lane,
  { damaged: payloads, what }: { damaged: number; what: string },
  repairs: StoreOp[],
): void {
  const firstSeq = lane.nextSeq
  addGap(lane, payloads, 'damaged', repairs)
  addGap(lane, damagedStride - payloads, 'unexplained', repairs)
  if (payloads === 0) return
  state.counters.damaged += payloads
  state.emit({ kind: 'chunk_damaged', lane: lane.id, firstSeq, payloads, what })
}
