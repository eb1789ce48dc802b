// batch-parts.ts: the parts that a batch is cut into before it is sent. After a refusal it is halved
// (verdict.ts).

import type { Batch, BatchOperation } from '../../spool/spool.ts'
import type { Pacing } from '../pacing/pacing.ts'

type CutBy = Pick<Pacing, 'sizeLimit' | 'goodput' | 'bytesMax'>

type Cut = { parts: readonly number[]; why: string }

/**
 * Parts of a batch that goes by the batch operation; null where it goes as it is. A lowered size limit cuts
 * only what was never sent: after that the batch keeps its batchId and its bytes.
 */
export function partsBeforeSending(
  { payloads, bytes }: Pick<Batch, 'payloads' | 'bytes'>,
  { mode, sent, pacing }: { mode: BatchOperation; sent: boolean; pacing: CutBy },
): Cut | null {
  if (payloads === 1) return null
  if (mode === 'single') return { parts: evenly(payloads, payloads), why: 'delivery.mode is single.' }
  if (sent) return null
  const { sizeLimit, goodput } = pacing
  // A link changes slowly: a batch that is somewhat too large goes as it is.
  const tooLarge = sizeLimit.lowered() && bytes > sizeLimit.bytesMax()
  if (!tooLarge && bytes <= 2 * goodput.bytesMax()) return null
  const count = Math.min(payloads, Math.ceil(bytes / pacing.bytesMax()))
  if (count < 2) return null
  const why = tooLarge
    ? 'The service refused smaller batches as too large.'
    : 'The link to the service is too slow for a batch of this size.'
  return { parts: evenly(payloads, count), why }
}

/** The sizes differ by at most one; the first parts are the larger ones. */
export function evenly(payloads: number, count: number): number[] {
  const least = Math.floor(payloads / count)
  return Array.from({ length: count }, (_, index) => least + (index < payloads % count ? 1 : 0))
}
