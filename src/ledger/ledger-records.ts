// ledger-records.ts: the receipts of the ledger in one open store: appended in order of their numbers,
// dropped from the oldest on, an index block at a time.
//
// A receipt's number here is its number in the spool plus a base. A receipt that comes a second time, because
// the process ended between the copy and its removal from the spool, is recognised by its number and skipped.
// The base is 0 until the numbers of the spool start again, with a new spool beside old records: then a
// number that exists belongs to another receipt, and the base moves all that follows behind it.
//
// After a rejection of append() or dropOldest() close the store and open it again: memory may be ahead of it.

import { timeUnknown } from '../domain/arrival.ts'
import type { EpochMs } from '../std/clock.ts'
import { decodeReceipt, receiptHead, type Receipt } from '../receipts/receipts.ts'
import type { ReadOptions, Store, StoreOp, StoreRange } from '../storage/storage.ts'
import { everything, formatKey, isIndexBlock, numberRange, receiptKey, indexBlockKey } from './record-keys.ts'
import {
  beginBlock,
  decodeBlock,
  resumeBlock,
  type OpenIndexBlock,
  type IndexBlock,
} from './receipt-index.ts'

export type NumberedReceipt = { n: number; value: Buffer }

export type RecordTotals = {
  /** Payloads, and bytes of receipts and index blocks. */
  records: number
  bytes: number
  /** Last write to the oldest index block; null where there is none, and while its time is not known. */
  oldestAt: EpochMs | null
}

export type Records = {
  /**
   * Takes receipts in ascending order. One write, not synced. Damaged ones are left out and counted. `now`:
   * `timeUnknown` while our time is not known.
   */
  append(receipts: readonly NumberedReceipt[], now: EpochMs): Promise<{ damaged: number }>
  /** Drops the oldest index block with its receipts; resolves with the number of their payloads. */
  dropOldest(): Promise<number>
  totals(): RecordTotals
  /**
   * An oldest index block without a time gets that of the first one behind it that has one, else `now`: its
   * age counts from then, in this process.
   */
  dateOldest(now: EpochMs): Promise<void>
  /** Settlement time of the oldest payload; null where there is none. */
  beginsAt(): Promise<EpochMs | null>
  /** Newest first, from the one that holds `number` on. Damaged ones are left out. */
  indexBlocks(number: number): AsyncGenerator<IndexBlock>
  receipt(number: number): Promise<Receipt | null>
  /** Puts another receipt in the place of one, or deletes it. The index stays. */
  replace(number: number, value: Buffer | null): Promise<void>
  /** Frees the disk space of what was dropped. */
  compact(): Promise<void>
  /** For the tables of others in the same database. */
  readonly store: Pick<Store, 'write' | 'pages'>
  close(): Promise<void>
}

export type RecordsOptions = {
  /** Bytes of receipts in one index block, which is the unit that is dropped. */
  blockReceiptBytesMax: number
  /** The age at which an index block ends. A block is deleted as a whole, so an old one keeps old entries. */
  blockAgeMaxMs: number
}

const formatVersion = '1'
const blockBytesMax = 64 * 1024
const blockEntriesMax = 256

type Oldest = Pick<IndexBlock, 'first' | 'payloadsBefore' | 'bytesBefore' | 'writtenAt'>

/** Rejects with an error whose code is LEVEL_CORRUPTION where the records cannot be used. */
export async function openRecords(
  store: Store,
  { blockReceiptBytesMax, blockAgeMaxMs }: RecordsOptions,
): Promise<Records> {
  await checkFormat(store)
  let oldest: Oldest | null = await oldestBlock(store, 0)
  let open: OpenIndexBlock | null = await newestBlock(store)
  /** Numbers below were used; none of them is used again. */
  let end = open?.end ?? 0
  let base = open?.head.base ?? 0
  let baseIsKnown = false
  const after = {
    payloads: open === null ? 0 : open.head.payloadsBefore + open.head.payloads,
    bytes: open === null ? 0 : open.head.bytesBefore + open.head.bytes + open.size,
  }

  return {
    append,
    dropOldest,
    totals,
    dateOldest,
    beginsAt,
    indexBlocks,
    receipt,
    replace,
    compact,
    store,
    close: () => store.close(),
  }

  async function append(receipts: readonly NumberedReceipt[], now: EpochMs): Promise<{ damaged: number }> {
    if (!baseIsKnown) await findBase(receipts)
    const ops: StoreOp[] = []
    let damaged = 0
    for (const { n, value } of receipts) {
      const number = n + base
      if (number < end) continue
      const head = receiptHead(value)
      if (head === null) {
        damaged += 1
        continue
      }
      open = blockFor(number, ops, now)
      open.add(number, head, value)
      end = number + 1
      ops.push({ type: 'put', key: receiptKey(number), value })
    }
    if (open !== null && ops.length > 0) putBlock(open, ops, now)
    if (ops.length > 0) await store.write(ops, { sync: false })
    return { damaged }
  }

  /** The index block that the receipt goes to. */
  function blockFor(number: number, ops: StoreOp[], now: EpochMs): OpenIndexBlock {
    const full =
      open !== null &&
      (open.size >= blockBytesMax ||
        open.head.entries >= blockEntriesMax ||
        open.head.bytes >= blockReceiptBytesMax ||
        open.head.base !== base ||
        isOld(open, now) ||
        number - open.head.first >= 2 ** 32)
    if (open !== null && !full) return open
    if (open !== null) putBlock(open, ops, now)
    const { payloads: payloadsBefore, bytes: bytesBefore } = after
    const before = open?.head.first ?? null
    const next = beginBlock({ first: number, before, base, payloadsBefore, bytesBefore }, now)
    oldest ??= { first: number, payloadsBefore, bytesBefore, writtenAt: now }
    return next
  }

  function isOld(block: OpenIndexBlock, now: EpochMs): boolean {
    if (now === timeUnknown) return false
    if (block.beganAt === timeUnknown) block.beganAt = now
    return now - block.beganAt >= blockAgeMaxMs
  }

  function putBlock(block: OpenIndexBlock, ops: StoreOp[], now: EpochMs): void {
    ops.push({ type: 'put', key: indexBlockKey(block.head.first), value: block.encode(now) })
    after.payloads = block.head.payloadsBefore + block.head.payloads
    after.bytes = block.head.bytesBefore + block.head.bytes + block.size
    if (oldest !== null && oldest.first === block.head.first) oldest.writtenAt = now
  }

  /** Finds out whether the numbers of the spool continue or start again: compares an existing receipt. */
  async function findBase(receipts: readonly NumberedReceipt[]): Promise<void> {
    const whole = receipts.find(({ value }) => receiptHead(value) !== null)
    if (whole === undefined) return
    const number = whole.n + base
    if (number < end) {
      const known = await store.get(receiptKey(number))
      if (known === undefined || !known.equals(whole.value)) base = end - whole.n
    }
    baseIsKnown = true
  }

  async function dropOldest(): Promise<number> {
    if (oldest === null) return 0
    const isOpen = open !== null && open.head.first === oldest.first
    const next = isOpen ? null : await blockBehind(store, oldest.first)
    const until = next?.first ?? end
    const ops: StoreOp[] = []
    // Receipts are read to be deleted. That is a megabyte, once for each megabyte that was added.
    for await (const page of store.pages(numberRange(oldest.first, until)))
      for (const [key] of page) ops.push({ type: 'del', key })
    if (ops.length > 0) await store.write(ops, { sync: false })
    const payloadsBefore = next?.payloadsBefore ?? after.payloads
    const payloads = payloadsBefore - oldest.payloadsBefore
    oldest = next
    if (isOpen) open = null
    return payloads
  }

  function totals(): RecordTotals {
    if (oldest === null) return { records: 0, bytes: 0, oldestAt: null }
    const { payloadsBefore, bytesBefore, writtenAt } = oldest
    return {
      records: after.payloads - payloadsBefore,
      bytes: after.bytes - bytesBefore,
      oldestAt: writtenAt === timeUnknown ? null : writtenAt,
    }
  }

  async function dateOldest(now: EpochMs): Promise<void> {
    let block = oldest
    while (block?.writtenAt === timeUnknown) block = await blockBehind(store, block.first)
    if (oldest !== null) oldest.writtenAt = block?.writtenAt ?? now
  }

  async function* indexBlocks(number: number): AsyncGenerator<IndexBlock> {
    let next = open === null || open.head.first > number ? await blockAt(number) : copyOf(open)
    while (next !== null) {
      yield next
      const { before, first } = next
      if (oldest === null || before === null || before < oldest.first) return
      const value = await store.get(indexBlockKey(before))
      const block = value === undefined ? null : decodeBlock(value)
      next = block ?? (await blockAt(first - 1))
    }
  }

  /** The newest readable index block that starts at `number` or before it. */
  async function blockAt(number: number): Promise<IndexBlock | null> {
    if (oldest === null || number < oldest.first) return null
    return firstBlockOf(store, numberRange(oldest.first, number + 1), { reverse: true })
  }

  async function receipt(number: number): Promise<Receipt | null> {
    const value = await store.get(receiptKey(number))
    return value === undefined ? null : decodeReceipt(value)
  }

  async function replace(number: number, value: Buffer | null): Promise<void> {
    const key = receiptKey(number)
    await store.write([value === null ? { type: 'del', key } : { type: 'put', key, value }], { sync: false })
  }

  async function beginsAt(): Promise<EpochMs | null> {
    if (oldest === null) return null
    const value = await store.get(receiptKey(oldest.first))
    const head = value === undefined ? null : receiptHead(value)
    return head?.at ?? totals().oldestAt
  }

  async function compact(): Promise<void> {
    await store.compact(numberRange(0, oldest?.first ?? end))
  }
}

/** A search must not see an index block that grows meanwhile. */
function copyOf(open: OpenIndexBlock): IndexBlock | null {
  return decodeBlock(open.encode(open.head.writtenAt))
}

async function checkFormat(store: Store): Promise<void> {
  const version = await store.get(formatKey)
  if (version === undefined) {
    await store.write([{ type: 'put', key: formatKey, value: Buffer.from(formatVersion) }], { sync: false })
    return
  }
  if (version.toString() !== formatVersion)
    throw unusable(`its format is ${version.toString('latin1', 0, 20)}`)
}

/** The first readable index block from `number` on. */
async function oldestBlock(store: Store, number: number): Promise<IndexBlock | null> {
  // Usually it is the first key; receipts come first only behind a damaged index block.
  const range = { gte: indexBlockKey(number), lt: everything.lt }
  return (await firstBlockOf(store, range, { limit: 1 })) ?? firstBlockOf(store, range, {})
}

/** The first readable index block behind the one that starts at `first`, and behind its receipts. */
async function blockBehind(store: Store, first: number): Promise<IndexBlock | null> {
  const value = await store.get(indexBlockKey(first))
  const block = value === undefined ? null : decodeBlock(value)
  const [last] = block?.newestFirst() ?? []
  return oldestBlock(store, (last?.number ?? first) + 1)
}

async function firstBlockOf(
  store: Store,
  range: StoreRange,
  options: ReadOptions,
): Promise<IndexBlock | null> {
  for await (const page of store.pages(range, options))
    for (const [key, value] of page) {
      const block = isIndexBlock(key) ? decodeBlock(value) : null
      if (block !== null) return block
    }
  return null
}

/** The last index block. Receipts behind it lost theirs in a power cut; they are dropped with this one. */
async function newestBlock(store: Store): Promise<OpenIndexBlock | null> {
  for await (const page of store.pages(everything, { reverse: true }))
    for (const [key, value] of page) {
      if (!isIndexBlock(key)) continue
      const block = resumeBlock(value)
      if (block === null) throw unusable('its last index block is damaged')
      return block
    }
  return null
}

function unusable(why: string): Error {
  return Object.assign(new Error(why), { code: 'LEVEL_CORRUPTION' })
}
