// ledger-world.ts: receipts as delivery makes them, and records on real LevelDB in a folder of their own.

import { join } from 'node:path'
import { hash } from 'node:crypto'
import { onTestFinished } from 'vitest'
import { createEntriesBuilder } from '../../src/receipts/entries-builder.ts'
import { idTextBytes, type Entry } from '../../src/receipts/receipt-entries.ts'
import { encodeReceipt, receiptKeys } from '../../src/receipts/receipts.ts'
import type { BatchId, LaneId, ProviderName } from '../../src/domain/ids.ts'
import type { Settlement } from '../../src/domain/settlement.ts'
import {
  openRecords,
  type NumberedReceipt,
  type Records,
  type RecordsOptions,
} from '../../src/ledger/ledger-records.ts'
import type { LedgerQuery } from '../../src/ledger/ledger.ts'
import { search } from '../../src/ledger/ledger-search.ts'
import { systemClock } from '../../src/std/clock.ts'
import { openLevelStore } from '../../src/storage/storage.ts'
import { newFolder } from './folders.ts'

export const startAt = 1_763_690_000_000

/** The entries of a receipt, as the sender thread packs them. */
export function encodeEntries(entries: readonly Entry[], moreKeys = 0): Uint8Array<ArrayBuffer> {
  const ids = Buffer.alloc(entries.length * idTextBytes)
  const builder = createEntriesBuilder(ids, entries.length)
  for (const [index, { payloadId, deviceTime, device }] of entries.entries()) {
    const at = index * idTextBytes
    ids.write(payloadId, at, 'latin1')
    const name = Buffer.from(device ?? '')
    builder.add(at, deviceTime ?? Number.NaN, device === null ? 0 : builder.device(name, 0, name.length))
  }
  return builder.finish(moreKeys)
}

export function uuidNamed(name: string): string {
  const digits = hash('sha256', name, 'hex')
  return [
    digits.slice(0, 8),
    digits.slice(8, 12),
    `8${digits.slice(13, 16)}`,
    `a${digits.slice(17, 20)}`,
    digits.slice(20, 32),
  ].join('-')
}

export function receiptOf(
  entries: readonly Entry[],
  more: Partial<{ batch: string; request: string | null; at: number; fates: Settlement['payloads'] }> = {},
): Buffer {
  return encodeReceipt({
    provider: 'default' as ProviderName,
    lane: 1 as LaneId,
    batchId: (more.batch ?? uuidNamed('batch')) as BatchId,
    requestId: more.request === undefined ? 'request-1' : more.request,
    at: more.at ?? startAt,
    entries: encodeEntries(entries, receiptKeys),
    settlements: more.fates ?? 'all delivered',
  })
}

/** Receipt `n` with `payloads` payloads of truck-0, truck-1 and so on, a second apart, from minute `n` on. */
export function receiptNumbered(n: number, payloads = 3): NumberedReceipt {
  const entries = Array.from({ length: payloads }, (_, index) => ({
    payloadId: uuidNamed(`${n} ${index}`),
    deviceTime: startAt + n * 60_000 + index * 1000,
    device: `truck-${index}`,
  }))
  const at = startAt + n * 60_000 + 30_000
  return { n, value: receiptOf(entries, { batch: uuidNamed(`batch ${n}`), request: `request-${n}`, at }) }
}

export type RecordsWorld = {
  records: Records
  path: string
  ask(query: Partial<LedgerQuery>): ReturnType<typeof search>
  /** The payloadIds of all entries, newest first, read in answers of `limit`. */
  all(limit?: number): Promise<string[]>
  reopen(): Promise<RecordsWorld>
}

export async function openRecordsWorld(
  options: { path?: string } & Partial<RecordsOptions> = {},
): Promise<RecordsWorld> {
  const path = options.path ?? join(await newFolder(), 'records')
  const { blockReceiptBytesMax = 1024 * 1024, blockAgeMaxMs = Infinity } = options
  const records = await openRecords(await openLevelStore(path), { blockReceiptBytesMax, blockAgeMaxMs })
  onTestFinished(() => records.close())

  const ask = (query: Partial<LedgerQuery>) =>
    search(records, { limit: 100, ...query }, { clock: systemClock, signal: new AbortController().signal })
  return {
    records,
    path,
    ask,
    async all(limit = 7) {
      const ids: string[] = []
      for (let after: string | null | undefined; after !== null;) {
        const answer = await ask({ limit, ...(after === undefined ? {} : { after }) })
        ids.push(...answer.entries.map(({ payloadId }) => payloadId))
        after = answer.next
      }
      return ids
    },
    async reopen() {
      await records.close()
      return openRecordsWorld({ ...options, path })
    },
  }
}
