// lost-payloads.ts: which payloads are lost with damaged files, by lane and number, and which entries come
// back although they were settled. Reads the newest versions of everything that can be read.
//
//   settled | claimed by batches | pending                     | counted by the mark
//           ^ first claim        ^ sealSeq                     ^ end of the last chunk
//
// From the first claim on, each number of a claim, and from sealSeq on each number, belongs to a chunk. A
// hole in them is lost where damage can have held its chunks. Chunks before sealSeq without a claim were
// settled: the record of their deletion is lost. Where a claim can be lost instead, they stay.

import type { EpochMs } from '../../std/clock.ts'
import type { LaneId } from '../../domain/ids.ts'
import type { FileDamage, LevelFiles, StoreRange } from '../../storage/storage.ts'
import { readChunk, readGap } from '../chunk-log/chunk-codec.ts'
import {
  isLane,
  keptByDeviceKey,
  keptSeqOf,
  laneOf,
  seqKey,
  seqOf,
  shelfOf,
  table,
  tableRange,
  textOf,
} from '../chunk-log/key-layout.ts'
import { emptySettled, settledPayloads } from '../chunk-log/lane.ts'
import {
  claimRecord,
  keptMessageRecord,
  laneRecord,
  shelfRecord,
  totalsRecord,
} from '../chunk-log/record-codec.ts'
import type { Mark } from '../high-water-mark/high-water-mark.ts'
import { unlessDamaged } from './readable-keys.ts'

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
}

type Claim = { firstSeq: number; endSeq: number; batchId: string }

type LaneState = {
  provider: string | null
  /** Null where its totals cannot be read. */
  sealSeq: number | null
  settled: number
  /** Of the mark or the totals. */
  markedSeq: number
  claims: Claim[]
}

const rangesMax = 1000

export async function findLosses(
  files: LevelFiles,
  { damage, mark }: { damage: readonly FileDamage[]; mark: Mark | null },
  signal: AbortSignal,
): Promise<Losses> {
  const lanes = await readLanes(files, mark)
  const isListLost = files.manifest?.isComplete !== true
  const found = { ranges: [] as LostRange[], payloads: 0, rangesHidden: 0 }
  const returned = { payloads: 0, messages: 0, keys: [] as Buffer[] }
  let walk: LaneWalk | null = null
  const laneWalk = (id: LaneId): LaneWalk =>
    createLaneWalk(id, laneState(lanes, id), { damage, isListLost, lost: addLost, returned })
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
  await findReturnedMessages(files, returned)
  returned.keys.sort((one, other) => one.compare(other))
  return { ...found, returned }

  function addLost(range: LostRange): void {
    found.payloads += range.payloads
    if (found.ranges.length < rangesMax) found.ranges.push(range)
    else found.rangesHidden += 1
  }
}

const chunkKeyBytes = 13

function laneState(lanes: Map<LaneId, LaneState>, id: LaneId): LaneState {
  let state = lanes.get(id)
  if (state === undefined) {
    state = { provider: null, sealSeq: null, settled: 0, markedSeq: 0, claims: [] }
    lanes.set(id, state)
  }
  return state
}

async function readLanes(files: LevelFiles, mark: Mark | null): Promise<Map<LaneId, LaneState>> {
  const lanes = new Map<LaneId, LaneState>()
  for (const { id, provider, nextSeq } of mark?.lanes ?? [])
    Object.assign(laneState(lanes, id), { provider, markedSeq: nextSeq })
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

async function eachRecord(
  files: LevelFiles,
  range: StoreRange,
  visit: (key: Buffer, value: Buffer) => void,
): Promise<void> {
  for await (const page of files.pages(range))
    for (const [key, value] of page) unlessDamaged(() => visit(key, value))
}

type LaneWalk = { id: LaneId; add(key: Buffer, value: Buffer): void; end(): void }

type WalkDeps = {
  damage: readonly FileDamage[]
  /** Without a manifest, tables can be missing that nothing names. */
  isListLost: boolean
  lost: (range: LostRange) => void
  returned: { payloads: number; keys: Buffer[] }
}

/** One walk over the chunks of a lane, in their order. */
function createLaneWalk(
  id: LaneId,
  state: LaneState,
  { damage, isListLost, lost, returned }: WalkDeps,
): LaneWalk {
  const { sealSeq, settled, claims, markedSeq } = state
  const canLoseClaims =
    isListLost || mayHold(damage, seqKey(table.batches, id, 0), seqKey(table.batches, id, seqMax))
  const sums = { open: 0, lost: 0 }
  const unclaimed = { payloads: 0, keys: [] as Buffer[] }
  let end: number | null = null
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
    addSealed(missing)
    if (canLoseClaims && missing !== -unclaimed.payloads) return
    returned.payloads += unclaimed.payloads
    for (const key of unclaimed.keys) returned.keys.push(key)
  }

  /** What the totals count and nothing else shows: in batches of which record and payloads are lost. */
  function addSealed(payloads: number): void {
    if (payloads <= 0 || sealSeq === null || sealSeq === 0) return
    if (!isListLost && !mayHold(damage, seqKey(table.chunks, id, 0), seqKey(table.chunks, id, sealSeq)))
      return
    const provider = state.provider ?? 'unknown'
    const range = { lane: id, provider, firstSeq: 0, endSeq: sealSeq, payloads: Math.min(payloads, sealSeq) }
    lost({ ...range, batchIds: [], after: null, before: null })
  }

  function add(key: Buffer, value: Buffer): void {
    const firstSeq = seqOf(key)
    const chunk = readChunk(value)
    const found = chunk ?? readGap(value)
    addHoles(firstSeq, chunk?.committedAt ?? null)
    end = Math.max(end ?? 0, firstSeq + (found?.count ?? 1))
    if (chunk === null) return
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
    // Of a lane of which nothing is left, everything can be lost.
    const isGone = end === null && before === null && sealSeq === null && isListLost
    const unknown = isGone ? 0 : untilSeq
    const from = end ?? Math.min(sealSeq ?? unknown, claims[0]?.firstSeq ?? unknown)
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

/** Kept messages before the head of their shelf were taken. */
async function findReturnedMessages(
  files: LevelFiles,
  returned: { messages: number; keys: Buffer[] },
): Promise<void> {
  const heads = new Map<string, number>()
  await eachRecord(files, tableRange(table.shelves), (key, value) => {
    const record = shelfRecord.decode(value)
    if (record !== null) heads.set(textOf(key), record.headSeq)
  })
  await eachRecord(files, tableRange(table.kept), (key, value) => {
    const shelf = shelfOf(key)
    const seq = keptSeqOf(key)
    if (seq >= (heads.get(shelf) ?? 0)) return
    returned.messages += 1
    returned.keys.push(key)
    const device = keptMessageRecord.decode(value)?.device ?? null
    if (device !== null) returned.keys.push(keptByDeviceKey(shelf, device, seq))
  })
}
