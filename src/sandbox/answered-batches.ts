// answered-batches.ts: the answers to earlier batches, so that a repeated batchId gets the same breakdown
// again.
//
// Bounded by number and by bytes (about 20 KB for 500 payloads). At the bound the least recently used batch
// is forgotten and counted; when it comes again, the service treats it as new. The number of a batch, four
// bytes beside its id, is kept much longer, so its payloads still count as duplicates of their own batch.

import { createIdTable } from './id-table.ts'

type Remembered = {
  /** SHA-256 of the body of the first submission, in hexadecimal. */
  bodyHash: string
  /** JSON of accepted, failed and summary. */
  breakdown: string
  payloads: number
}

export type Repeats = {
  find(batchId: string): Remembered | null
  remember(batchId: string, batch: Remembered): void
  /** The same for every submission of this batchId; never 0. */
  numberOf(batchId: string): number
  readonly size: number
  readonly forgotten: number
}

const numbersMax = 2_000_000

export function createRepeats(limits: { batchesMax: number; bytesMax: number }): Repeats {
  // A Map keeps the order of insertion. A batch that is found is inserted again, so the first is the oldest.
  const batches = new Map<string, { batch: Omit<Remembered, 'breakdown'>; breakdown: Buffer }>()
  const numbers = createIdTable(numbersMax)
  let lastNumber = 0
  let bytes = 0
  let forgotten = 0

  return {
    find(batchId) {
      const key = batchId.toLowerCase()
      const entry = batches.get(key)
      if (!entry) return null
      batches.delete(key)
      batches.set(key, entry)
      return { ...entry.batch, breakdown: entry.breakdown.toString() }
    },
    remember(batchId, { bodyHash, payloads, breakdown }) {
      const key = batchId.toLowerCase()
      const entry = { batch: { bodyHash, payloads }, breakdown: Buffer.from(breakdown) }
      bytes += entry.breakdown.length - (batches.get(key)?.breakdown.length ?? 0)
      batches.delete(key)
      batches.set(key, entry)
      for (const [oldest, { breakdown }] of batches) {
        if (batches.size <= limits.batchesMax && bytes <= limits.bytesMax) break
        batches.delete(oldest)
        bytes -= breakdown.length
        forgotten += 1
      }
    },
    numberOf(batchId) {
      const known = numbers.note(batchId, lastNumber + 1)
      if (known !== null) return known
      lastNumber += 1
      return lastNumber
    },
    get size() {
      return batches.size
    },
    get forgotten() {
      return forgotten
    },
  }
}
