// lane-states.ts: what the records of lanes, totals and batches say about each lane, and the high-water mark.

import type { LaneId } from '../../domain/ids.ts'
import type { LevelFiles } from '../../storage/storage.ts'
import { isLane, laneOf, seqOf, table, tableRange } from '../chunk-log/key-layout.ts'
import { emptySettled, settledPayloads } from '../chunk-log/lane.ts'
import { claimRecord, laneRecord, totalsRecord } from '../chunk-log/record-codec.ts'
import type { Mark } from '../high-water-mark/high-water-mark.ts'
import { eachRecord } from './readable-keys.ts'

export type Claim = { firstSeq: number; endSeq: number; batchId: string }

export type LaneState = {
  provider: string | null
  /** Null where its totals cannot be read. */
  sealSeq: number | null
  settled: number
  /** Of the mark or the totals. */
  markedSeq: number
  /** Open payloads by the mark; null where it does not know the lane, or is older than the database. */
  markedOpen: number | null
  claims: Claim[]
}

export function laneState(lanes: Map<LaneId, LaneState>, id: LaneId): LaneState {
  let state = lanes.get(id)
  if (state === undefined) {
    state = { provider: null, sealSeq: null, settled: 0, markedSeq: 0, markedOpen: null, claims: [] }
    lanes.set(id, state)
  }
  return state
}

/** `counted`: the count of writes in the database. */
export async function readLanes(
  files: LevelFiles,
  mark: Mark | null,
  counted: number | null,
): Promise<Map<LaneId, LaneState>> {
  const lanes = new Map<LaneId, LaneState>()
  const isMarkOld = mark !== null && counted !== null && counted > mark.writes
  for (const { id, provider, nextSeq, open } of mark?.lanes ?? []) {
    const markedOpen = isMarkOld ? null : open
    Object.assign(laneState(lanes, id), { provider, markedSeq: nextSeq, markedOpen })
  }
  await eachRecord(files, tableRange(table.lanes), (key, value) => {
    const record = laneRecord.decode(value)
    if (record !== null) laneState(lanes, laneOf(key)).provider = record.provider
  })
  await eachRecord(files, tableRange(table.totals), (key, value) => {
    const record = isLane(laneOf(key)) ? totalsRecord.decode(value) : null
    if (record === null) return
    const state = laneState(lanes, laneOf(key))
    state.sealSeq = record.sealSeq
    state.settled = settledPayloads({ ...emptySettled(), ...record.settled })
    state.markedSeq = Math.max(state.markedSeq, record.nextSeq)
  })
  await eachRecord(files, tableRange(table.batches), (key, value) => {
    const record = claimRecord.decode(value)
    if (record === null) return
    const { batchId, endSeq } = record
    laneState(lanes, laneOf(key)).claims.push({ firstSeq: seqOf(key), endSeq, batchId })
  })
  return lanes
}
