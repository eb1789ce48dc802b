// batch-parts.ts: the number of parts that a batch is cut into, before it is sent or after a refusal.

import type { Batch, BatchOperation } from '../../spool/spool.ts'
import type { SizeLimit } from '../policy/size-limit.ts'

/** After this many refusals in a row the wrapper is suspected. A batch of one payload then tests it best. */
const suspiciousRefusals = 3

/** Parts of a batch that was refused with `status`, as one of `refusals` in a row. */
export function partsOfRefused(
  payloads: number,
  status: number,
  refusals: number,
  { refusalsToUnavailable }: { refusalsToUnavailable: number },
): readonly number[] {
  const suspicious = status === 400 && refusals >= suspiciousRefusals && refusals < refusalsToUnavailable
  const first = suspicious ? 1 : Math.ceil(payloads / 2)
  return [first, payloads - first]
}

type Cut = { parts: readonly number[]; why: string }

/**
 * Parts of a batch that goes by the batch operation; null where it goes as it is. A lowered size limit cuts
 * only what was never sent: after that the batch keeps its batchId and its bytes.
 */
export function partsBeforeSending(
  { payloads, bytes }: Pick<Batch, 'payloads' | 'bytes'>,
  { mode, sent, sizeLimit }: { mode: BatchOperation; sent: boolean; sizeLimit: SizeLimit },
): Cut | null {
  if (payloads === 1) return null
  if (mode === 'single') return { parts: Array<number>(payloads).fill(1), why: 'delivery.mode is single.' }
  if (!sizeLimit.lowered || sent) return null
  const count = Math.min(payloads, Math.ceil(bytes / sizeLimit.bytesMax))
  if (count < 2) return null
  return { parts: evenly(payloads, count), why: 'The service refused smaller batches as too large.' }
}

/** The sizes are whole numbers that differ by at most one. */
function evenly(payloads: number, count: number): readonly number[] {
  const least = Math.floor(payloads / count)
  return Array.from({ length: count }, (_, index) => least + (index < payloads % count ? 1 : 0))
}
