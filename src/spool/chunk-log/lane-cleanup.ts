// lane-cleanup.ts: deletes backfill lanes that are empty for good. Every outage opens some, and years of
// outages must leave none behind. The lane with the highest number on the disk stays, because a restart takes
// the next number from it. A higher lane that still waits for its write does not count, since a power cut may
// take it.
//
// The record of a lane with damage stays under another key: it says whose the chunks are that were set aside.

import { deletedLaneKey, laneKey, table } from './key-layout.ts'
import { settledPayloads, type Lane } from './lane.ts'
import { laneRecord } from './record-codec.ts'
import { youngestBackfill, type Session } from '../session-state.ts'

/** Deletes the drained lanes and their totals in one write. */
export async function deleteDrainedLanes(session: Session): Promise<void> {
  const { lanes, committer } = session
  let highest = 0
  for (const { id, recorded } of lanes.values()) if (recorded && id > highest) highest = id
  const drained = [...lanes.values()].filter(
    (lane) => lane.id < highest && isDrained(lane) && youngestBackfill(session, lane.provider) !== lane,
  )
  if (drained.length === 0) return
  // If the write fails, they are read again.
  for (const { id } of drained) lanes.delete(id)
  await committer.commit({
    prepare(ops) {
      for (const lane of drained) {
        const { id, provider, role, openedAt, settled } = lane
        if (settled.damaged.payloads > 0) {
          const value = laneRecord.encode({ provider, role, openedAt })
          ops.push({ type: 'put', key: deletedLaneKey(id), value })
        }
        ops.push({ type: 'del', key: laneKey(table.lanes, id) })
        ops.push({ type: 'del', key: laneKey(table.totals, id) })
      }
    },
  })
}

/** Nothing is in it or on the way to it, and its counts agree. */
function isDrained(lane: Lane): boolean {
  return (
    lane.role.kind === 'backfill' &&
    lane.nextSeq > 0 &&
    lane.sealSeq === lane.nextSeq &&
    lane.appendedSeq === lane.nextSeq &&
    lane.claims.size === 0 &&
    lane.openPayloads === 0 &&
    lane.walk === null &&
    settledPayloads(lane.settled) === lane.nextSeq
  )
}
