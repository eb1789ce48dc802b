// lost-payloads.ts: which payloads are lost with damaged files, by lane and number, and which entries come
// back although they were settled. Reads the newest versions of everything that can be read.
//
//   settled | claimed by batches | pending                     | counted by the mark
//           ^ first claim        ^ sealSeq                     ^ end of the last chunk
//
// From the first claim on, each number of a claim, and from sealSeq on each number, belongs to a chunk. A
// hole in them is lost where damage can have held its chunks. Chunks before sealSeq without a claim were
// settled: the record of their deletion is lost. Where a claim can be lost instead, they stay.
//
// The sums are compared with what the high-water mark counts, or else the totals: what is missing beyond the
// holes is lost, too. lost-kept.ts counts dead letters, kept messages and mapping state.

import type { EpochMs } from '../../std/clock.ts'
import type { LaneId } from '../../domain/ids.ts'
import type { FileDamage, LevelFiles } from '../../storage/storage.ts'
import { readChunk } from '../chunk-log/chunk-codec.ts'
import { laneKey, laneOf, seqKey, seqOf, table, tableRange, writeCountLane } from '../chunk-log/key-layout.ts'
import { decodeWriteCount } from '../chunk-log/record-codec.ts'
import type { Mark } from '../high-water-mark/high-water-mark.ts'
import { findLostKept, type LostMessages } from './lost-kept.ts'
import { laneState, readLanes, type Claim, type LaneState } from './lane-states.ts'

export type LostRange = {
  lane: number
  provider: string
  firstSeq: number
  endSeq: number
  /** Fewer than the range has where it is not known which ones. */
  payloads: number
  /** Sealed batches that they belong to. */
  batchIds: readonly string[]
  /** Commit times of the payloads before and behind them; null if there are none. */
  after: EpochMs | null
  before: EpochMs | null
}

export type Losses = {
  payloads: number
  ranges: readonly LostRange[]
  rangesHidden: number
  /** Payloads and messages that come back and were settled: the repair deletes them. */
  returned: { payloads: number; messages: number; keys: readonly Buffer[] }
  /** Lanes of which the totals are lost: payloads with smaller numbers are lost, or were settled before. */
  unknown: readonly { lane: number; belowSeq: number }[]
  /** By the totals, which the next start corrects. */
  deadLetters: number
  messages: readonly LostMessages[]
  stateEntries: number
  /** By the high-water mark. */
  writes: number
  /** Keys of messages by device that are missing; the repair writes them. */
  added: readonly (readonly [key: Buffer, value: Buffer])[]
}

const rangesMax = 1000

export async function findLosses(
  files: LevelFiles,
  { damage, mark }: { damage: readonly FileDamage[]; mark: Mark | null },
  signal: AbortSignal,
): Promise<Losses> {
  const counted = decodeWriteCount(await files.get(laneKey(table.totals, writeCountLane)))
  const lanes = await readLanes(files, mark, counted)
  const isListLost = files.manifest?.isComplete !== true
  const found = { ranges: [] as LostRange[], payloads: 0, rangesHidden: 0 }
  const returned = { payloads: 0, messages: 0, keys: [] as Buffer[] }
  const unknown: { lane: number; belowSeq: number }[] = []
  let walk: LaneWalk | null = null
  const laneWalk = (id: LaneId): LaneWalk =>
    createLaneWalk(id, laneState(lanes, id), { damage, isListLost, lost: addLost, unknown, returned })
  const walked = new Set<LaneId>()
  for await (const page of files.pages(tableRange(table.chunks))) {
    signal.throwIfAborted()
    for (const [key, value] of page) {
      if (key.length !== chunkKeyBytes) continue
      const id = laneOf(key)
      if (walk === null || walk.id !== id) {
        walk?.end()
        walk = laneWalk(id)
        walked.add(id)
      }
      walk.add(key, value)
    }
  }
  walk?.end()
  for (const id of lanes.keys()) if (!walked.has(id)) laneWalk(id).end()
  const kept = await findLostKept(files, signal)
  returned.messages = kept.returned.messages
  for (const key of kept.returned.keys) returned.keys.push(key)
  returned.keys.sort((one, other) => one.compare(other))
  const { deadLetters, messages, stateEntries, added } = kept
  const writes = mark === null ? 0 : Math.max(0, mark.writes - (counted ?? 0))
  return { ...found, unknown, deadLetters, messages, stateEntries, writes, added, returned }

  function addLost(range: LostRange): void {
    found.payloads += range.payloads
    if (found.ranges.length < rangesMax) found.ranges.push(range)
    else found.rangesHidden += 1
  }
}

const chunkKeyBytes = 13

type LaneWalk = { id: LaneId; add(key: Buffer, value: Buffer): void; end(): void }

type WalkDeps = {
  damage: readonly FileDamage[]
  /** Without a manifest, tables can be missing that nothing names. */
  isListLost: boolean
  lost: (range: LostRange) => void
  unknown: { lane: number; belowSeq: number }[]
  returned: { payloads: number; keys: Buffer[] }
}

/** One walk over the chunks of a lane, in their order. */
function createLaneWalk(
  id: LaneId,
  state: LaneState,
  { damage, isListLost, lost, unknown, returned }: WalkDeps,
): LaneWalk {
  const { sealSeq, settled, claims, markedSeq, markedOpen } = state
  const canLoseClaims =
    isListLost || mayHold(damage, seqKey(table.batches, id, 0), seqKey(table.batches, id, seqMax))
  const sums = { open: 0, lost: 0 }
  const unclaimed = { payloads: 0, keys: [] as Buffer[] }
  let end: number | null = null
  /** The first number that is there. */
  let first: number | null = null
  let lastAt: EpochMs | null = null
  let claim = 0
  return { id, add, end: finish }

  function finish(): void {
    const lostBefore = sums.lost
    addHoles(markedSeq, null)
    // A tail that only the mark knows is not in the sums.
    const isTailCounted = end === null || sums.lost > lostBefore
    const appended = isTailCounted ? Math.max(markedSeq, end ?? 0) : (end ?? 0)
    const missing = appended - settled - sums.open - sums.lost
    const isReturned = !canLoseClaims || missing === -unclaimed.payloads
    addRest(missing, {
      isTailLost: sums.lost > lostBefore,
      returnedPayloads: isReturned ? unclaimed.payloads : 0,
    })
    if (!isReturned) return
    returned.payloads += unclaimed.payloads
    for (const key of unclaimed.keys) returned.keys.push(key)
  }

  /**
   * What the mark or the totals count and no number shows: behind the end, in batches of which record and
   * payloads are lost, or in a lane of which the totals are lost.
   */
  function addRest(
    missing: number,
    { isTailLost, returnedPayloads }: { isTailLost: boolean; returnedPayloads: number },
  ): void {
    if (markedOpen !== null) {
      const rest = markedOpen - (sums.open - returnedPayloads) - sums.lost
      const tail = end === null || isTailLost ? 0 : Math.max(0, Math.min(rest, markedSeq - end))
      addAmong(end ?? 0, markedSeq, tail)
      addAmong(0, sealSeq === null || sealSeq === 0 ? (first ?? markedSeq) : sealSeq, rest - tail)
      return
    }
    if (sealSeq === null && first !== null && first > 0) unknown.push({ lane: id, belowSeq: first })
    if (sealSeq === null || sealSeq === 0) return
    if (isListLost || mayHold(damage, seqKey(table.chunks, id, 0), seqKey(table.chunks, id, sealSeq)))
      addAmong(0, sealSeq, missing)
  }

  function addAmong(firstSeq: number, endSeq: number, payloads: number): void {
    if (payloads <= 0 || endSeq <= firstSeq) return
    const provider = state.provider ?? 'unknown'
    const place = { lane: id, provider, firstSeq, endSeq, payloads: Math.min(payloads, endSeq - firstSeq) }
    lost({ ...place, batchIds: [], after: null, before: null })
  }

  function add(key: Buffer, value: Buffer): void {
    const firstSeq = seqOf(key)
    const chunk = readChunk(key, value)
    addHoles(firstSeq, chunk?.kind === 'chunk' ? chunk.committedAt : null)
    first ??= firstSeq
    end = Math.max(end ?? 0, firstSeq + (chunk?.count ?? 1))
    if (chunk?.kind !== 'chunk') return
    lastAt = chunk.committedAt
    sums.open += chunk.count
    if (sealSeq === null || end > sealSeq || claimAt(firstSeq) !== null) return
    unclaimed.payloads += chunk.count
    unclaimed.keys.push(key)
  }

  function claimAt(seq: number): Claim | null {
    while (claim < claims.length && claims[claim]!.endSeq <= seq) claim += 1
    const found = claims[claim]
    return found !== undefined && found.firstSeq <= seq ? found : null
  }

  /** Between the last chunk and the one at `untilSeq`. */
  function addHoles(untilSeq: number, before: EpochMs | null): void {
    const from = end ?? Math.min(sealSeq ?? untilSeq, claims[0]?.firstSeq ?? untilSeq)
    if (untilSeq <= from) return
    const isHit = mayHold(damage, seqKey(table.chunks, id, from), seqKey(table.chunks, id, untilSeq))
    if (!isHit && !isListLost) return
    // Settled numbers lie between claims, before sealSeq.
    const parts = claims.filter(({ firstSeq, endSeq }) => endSeq > from && firstSeq < untilSeq)
    const pendingFrom = Math.max(from, sealSeq ?? from)
    for (const { firstSeq, endSeq, batchId } of parts)
      put(Math.max(firstSeq, from), Math.min(endSeq, untilSeq), [batchId], before)
    let at = pendingFrom
    for (const { firstSeq, endSeq } of parts) {
      put(at, Math.min(firstSeq, untilSeq), [], before)
      at = Math.max(at, endSeq)
    }
    put(at, untilSeq, [], before)
  }

  function put(firstSeq: number, endSeq: number, batchIds: string[], before: EpochMs | null): void {
    if (endSeq <= firstSeq) return
    const provider = state.provider ?? 'unknown'
    const payloads = endSeq - firstSeq
    sums.lost += payloads
    lost({
      lane: id,
      provider,
      firstSeq,
      endSeq,
      payloads,
      batchIds,
      after: lastAt,
      before,
    })
  }
}

const seqMax = Number.MAX_SAFE_INTEGER

/** Whether damage can have held a key from `gte` up to but not including `lt`. */
function mayHold(damage: readonly FileDamage[], gte: Buffer, lt: Buffer): boolean {
  return damage.some(
    ({ keys }) =>
      keys !== null &&
      (keys.until === null || keys.until.compare(gte) >= 0) &&
      (keys.after === null || keys.after.compare(lt) < 0),
  )
}
