// lane-cleanup.ts: backfill lanes are opened in every outage; one that is empty for good is deleted, so that years of outages
// leave no lanes behind. Never the one with the highest number on the disk: from it the next number is known after a
// restart. A higher one that still waits for its write does not count, since a power cut may take it.
//
// What was set aside of a lane tells whose it is by the lane's record, so a lane that was damaged stays.

import type { Committer } from './committer.ts'
import { laneKey, table } from './key-layout.ts'
import { settledPayloads, type Lane } from './lane.ts'
import { youngestBackfill, type SpoolState } from '../session-state.ts'

/** Deletes the lanes that are drained, with their totals, in one write. */
export async function dropDrained(state: SpoolState, committer: Committer): Promise<void> {
  let highest = 0
  for (const { id, recorded } of state.lanes.values()) if (recorded && id > highest) highest = id
  const drained = [...state.lanes.values()].filter(
    (lane) => lane.id < highest && isDrained(lane) && youngestBackfill(state, lane.provider) !== lane,
  )
  if (drained.length === 0) return
  // Nobody finds them from here on; should the write fail, they are read again.
  for (const { id } of drained) state.lanes.delete(id)
  await committer.control({
    prepare(ops) {
      for (const { id } of drained) {
        ops.push({ type: 'del', key: laneKey(table.lanes, id) })
        ops.push({ type: 'del', key: laneKey(table.totals, id) })
      }
    },
    committed() {},
  })
}

/** Nothing in it, nothing on its way to it, and its books agree. */
function isDrained(lane: Lane): boolean {
  return (
    lane.role.kind === 'backfill' &&
    lane.nextSeq > 0 &&
    lane.sealSeq === lane.nextSeq &&
    lane.appendedSeq === lane.nextSeq &&
    lane.claims.size === 0 &&
    lane.openPayloads === 0 &&
    lane.walk === null &&
    settledPayloads(lane.settled) === lane.nextSeq &&
    lane.settled.damaged.payloads === 0
  )
}
