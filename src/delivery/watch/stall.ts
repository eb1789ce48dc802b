// stall.ts: why nothing of a provider moves although the endpoint is available.

import type { StallReason } from '../../domain/condition-state.ts'
import type { BatchTable } from '../policy/batch-table.ts'
import type { Wait } from '../policy/types.ts'

/** What the pipeline of a provider does now. Times are monotonic. */
export type Sight = {
  /** Batches in hand, without the held ones, and when the next held one is due. */
  inHand: number
  heldAtMs: number | null
  /** A lane could give a batch now. */
  isLaneDue: boolean
  /** Payloads wait, also those that are not due yet. */
  hasPending: boolean
  isEndpointAvailable: boolean
  /** Writes of the spool hang or take long. */
  isSpoolSlow: boolean
  /** Requests that wait for a place of `max_in_flight_total`. */
  waitingForPlace: number
  /** Batches that are taken, sealed, loaded, sent or settled now. */
  running: number
  /** No more batches may be in hand. */
  isFull: boolean
  rateWaitMs: number
  /** As much waits for room in the dead letters as may. */
  waitsForRoom: boolean
  /** Batches in hand that wait, and the end of the first wait. */
  waits: ReadonlyMap<Wait, { batches: number; readyAtMs: number }>
}

export type Stall = { reason: StallReason; untilMs: number | null }

const reasons: Record<Exclude<Wait, 'none'>, StallReason> = {
  backoff: 'failing',
  stuck: 'failing',
  slow: 'failing',
  'other-batches': 'forbidden_trial',
  acceptance: 'acceptance',
}

/** Where no request is in flight. */
export function stallOf(sight: Sight, nowMs: number): Stall {
  if (sight.waitingForPlace > 0) return { reason: 'no_place', untilMs: null }
  if (sight.running > 0) return { reason: 'preparing', untilMs: null }
  if (sight.waitsForRoom) return { reason: 'dead_letters_full', untilMs: null }
  if (sight.rateWaitMs > 0) return { reason: 'rate_limit', untilMs: nowMs + sight.rateWaitMs }
  let untilMs: number | null = null
  let most = 0
  let reason: StallReason | null = null
  for (const [wait, { batches, readyAtMs }] of sight.waits) {
    untilMs = Math.min(untilMs ?? Number.POSITIVE_INFINITY, readyAtMs)
    if (batches <= most || wait === 'none') continue
    most = batches
    reason = reasons[wait]
  }
  if (sight.isFull) return { reason: 'batches_full', untilMs }
  return { reason: reason ?? 'unknown', untilMs }
}

/** When the next submission may start; null: now, or when something is due. For an available endpoint. */
export function nextStartMs({ rateWaitMs, isLaneDue, running, waits, heldAtMs }: Sight, nowMs: number) {
  const rateAtMs = nowMs + rateWaitMs
  let earliestMs = heldAtMs ?? Number.POSITIVE_INFINITY
  for (const { readyAtMs } of waits.values()) earliestMs = Math.min(earliestMs, readyAtMs)
  const waitsForBatch = !isLaneDue && running === 0 && earliestMs < Number.POSITIVE_INFINITY
  const atMs = waitsForBatch ? Math.max(rateAtMs, earliestMs) : rateAtMs
  return atMs > nowMs ? atMs : null
}

/** What the batches in hand wait for. */
export function sightOf(batches: BatchTable): Pick<Sight, 'inHand' | 'heldAtMs' | 'isFull' | 'waits'> {
  const waits = new Map<Wait, { batches: number; readyAtMs: number }>()
  for (const { running, wait, readyAtMs } of batches.all()) {
    if (running) continue
    const known = waits.get(wait)
    if (known === undefined) waits.set(wait, { batches: 1, readyAtMs })
    else {
      known.batches += 1
      known.readyAtMs = Math.min(known.readyAtMs, readyAtMs)
    }
  }
  return { inHand: batches.size(), heldAtMs: batches.heldDueAt(), isFull: batches.full(), waits }
}
