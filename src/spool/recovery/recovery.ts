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

import { assert } from '../../std/assert.ts'
import { GatewayError } from '../../std/gateway-error.ts'
import type { DeadLetterStore } from '../../domain/dead-letter.ts'
import type { Store, StoreOp } from '../../storage/storage.ts'
import { addClaim } from '../batches/claim.ts'
import { startBytesAt } from '../chunk-log/chunk-log.ts'
import { firstReadable, readOne } from '../chunk-log/damage-scan.ts'
import {
  allKeys,
  deadLetterKeyBytes,
  deadLetterTotalsLane,
  formatKey,
  isNumberKey,
  keyAfter,
  laneKey,
  laneOf,
  numberOf,
  seqOf,
  table,
  tableRange,
  writeCountLane,
} from '../chunk-log/key-layout.ts'
import { setHead, settledBytes, settledPayloads, type Lane } from '../chunk-log/lane.ts'
import {
  claimRecord,
  deadLetterRecord,
  deadLetterTotalsRecord,
  decodeWindowKeys,
  decodeWriteCount,
  formatRecord,
  formatVersion,
  storedKeyBytes,
  type FormatRecord,
} from '../chunk-log/record-codec.ts'
import { putDeadLetterTotals } from '../kept/dead-letter-table.ts'
import { recoverJournal } from '../kept/intake-journal.ts'
import { recoverShelves } from '../kept/message-shelf.ts'
import { recoverState } from '../kept/state-entries.ts'
import { newDeadLetterBytes } from '../kept/store-use.ts'
import type { SpoolState } from '../session-state.ts'
import { closeEnd, readNumbers } from './lane-numbers.ts'
import { chooseLiveLanes, findLanes, type FoundLanes } from './lane-recovery.ts'
import { closeGaps, compareMark, restoreLanes } from './missing-writes.ts'
import { recoverReceipts } from './receipt-recovery.ts'
import { dropDamagedClaim, repairClaims } from './repair.ts'
import { readTable, reportRecord, setRecordAside } from './table-records.ts'

/** Fills an empty state from its store. `manifest` is what CURRENT named before the store was opened. */
export async function recover(state: SpoolState, manifest: string | null): Promise<void> {
  const repairs: StoreOp[] = []
  const instance = await recoverFormat(state, repairs)
  const writes = await recoverWriteCount(state)
  const found = await findLanes(state, repairs)
  const ends = await readNumbers(state, found, repairs)
  const compared = compareMark(state, { instance, writes, manifest })
  if (compared !== null) restoreLanes(state, compared, repairs)
  chooseLiveLanes(state, repairs)
  await recoverClaims(state, found, repairs)
  const isMarkCurrent = compared !== null && writes !== null && writes <= compared.mark.writes
  for (const [lane, end] of ends) await closeEnd(state, lane, { end, isMarkCurrent }, repairs)
  if (compared !== null) closeGaps(state, compared, repairs)
  await recoverDeadLetters(state, repairs)
  await recoverShelves(state, repairs)
  await recoverReceipts(state, repairs)
  await recoverState(state, repairs)
  await recoverWindow(state, repairs)
  await recoverJournal(state, repairs)
  for (const lane of state.lanes.values()) {
    state.openBytes += lane.nextBytes - settledBytes(lane.settled)
    setHead(state, lane, lane.sealSeq, await startBytesFrom(state.store, lane))
  }
  const counted = Math.max(writes ?? 0, compared?.mark.writes ?? 0)
  // Before the repairs: what a crash in between leaves is found again.
  state.mark.start(state, { instance, writes: counted })
  if (repairs.length === 0 && counted === (writes ?? 0)) return
  state.mark.prepare(repairs)
  await state.store.write(repairs, { sync: true })
  state.mark.written()
}

/** Null if there is none, or if it cannot be read, which is reported. */
async function recoverWriteCount(state: SpoolState): Promise<number | null> {
  const { value, isUnreadable } = await readOne(state.store, laneKey(table.totals, writeCountLane))
  const writes = decodeWriteCount(value)
  if (isUnreadable || (value !== undefined && writes === null))
    reportRecord(state, 'totals', 'the count of writes is damaged')
  return writes
}

/**
 * Returns the id of the store. A format record that is lost in a spool with content is written again: what
 * reads the rest says what is wrong with it.
 */
async function recoverFormat(state: SpoolState, repairs: StoreOp[]): Promise<string> {
  const { store, clock, newId, mark } = state
  const { value, isUnreadable } = await readOne(store, formatKey)
  const record = formatRecord.decode(value)
  if (record !== null) {
    refuseNewer(record)
    if (record.version < formatVersion) {
      const raised = formatRecord.encode({ ...record, version: formatVersion })
      repairs.push({ type: 'put', key: formatKey, value: raised })
    }
    return record.instance
  }
  const instance = mark.found.kind === 'mark' ? mark.found.mark.instance : newId()
  const fresh: FormatRecord = { version: formatVersion, createdAt: clock.now(), instance }
  const put: StoreOp = { type: 'put', key: formatKey, value: formatRecord.encode(fresh) }
  const isEmpty = async () => (await firstReadable(store, behindFormat)).entry === null
  // An empty database of which the mark knows writes has lost its log.
  const isLost = isUnreadable || value !== undefined || mark.found.kind === 'mark' || !(await isEmpty())
  if (!isLost) {
    await store.write([put], { sync: true })
    return instance
  }
  if (value !== undefined) setRecordAside(formatKey, value, repairs)
  repairs.push(put)
  reportRecord(state, 'format', value === undefined ? 'it is missing; it is written again' : wrongChecksum)
  return instance
}

const behindFormat = { gte: keyAfter(formatKey), lt: allKeys.lt }
const wrongChecksum = 'its checksum is wrong; it was set aside and is written again'

function refuseNewer({ version }: FormatRecord): void {
  if (version <= formatVersion) return
  throw new GatewayError('SPOOL_VERSION', {
    what: `The spool has format version ${version}; this gateway reads up to ${formatVersion}.`,
    why: 'A newer version of the gateway wrote it.',
    act: 'Start the newer version again, and let it deliver all payloads before you downgrade.',
  })
}

async function recoverClaims(state: SpoolState, { claims }: FoundLanes, repairs: StoreOp[]): Promise<void> {
  const dropped = new Map<Lane, Set<number>>()
  for (const [key, value] of claims) {
    const lane = state.lanes.get(laneOf(key))
    assert(lane !== undefined, 'a claim shows its lane')
    const firstSeq = seqOf(key)
    const record = claimRecord.decode(value)
    if (record !== null) {
      addClaim(lane, firstSeq, record)
      continue
    }
    setRecordAside(key, value, repairs)
    dropDamagedClaim(state, lane, firstSeq)
    dropped.set(lane, (dropped.get(lane) ?? new Set()).add(firstSeq))
  }
  for (const lane of state.lanes.values()) {
    lane.nextSeq = Math.max(lane.nextSeq, lane.sealSeq)
    await repairClaims(state, lane, dropped.get(lane) ?? new Set(), repairs)
    lane.committedSeq = lane.nextSeq
    lane.appendedSeq = lane.nextSeq
    lane.committedBytes = lane.nextBytes
    lane.refsEnd = lane.sealSeq
    lane.openPayloads = lane.nextSeq - settledPayloads(lane.settled)
  }
}

async function startBytesFrom(store: Store, lane: Lane): Promise<number> {
  if (lane.sealSeq >= lane.committedSeq) return lane.committedBytes
  const known = settledBytes(lane.settled) + lane.claimed.bytes
  return (await startBytesAt(store, lane.id, lane.sealSeq)) ?? known
}

async function recoverDeadLetters(state: SpoolState, repairs: StoreOp[]): Promise<void> {
  const { store, deadLetters } = state
  const key = laneKey(table.totals, deadLetterTotalsLane)
  const { value } = await readOne(store, key)
  const totals = deadLetterTotalsRecord.decode(value)
  if (totals !== null) {
    const { letters: count, bytes } = totals
    const bytesIn = totals.bytesIn ?? { ...newDeadLetterBytes(), dead_letters: bytes }
    Object.assign(deadLetters, { count, bytes, bytesIn })
    openDeadLetterStores(state)
    return
  }
  const range = tableRange(table.deadLetters)
  const { entry, isComplete } = await firstReadable(store, range)
  if (value === undefined && entry === null && isComplete) return
  const isKey = (found: Buffer) => found.length === deadLetterKeyBytes
  for await (const [, record] of readTable(state, { range, table: 'dead letters', isKey, repairs })) {
    deadLetters.count += 1
    deadLetters.bytes += record.length
    deadLetters.bytesIn[deadLetterRecord.decode(record)?.store ?? 'dead_letters'] += record.length
  }
  openDeadLetterStores(state)
  if (value !== undefined) setRecordAside(key, value, repairs)
  putDeadLetterTotals(state, repairs)
  reportRecord(state, 'dead letters', 'their totals are lost; they were recounted')
}

function openDeadLetterStores({ stores, deadLetters: { bytesIn } }: SpoolState): void {
  for (const store of Object.keys(bytesIn) as DeadLetterStore[]) stores[store].bytes = bytesIn[store]
}

/** More than the records that an unreadable block holds: their numbers are not given again. */
const windowRecordsSkipped = 1_000_000

async function recoverWindow(state: SpoolState, repairs: StoreOp[]): Promise<void> {
  const { clock, window } = state
  const { windowMs } = state.options.window
  let skipped = 0
  const read = {
    range: tableRange(table.windowKeys),
    table: 'dedup' as const,
    isKey: isNumberKey,
    repairs,
    skipped: () => void (skipped = windowRecordsSkipped),
  }
  for await (const [key, value] of readTable(state, read)) {
    const n = numberOf(key)
    state.nextWindowRecord = Math.max(state.nextWindowRecord, n + 1)
    const record = decodeWindowKeys(value)
    // A lost record can let a duplicate pass once; the service deduplicates as well.
    if (record === null) reportRecord(state, 'dedup', 'the checksum of a record is wrong')
    const keys = record?.keys ?? Buffer.alloc(0)
    const ageMs = Math.min(Math.max(0, clock.now() - (record?.at ?? 0)), windowMs)
    for (let offset = 0; offset < keys.length; offset += storedKeyBytes) {
      window.loadBytes(keys, offset)
      window.renew()
    }
    window.endGroup(n, keys.length / storedKeyBytes, clock.monotonic() - ageMs)
  }
  state.nextWindowRecord += skipped
  state.committedWindowRecord = state.nextWindowRecord
}
