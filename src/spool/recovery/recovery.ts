// recovery.ts: reads a store into memory after a start or after a failed write. Owner of invariant 7: it
// forgets nothing; what it cannot explain is reported and kept.
//
// What is read: the lanes, their totals and last chunk, the claims, the dedup window, the state of the mapping, the
// totals of the shelves. Not the payloads and not the kept messages: their number is known from the totals and the
// last chunk, so a start takes no longer with a million of them. A full walk that counts them follows in the
// background (open-count.ts).
//
//   nextSeq  the larger of the totals' and the end of the last chunk and claim: no number is used twice
//   sealSeq  the larger of the totals' and the end of the last claim

import { GatewayError } from '../../std/gateway-error.ts'
import type { LaneId, ProviderName } from '../../domain/ids.ts'
import type { Store, StoreOp } from '../../storage/storage.ts'
import { readChunk } from '../chunk-log/chunk-codec.ts'
import { addClaim } from '../batches/claim.ts'
import {
  formatKey,
  laneKey,
  laneOf,
  letterLane,
  seenNumberOf,
  seqKey,
  seqOf,
  seqRange,
  table,
  tableRange,
} from '../chunk-log/key-layout.ts'
import { emptySettled, newLane, settledBytes, settledPayloads, type Lane } from '../chunk-log/lane.ts'
import { dropClaim, explainTotals, mendSealed, reportUnreadable } from './repair.ts'
import {
  claimRecord,
  decodeSeen,
  formatRecord,
  formatVersion,
  laneRecord,
  letterTotalsRecord,
  seenKeyBytes,
  totalsRecord,
  type ClaimRecord,
  type FormatRecord,
  type LaneRecord,
} from '../chunk-log/record-codec.ts'
import { recoverParts } from '../kept/state-entries.ts'
import { recoverReceipts } from '../chunk-log/receipt-queue.ts'
import { recoverShelves } from '../kept/message-shelf.ts'
import type { SpoolState } from '../session-state.ts'

/** Above every sequence number that will ever be given. */
export const endOfLane = Number.MAX_SAFE_INTEGER

/** Fills `state`, which is empty but for its parts, from its store. */
export async function recover(state: SpoolState, options: { windowMs: number }): Promise<void> {
  const repairs: StoreOp[] = []
  await checkFormat(state)
  await recoverLanes(state)
  await recoverClaims(state, repairs)
  await recoverLetters(state)
  await recoverShelves(state)
  await recoverReceipts(state.receipts, state.store)
  await recoverParts(state, repairs)
  await recoverWindow(state, options.windowMs)
  for (const lane of state.lanes.values()) state.openBytes += lane.nextBytes - settledBytes(lane.settled)
  if (repairs.length > 0) await state.store.write(repairs, { sync: true })
}

async function checkFormat(state: SpoolState): Promise<void> {
  const { store, clock, newId } = state
  const value = await store.get(formatKey)
  if (value === undefined) {
    const record: FormatRecord = { version: formatVersion, createdAt: clock.now(), instance: newId() }
    await store.write([{ type: 'put', key: formatKey, value: formatRecord.encode(record) }], { sync: true })
    return
  }
  const record = formatRecord.decode(value)
  if (record === null) {
    throw new GatewayError('SPOOL_DAMAGED', {
      what: 'Cannot read the format record of the spool.',
      why: 'Its checksum is wrong.',
      act: 'Do not delete the directory: copy it aside first, it holds telemetry that was acknowledged.',
    })
  }
  if (record.version > formatVersion) {
    throw new GatewayError('SPOOL_VERSION', {
      what: `The spool has format version ${record.version}; this gateway reads up to ${formatVersion}.`,
      why: 'It was written by a newer version of the gateway.',
      act: 'Start the newer version again, or let it drain the spool before going back.',
    })
  }
}

async function recoverLanes(state: SpoolState): Promise<void> {
  for await (const page of state.store.pages(tableRange(table.lanes))) {
    for (const [key, value] of page) {
      const id = laneOf(key)
      state.nextLane = Math.max(state.nextLane, id + 1)
      const record = laneRecord.decode(value)
      if (record === null)
        reportUnreadable(state, id, 0, 'the record of the lane is damaged; its payloads are kept')
      const { provider, role, openedAt } = record ?? unknownLane(id)
      const lane = newLane(id, provider, role, openedAt)
      lane.recorded = true
      state.lanes.set(id, lane)
    }
  }
  for (const lane of state.lanes.values()) {
    if (lane.role.kind === 'live') state.liveLanes.set(lane.provider, lane)
    await recoverNumbers(state, lane)
  }
}

/** A lane of a provider that no config names: nobody drains it, and nothing of it is lost. */
function unknownLane(id: LaneId): LaneRecord {
  return { provider: `unknown-lane-${id}` as ProviderName, role: { kind: 'backfill' }, openedAt: 0 }
}

async function recoverNumbers(state: SpoolState, lane: Lane): Promise<void> {
  const value = await state.store.get(laneKey(table.totals, lane.id))
  const totals = totalsRecord.decode(value)
  lane.settled = totals === null ? emptySettled() : { ...emptySettled(), ...totals.settled }
  lane.sealSeq = totals?.sealSeq ?? 0
  const end = await endOfLastChunk(state, lane)
  lane.nextSeq = Math.max(totals?.nextSeq ?? 0, end.seq)
  lane.nextBytes = Math.max(totals?.nextBytes ?? 0, end.bytes)
  if (value !== undefined && totals === null) await explainTotals(state, lane)
}

async function endOfLastChunk(state: SpoolState, lane: Lane): Promise<{ seq: number; bytes: number }> {
  const range = seqRange(table.chunks, lane.id, 0, endOfLane)
  for await (const page of state.store.pages(range, { reverse: true, limit: 1 })) {
    for (const [key, value] of page) {
      const chunk = readChunk(value)
      // A damaged last chunk still has its number; how many it held is unknown, so the next number keeps
      // a distance that no chunk can bridge.
      if (chunk === null) return { seq: seqOf(key) + damagedStride, bytes: 0 }
      return { seq: seqOf(key) + chunk.count, bytes: chunk.startBytes + chunk.bytes }
    }
  }
  return { seq: 0, bytes: 0 }
}

/** More payloads than one chunk can hold. */
const damagedStride = 1_000_000

async function recoverClaims(state: SpoolState, repairs: StoreOp[]): Promise<void> {
  const found: { lane: Lane; firstSeq: number; record: ClaimRecord | null }[] = []
  for await (const page of state.store.pages(tableRange(table.batches))) {
    for (const [key, value] of page) {
      const lane = state.lanes.get(laneOf(key))
      if (lane === undefined) {
        reportUnreadable(state, laneOf(key), seqOf(key), 'a batch of a lane that has no record; it is kept')
        continue
      }
      found.push({ lane, firstSeq: seqOf(key), record: claimRecord.decode(value) })
    }
  }
  for (const { lane, firstSeq, record } of found) {
    if (record !== null) addClaim(lane, firstSeq, record)
    else dropClaim(state, lane, firstSeq, repairs)
  }
  for (const lane of state.lanes.values()) {
    const dropped = found.filter((claim) => claim.lane === lane && claim.record === null)
    lane.nextSeq = Math.max(lane.nextSeq, lane.sealSeq)
    await mendSealed(state, lane, new Set(dropped.map(({ firstSeq }) => firstSeq)), repairs)
    await finishLane(state, lane)
  }
}

async function finishLane(state: SpoolState, lane: Lane): Promise<void> {
  lane.committedSeq = lane.nextSeq
  lane.appendedSeq = lane.nextSeq
  lane.committedBytes = lane.nextBytes
  lane.refsEnd = lane.sealSeq
  lane.sealBytes = await startBytesFrom(state.store, lane)
  lane.openPayloads = lane.nextSeq - settledPayloads(lane.settled)
}

async function startBytesFrom(store: Store, lane: Lane): Promise<number> {
  if (lane.sealSeq >= lane.committedSeq) return lane.committedBytes
  const value = await store.get(seqKey(table.chunks, lane.id, lane.sealSeq))
  const chunk = value === undefined ? null : readChunk(value)
  return chunk?.startBytes ?? lane.committedBytes
}

async function recoverLetters(state: SpoolState): Promise<void> {
  const value = await state.store.get(laneKey(table.totals, letterLane))
  const totals = letterTotalsRecord.decode(value)
  if (totals !== null) state.letters = totals
  if (totals !== null || value === undefined) return
  for await (const page of state.store.pages(tableRange(table.deadLetters))) {
    for (const [, letter] of page) {
      state.letters.letters += 1
      state.letters.bytes += letter.length
    }
  }
  reportUnreadable(state, letterLane, 0, 'the totals of the dead letters are damaged; they were counted anew')
}

const nothingSeen = { keys: Buffer.alloc(0), keyBytes: seenKeyBytes }

async function recoverWindow(state: SpoolState, windowMs: number): Promise<void> {
  const { clock, window } = state
  for await (const page of state.store.pages(tableRange(table.seen))) {
    for (const [key, value] of page) {
      const n = seenNumberOf(key)
      state.nextSeen = Math.max(state.nextSeen, n + 1)
      const record = decodeSeen(value)
      // A lost record can let a copy through, once; the service's own deduplication is behind us.
      if (record === null) reportUnreadable(state, letterLane, n, 'a record of the dedup window is damaged')
      const { keys, keyBytes } = record ?? nothingSeen
      const ageMs = Math.min(Math.max(0, clock.now() - (record?.at ?? 0)), windowMs)
      let added = 0
      for (let offset = 0; offset < keys.length; offset += keyBytes) {
        window.loadBytes(keys, offset, keyBytes)
        if (window.add()) added += 1
      }
      window.endGroup(n, added, clock.monotonic() - ageMs)
    }
  }
}
