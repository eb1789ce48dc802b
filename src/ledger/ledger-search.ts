// ledger-search.ts: answers a question from the records, the newest first. It reads the index blocks, and of the receipts those alone that
// may hold an answer; it ends at the limit or after `searchMs`, and says where to go on.

import type { Clock } from '../std/clock.ts'
import { hashOfDevice, hashOfId } from '../receipts/receipt-entries.ts'
import { hashOfKey, outcomeBits, type Receipt } from '../receipts/receipts.ts'
import type { LedgerAnswer, LedgerEntry } from './ledger.ts'
import { cursorText, type Cursor, type LedgerQuery } from './ledger-query.ts'
import type { Records } from './ledger-records.ts'
import type { IndexEntry } from './receipt-index.ts'

/** What was found before it failed or the time was up is no answer to "never", so the answer says it. */
const searchMs = 5000
/** Above any number of payloads in a batch. */
const indexMax = 999_999_999

export async function search(
  records: Records,
  question: LedgerQuery,
  { clock, signal }: { clock: Clock; signal: AbortSignal },
): Promise<Pick<LedgerAnswer, 'entries' | 'next'>> {
  const untilMs = clock.monotonic() + searchMs
  const mayHold = filterOf(question)
  const entries: LedgerEntry[] = []
  const from = question.after?.number ?? Number.MAX_SAFE_INTEGER
  for await (const block of records.indexBlocks(from)) {
    for (const line of block.newestFirst()) {
      if (line.number > from || !mayHold(line)) continue
      const receipt = await records.receipt(line.number)
      // Dropped meanwhile, or damaged.
      if (receipt === null) continue
      const last = collect(receipt, line.number, question, entries)
      if (last !== null) return { entries, next: cursorText(last) }
    }
    if (clock.monotonic() > untilMs || signal.aborted) {
      const next = block.before === null ? null : { number: block.first - 1, index: indexMax }
      return { entries, next: next === null ? null : cursorText(next) }
    }
  }
  return { entries, next: null }
}

/** What a line must have for its receipt to be read. */
function filterOf(question: LedgerQuery): (line: IndexEntry) => boolean {
  const { device, payload, batch, request, outcome, from, to } = question
  const hashes: number[] = []
  if (device !== undefined) hashes.push(hashOfDevice(device))
  if (payload !== undefined) hashes.push(hashOfId(payload))
  if (batch !== undefined) hashes.push(hashOfKey(batch))
  if (request !== undefined) hashes.push(hashOfKey(request))
  const bits = outcome === undefined ? null : outcomeBits[outcome]
  return (line) => {
    if (bits !== null && (line.outcomes & bits) === 0) return false
    if (from !== undefined && (line.latest === null || line.latest < from)) return false
    if (to !== undefined && (line.earliest === null || line.earliest > to)) return false
    return hashes.every((hash) => line.mayHold(hash))
  }
}

/** Adds what fits, the last payload first; gives the last one added where the limit is reached and more may follow. */
function collect(
  receipt: Receipt,
  number: number,
  question: LedgerQuery,
  entries: LedgerEntry[],
): Cursor | null {
  const { after, batch, request, limit } = question
  if (batch !== undefined && receipt.batchId.toLowerCase() !== batch.toLowerCase()) return null
  if (request !== undefined && receipt.requestId?.toLowerCase() !== request.toLowerCase()) return null
  const indexes = indexesOf(receipt, question)
  const before = after !== undefined && after.number === number ? after.index : Number.POSITIVE_INFINITY
  for (const index of indexes.reverse()) {
    if (index >= before) continue
    const entry = entryOf(receipt, index)
    if (!holds(entry, question)) continue
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

function entryOf(
  { provider, lane, batchId, requestId, at, entries, settlement }: Receipt,
  index: number,
): LedgerEntry {
  return { at, ...entries.at(index), ...settlement(index), provider, lane, batchId, requestId }
}

function holds({ device, deviceTime, outcome }: LedgerEntry, question: LedgerQuery): boolean {
  const { from, to } = question
  if (question.outcome !== undefined && outcome !== question.outcome) return false
  if (question.device !== undefined && question.payload !== undefined && device !== question.device)
    return false
  if (from !== undefined && (deviceTime === null || deviceTime < from)) return false
  return to === undefined || (deviceTime !== null && deviceTime <= to)
}
