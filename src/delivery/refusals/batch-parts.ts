// batch-parts.ts: the number of parts that a batch is cut into, before it is sent or after a refusal.

import type { Batch, BatchOperation } from '../../spool/spool.ts'
import type { Pacing } from '../pacing/pacing.ts'

/** After this many refusals in a row the wrapper is suspected. A batch of one payload then tests it best. */
const suspiciousRefusals = 3

/** At this many parts the fault is near enough to halve from there. */
const partsMax = 16

export type Refused = {
  payloads: number
  status: number
  /** In a row, this one included. */
  refusals: number
  /** Places of the payloads that are like those at fault before (suspects.ts), ascending. */
  suspects: readonly number[]
  /** Share of payloads at fault; null while unknown. */
  share: number | null
}

/** Parts of a batch that was refused. */
export function partsOfRefused(
  { payloads, status, refusals, suspects, share }: Refused,
  { refusalsToUnavailable }: { refusalsToUnavailable: number },
): readonly number[] {
  const suspicious = status === 400 && refusals >= suspiciousRefusals && refusals < refusalsToUnavailable
  if (suspicious) return [1, payloads - 1]
  if (suspects.length > 0 && suspects.length < payloads) return aroundSuspects(payloads, suspects)
  // A part of this size is accepted about every second time, which tells most.
  const size = share === null || share === 0 ? payloads : Math.log(2) / share
  return evenly(payloads, Math.min(partsMax, payloads, Math.max(2, Math.ceil(payloads / size))))
}

/** Each suspect alone, and the runs between them. */
function aroundSuspects(payloads: number, suspects: readonly number[]): readonly number[] {
  const parts: number[] = []
  let at = 0
  for (const place of suspects) {
    if (place > at) parts.push(place - at)
    parts.push(1)
    at = place + 1
  }
  return at < payloads ? [...parts, payloads - at] : parts
}

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
  if (mode === 'single') return { parts: Array<number>(payloads).fill(1), why: 'delivery.mode is single.' }
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

/** The sizes are whole numbers that differ by at most one. */
function evenly(payloads: number, count: number): readonly number[] {
  const least = Math.floor(payloads / count)
  return Array.from({ length: count }, (_, index) => least + (index < payloads % count ? 1 : 0))
}
