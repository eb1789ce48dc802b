// verify.ts: counts what is open by walking over it, so that conservation (invariant 6) is checked against
// the chunks themselves and not against the sums that it is about.

import { pause, type Clock } from '../std/clock.ts'
import type { Store } from '../storage/storage.ts'
import type { LaneId } from '../domain/ids.ts'
import { readChunk } from './chunk.ts'
import { seqOf, seqRange, table } from './keys.ts'

export type OpenCount = { payloads: number; bytes: number; firstSeq: number | null }

/** Counts the payloads of a lane that stand in the database. */
export async function countOpen(
  store: Store,
  lane: LaneId,
  range: { fromSeq: number; untilSeq: number } = { fromSeq: 0, untilSeq: Number.MAX_SAFE_INTEGER },
): Promise<OpenCount> {
  const count: OpenCount = { payloads: 0, bytes: 0, firstSeq: null }
  for await (const page of store.pages(seqRange(table.chunks, lane, range.fromSeq, range.untilSeq))) {
    for (const [key, value] of page) {
      count.firstSeq ??= seqOf(key)
      const chunk = readChunk(value)
      count.payloads += chunk?.count ?? 0
      count.bytes += chunk?.bytes ?? 0
    }
  }
  return count
}

/** Between two pages of a walk in the background, the daemon gets on with its work. */
const restMs = 5

/**
 * Counts the payloads of a lane at leisure; null when `signal` ended the walk. It sees the lane as it stands
 * in the moment of the call: the caller takes the sums to compare with in the same turn.
 */
export async function walkLane(
  deps: { store: Store; clock: Clock; signal: AbortSignal },
  lane: LaneId,
  fromSeq: number,
): Promise<number | null> {
  let payloads = 0
  for await (const page of deps.store.pages(seqRange(table.chunks, lane, fromSeq, Number.MAX_SAFE_INTEGER))) {
    for (const [, value] of page) payloads += readChunk(value)?.count ?? 0
    if (!(await pause(deps.clock, restMs, deps.signal))) return null
  }
  return payloads
}
