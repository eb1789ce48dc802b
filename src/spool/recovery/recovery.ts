// recovery.ts: reads a store into memory, after a start or after a failed write. Owner of invariant 7: it
// loses nothing; data that it cannot read is reported and kept. Entry file of this folder.
//
// It reads the lanes, their totals and last chunk, the claims, the dedup window, the mapping state, the
// totals of the shelves and the receipts. It reads neither payloads nor kept messages: totals and last chunk
// say how many there are, so a start takes no longer with a million of them. A full count follows in the
// background (conservation-audit.ts, open-count.ts). Damaged records are rebuilt from the records around them
// (repair.ts).
//
//   nextSeq  the largest of the totals', the end of the last chunk and claim, and the high-water mark
//            (missing-writes.ts): no number is used twice
//   sealSeq  the larger of the totals' and the end of the last claim

import { GatewayError } from '../../std/gateway-error.ts'
import type { LaneId, ProviderName } from '../../domain/ids.ts'
import type { Store, StoreOp } from '../../storage/storage.ts'
import { addClaim } from '../batches/claim.ts'
import { readChunk, readGap } from '../chunk-log/chunk-codec.ts'
import {
  deadLetterTotalsLane,
  formatKey,
  laneKey,
  laneOf,
  numberOf,
  seqKey,
  seqOf,
  seqRange,
  table,
  tableRange,
  writeCountLane,
} from '../chunk-log/key-layout.ts'
import { emptySettled, newLane, settledBytes, settledPayloads, type Lane } from '../chunk-log/lane.ts'
import { recoverJournal } from '../kept/intake-journal.ts'
import { recoverReceipts } from '../chunk-log/receipt-queue.ts'
import {
  claimRecord,
  deadLetterTotalsRecord,
  decodeWindowKeys,
  decodeWriteCount,
  formatRecord,
  formatVersion,
  laneRecord,
  storedKeyBytes,
  totalsRecord,
  type ClaimRecord,
  type FormatRecord,
  type LaneRecord,
} from '../chunk-log/record-codec.ts'
import { recoverShelves } from '../kept/message-shelf.ts'
import { recoverState } from '../kept/state-entries.ts'
import type { SpoolState } from '../session-state.ts'
import { closeGaps, compareMark, restoreLanes } from './missing-writes.ts'
import { dropDamagedClaim, recountLane, repairClaims, reportUnreadable } from './repair.ts'

/** Fills an empty state from its store. `manifest` is what CURRENT named before the store was opened. */
export async function recover(state: SpoolState, manifest: string | null): Promise<void> {
  const repairs: StoreOp[] = []
  const instance = await checkFormat(state)
  const writes = decodeWriteCount(await state.store.get(laneKey(table.totals, writeCountLane)))
  await recoverLanes(state)
  const compared = compareMark(state, { instance, writes, manifest })
  if (compared !== null) restoreLanes(state, compared, repairs)
  for (const lane of state.lanes.values())
    if (lane.role.kind === 'live') state.liveLanes.set(lane.provider, lane)
  await recoverClaims(state, repairs)
  if (compared !== null) closeGaps(state, compared, repairs)
  await recoverDeadLetters(state)
  await recoverShelves(state)
  await recoverReceipts(state.receipts, state.store)
  await recoverState(state, repairs)
  await recoverWindow(state)
  await recoverJournal(state)
  for (const lane of state.lanes.values()) state.openBytes += lane.nextBytes - settledBytes(lane.settled)
  const counted = Math.max(writes ?? 0, compared?.mark.writes ?? 0)
  state.mark.start(state, { instance, writes: counted })
  if (repairs.length === 0 && counted === (writes ?? 0)) return
  state.mark.prepare(repairs)
  await state.store.write(repairs, { sync: true })
  state.mark.written()
}

/** Returns the id of the store. */
async function checkFormat(state: SpoolState): Promise<string> {
  const { store, clock, newId } = state
  const value = await store.get(formatKey)
  if (value === undefined) {
    const record: FormatRecord = { version: formatVersion, createdAt: clock.now(), instance: newId() }
    await store.write([{ type: 'put', key: formatKey, value: formatRecord.encode(record) }], { sync: true })
    return record.instance
  }
  const record = formatRecord.decode(value)
  if (record === null) {
    throw new GatewayError('SPOOL_DAMAGED', {
      what: 'Cannot read the format record of the spool.',
      why: 'Its checksum is wrong.',
      act: 'Do not delete the directory. Copy it first: it holds acknowledged telemetry.',
    })
  }
  if (record.version > formatVersion) {
    throw new GatewayError('SPOOL_VERSION', {
      what: `The spool has format version ${record.version}; this gateway reads up to ${formatVersion}.`,
      why: 'A newer version of the gateway wrote it.',
      act: 'Start the newer version again, and let it deliver all payloads before you downgrade.',
    })
  }
  return record.instance
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
  for (const lane of state.lanes.values()) await recoverNumbers(state, lane)
}

/** A lane of a provider that no config names: it is not drained, and nothing of it is lost. */
function unknownLane(id: LaneId): LaneRecord {
  return { provider: `unknown-lane-${id}` as ProviderName, role: { kind: 'backfill' }, openedAt: 0 }
}

async function recoverNumbers(state: SpoolState, lane: Lane): Promise<void> {
  const value = await state.store.get(laneKey(table.totals, lane.id))
  const totals = totalsRecord.decode(value)
  lane.settled = totals === null ? emptySettled() : { ...emptySettled(), ...totals.settled }
  lane.sealSeq = totals?.sealSeq ?? 0
  lane.gapPayloads = totals?.gapPayloads ?? 0
  const end = await endOfLastChunk(state, lane)
  lane.nextSeq = Math.max(totals?.nextSeq ?? 0, end.seq)
  lane.nextBytes = Math.max(totals?.nextBytes ?? 0, end.bytes)
  if (value !== undefined && totals === null) await recountLane(state, lane)
}

async function endOfLastChunk(state: SpoolState, lane: Lane): Promise<{ seq: number; bytes: number }> {
  const range = seqRange(table.chunks, lane.id, 0, Number.MAX_SAFE_INTEGER)
  for await (const page of state.store.pages(range, { reverse: true, limit: 1 })) {
    for (const [key, value] of page) {
      const chunk = readChunk(value) ?? readGap(value)
      // A damaged last chunk still has its number. How many payloads it held is unknown, so the next number
      // keeps a distance that no chunk can span.
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
    else dropDamagedClaim(state, lane, firstSeq, repairs)
  }
  for (const lane of state.lanes.values()) {
    const dropped = found.filter((claim) => claim.lane === lane && claim.record === null)
    lane.nextSeq = Math.max(lane.nextSeq, lane.sealSeq)
    await repairClaims(state, lane, new Set(dropped.map(({ firstSeq }) => firstSeq)), repairs)
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
  const chunk = value === undefined ? null : (readChunk(value) ?? readGap(value))
  return chunk?.startBytes ?? lane.committedBytes
}

async function recoverDeadLetters(state: SpoolState): Promise<void> {
  const value = await state.store.get(laneKey(table.totals, deadLetterTotalsLane))
  const totals = deadLetterTotalsRecord.decode(value)
  const { deadLetters } = state
  if (totals !== null) Object.assign(deadLetters, { count: totals.letters, bytes: totals.bytes })
  if (totals !== null || value === undefined) return
  for await (const page of state.store.pages(tableRange(table.deadLetters))) {
    for (const [, deadLetter] of page) {
      deadLetters.count += 1
      deadLetters.bytes += deadLetter.length
    }
  }
  const what = 'the totals of the dead letters are damaged; they were recounted'
  reportUnreadable(state, deadLetterTotalsLane, 0, what)
}

const noKeys = { keys: Buffer.alloc(0), keyBytes: storedKeyBytes }

async function recoverWindow(state: SpoolState): Promise<void> {
  const { clock, window } = state
  const { windowMs } = state.options.window
  for await (const page of state.store.pages(tableRange(table.windowKeys))) {
    for (const [key, value] of page) {
      const n = numberOf(key)
      state.nextWindowRecord = Math.max(state.nextWindowRecord, n + 1)
      const record = decodeWindowKeys(value)
      // A lost record can let a duplicate pass once; the service deduplicates as well.
      if (record === null)
        reportUnreadable(state, deadLetterTotalsLane, n, 'a record of the dedup window is damaged')
      const { keys, keyBytes } = record ?? noKeys
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
