// ledger-search.ts: answers a query from the records, newest first. It reads the index blocks, and only those
// receipts that may match; it ends at the limit or after `searchMs`, and returns where to continue.

import type { Clock } from '../std/clock.ts'
import { hashOfDevice, hashOfId } from '../receipts/receipt-entries.ts'
import { hashOfKey, outcomeBits, type Receipt } from '../receipts/receipts.ts'
import type { Records } from './ledger-records.ts'
import type { IndexEntry } from './receipt-index.ts'
import type { Cursor, LedgerAnswer, LedgerEntry, LedgerQuery } from './types.ts'

/** A search of a large ledger for something rare must not run for minutes; the caller continues it. */
const searchMs = 5000
/** Above any number of payloads in a batch. */
const indexMax = 999_999_999

export async function search(
  records: Records,
  query: LedgerQuery,
  { clock, signal }: { clock: Clock; signal: AbortSignal },
): Promise<Pick<LedgerAnswer, 'entries' | 'next'>> {
  const untilMs = clock.monotonic() + searchMs
  const mayMatch = filterOf(query)
  const entries: LedgerEntry[] = []
  const after = query.after === undefined ? null : cursorOf(query.after)
  const from = after?.number ?? Number.MAX_SAFE_INTEGER
  for await (const block of records.indexBlocks(from)) {
    for (const indexEntry of block.newestFirst()) {
      const { number } = indexEntry
      if (number > from || !mayMatch(indexEntry)) continue
      const receipt = await records.receipt(number)
      // Null where it was dropped meanwhile, or is damaged.
      if (receipt === null) continue
      const last = collect(receipt, number, { query, after }, entries)
      if (last !== null) return { entries, next: cursorText(last) }
    }
    if (clock.monotonic() > untilMs || signal.aborted) {
      const next = block.before === null ? null : { number: block.first - 1, index: indexMax }
      return { entries, next: next === null ? null : cursorText(next) }
    }
  }
  return { entries, next: null }
}

/** What an index entry must have for its receipt to be read. */
function filterOf({ device, payload, batch, request, outcome, from, to }: LedgerQuery) {
  const hashes: number[] = []
  if (device !== undefined) hashes.push(hashOfDevice(device))
  if (payload !== undefined) hashes.push(hashOfId(payload))
  if (batch !== undefined) hashes.push(hashOfKey(batch))
  if (request !== undefined) hashes.push(hashOfKey(request))
  const bits = outcome === undefined ? null : outcomeBits[outcome]
  return (indexEntry: IndexEntry): boolean => {
    if (bits !== null && (indexEntry.outcomes & bits) === 0) return false
    if (from !== undefined && (indexEntry.latest === null || indexEntry.latest < from)) return false
    if (to !== undefined && (indexEntry.earliest === null || indexEntry.earliest > to)) return false
    return hashes.every((hash) => indexEntry.mayHold(hash))
  }
}

/** Adds the matching payloads, last one first. Returns the last one added where the limit is reached. */
function collect(
  receipt: Receipt,
  number: number,
  { query, after }: { query: LedgerQuery; after: Cursor | null },
  entries: LedgerEntry[],
): Cursor | null {
  const { batch, request, limit } = query
  if (batch !== undefined && receipt.batchId.toLowerCase() !== batch.toLowerCase()) return null
  if (request !== undefined && receipt.requestId?.toLowerCase() !== request.toLowerCase()) return null
  const before = after?.number === number ? after.index : Number.POSITIVE_INFINITY
  for (const index of indexesOf(receipt, query).reverse()) {
    if (index >= before) continue
    const entry = entryOf(receipt, index)
    if (!matches(entry, query)) continue
    entries.push(entry)
    if (entries.length >= limit) return { number, index }
  }
  return null
}

function indexesOf({ entries }: Receipt, { payload, device }: LedgerQuery): number[] {
  if (payload !== undefined) return [...entries.ofPayload(payload)]
  if (device !== undefined) return [...entries.ofDevice(device)]
  return Array.from({ length: entries.count }, (_, index) => index)
}

function entryOf(receipt: Receipt, index: number): LedgerEntry {
  const { provider, lane, batchId, requestId, at, entries, settlement } = receipt
  return { at, ...entries.at(index), ...settlement(index), provider, lane, batchId, requestId }
}

function matches({ device, deviceTime, outcome }: LedgerEntry, query: LedgerQuery): boolean {
  const { from, to } = query
  if (query.outcome !== undefined && outcome !== query.outcome) return false
  if (query.device !== undefined && query.payload !== undefined && device !== query.device) return false
  if (from !== undefined && (deviceTime === null || deviceTime < from)) return false
  return to === undefined || (deviceTime !== null && deviceTime <= to)
}

function cursorText({ number, index }: Cursor): string {
  return `${number}.${index}`
}

/** Of a text by `cursorText`; its form was checked where it came in. */
function cursorOf(text: string): Cursor {
  const [number, index] = text.split('.').map(Number)
  return { number: number ?? 0, index: index ?? 0 }
}
