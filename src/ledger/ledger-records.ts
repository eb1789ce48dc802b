// ledger-records.ts: the receipts as they are kept, in one open store: appended in the order of their numbers, dropped from the
// oldest on, a block at a time.
//
// A receipt's number here is the spool's number of it plus a base, so a receipt that comes a second time (the process
// died between the copy and the forgetting) is known by its number and skipped. The base is 0 until the numbers of
// the spool begin again, with a new spool beside old records: then a number that is taken holds another receipt,
// and the base moves all that follows behind it.
//
// After a rejection of append() or drop() the store must be closed and opened again: what is in memory may be ahead of it.

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
  /** Payloads that can be asked for, and bytes of all that is kept. */
  records: number
  bytes: number
  /** When the oldest block was last written to; null where there is none. */
  oldestAt: EpochMs | null
}

export type Records = {
  /** In ascending order. One write, which is not synced; gives how many were damaged and left out. */
  append(receipts: readonly NumberedReceipt[], now: EpochMs): Promise<{ damaged: number }>
  /** Drops the oldest block; gives how many payloads that were. */
  dropOldest(): Promise<number>
  totals(): RecordTotals
  /** When the oldest payload that can be asked for was settled; null where there is none. */
  beginsAt(): Promise<EpochMs | null>
  /** Newest first, from the one that holds `number` on; index blocks that are damaged are left out. */
  indexBlocks(number: number): AsyncGenerator<IndexBlock>
  receipt(number: number): Promise<Receipt | null>
  /** Gives the disk of what was dropped back. */
  compact(): Promise<void>
  close(): Promise<void>
}

export type RecordsOptions = {
  /** Bytes of receipts under one block; what is dropped at once. */
  blockReceiptBytesMax: number
}

const formatVersion = '1'
const blockBytesMax = 64 * 1024
const blockEntriesMax = 256

type Oldest = Pick<IndexBlock, 'first' | 'payloadsBefore' | 'bytesBefore' | 'writtenAt'>

/** Rejects with an error whose code is LEVEL_CORRUPTION where the records cannot be used. */
export async function openRecords(store: Store, { blockReceiptBytesMax }: RecordsOptions): Promise<Records> {
  await checkFormat(store)
  let oldest: Oldest | null = await oldestBlock(store, 0)
  let open: OpenIndexBlock | null = await newestBlock(store)
  /** Numbers below were given; none of them is given again. */
  let end = open?.end ?? 0
  let base = open?.head.base ?? 0
  let baseIsSure = false
  const after = {
    payloads: open === null ? 0 : open.head.payloadsBefore + open.head.payloads,
    bytes: open === null ? 0 : open.head.bytesBefore + open.head.bytes + open.size,
  }

  return { append, dropOldest, totals, beginsAt, indexBlocks, receipt, compact, close: () => store.close() }

  async function append(receipts: readonly NumberedReceipt[], now: EpochMs): Promise<{ damaged: number }> {
    if (!baseIsSure) await findBase(receipts)
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

  /** The block that the receipt goes to. */
  function blockFor(number: number, ops: StoreOp[], now: EpochMs): OpenIndexBlock {
    const full =
      open !== null &&
      (open.size >= blockBytesMax ||
        open.head.lines >= blockEntriesMax ||
        open.head.bytes >= blockReceiptBytesMax ||
        open.head.base !== base ||
        number - open.head.first >= 2 ** 32)
    if (open !== null && !full) return open
    if (open !== null) putBlock(open, ops, now)
    const { payloads: payloadsBefore, bytes: bytesBefore } = after
    const next = beginBlock({
      first: number,
      before: open?.head.first ?? null,
      base,
      payloadsBefore,
      bytesBefore,
    })
    oldest ??= { first: number, payloadsBefore, bytesBefore, writtenAt: now }
    return next
  }

  function putBlock(block: OpenIndexBlock, ops: StoreOp[], now: EpochMs): void {
    ops.push({ type: 'put', key: indexBlockKey(block.head.first), value: block.encode(now) })
    after.payloads = block.head.payloadsBefore + block.head.payloads
    after.bytes = block.head.bytesBefore + block.head.bytes + block.size
    if (oldest !== null && oldest.first === block.head.first) oldest.writtenAt = now
  }

  /** Whether the spool's numbers go on where they were, or begin again: what is known by its number is the same. */
  async function findBase(receipts: readonly NumberedReceipt[]): Promise<void> {
    const whole = receipts.find(({ value }) => receiptHead(value) !== null)
    if (whole === undefined) return
    const number = whole.n + base
    if (number < end) {
      const known = await store.get(receiptKey(number))
      if (known === undefined || !known.equals(whole.value)) base = end - whole.n
    }
    baseIsSure = true
  }

  async function dropOldest(): Promise<number> {
    if (oldest === null) return 0
    const isOpen = open !== null && open.head.first === oldest.first
    const next = isOpen ? null : await blockBehind(store, oldest.first)
    const until = next?.first ?? end
    const ops: StoreOp[] = []
    // Its receipts are read along, which costs little: this is a megabyte, once for so much that was added.
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
      oldestAt: writtenAt,
    }
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

  /** The newest readable block that begins with `number` or before it. */
  async function blockAt(number: number): Promise<IndexBlock | null> {
    if (oldest === null || number < oldest.first) return null
    return firstBlockOf(store, numberRange(oldest.first, number + 1), { reverse: true })
  }

  async function receipt(number: number): Promise<Receipt | null> {
    const value = await store.get(receiptKey(number))
    return value === undefined ? null : decodeReceipt(value)
  }

  async function beginsAt(): Promise<EpochMs | null> {
    if (oldest === null) return null
    const value = await store.get(receiptKey(oldest.first))
    const head = value === undefined ? null : receiptHead(value)
    return head?.at ?? oldest.writtenAt
  }

  async function compact(): Promise<void> {
    await store.compact(numberRange(0, oldest?.first ?? end))
  }
}

/** What a question sees does not grow meanwhile. */
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

/** The first readable block from `number` on. */
async function oldestBlock(store: Store, number: number): Promise<IndexBlock | null> {
  // Usually it is the very first key; only behind a damaged block come receipts.
  const range = { gte: indexBlockKey(number), lt: everything.lt }
  return (await firstBlockOf(store, range, { limit: 1 })) ?? firstBlockOf(store, range, {})
}

/** The first readable block behind that which begins with `first`, and behind its receipts. */
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

/** The last block. Receipts behind it belong to none: a power cut took it; they are left to be dropped with it. */
async function newestBlock(store: Store): Promise<OpenIndexBlock | null> {
  for await (const page of store.pages(everything, { reverse: true }))
    for (const [key, value] of page) {
      if (!isIndexBlock(key)) continue
      const block = resumeBlock(value)
      if (block === null) throw unusable('its last block is damaged')
      return block
    }
  return null
}

function unusable(why: string): Error {
  return Object.assign(new Error(why), { code: 'LEVEL_CORRUPTION' })
}
