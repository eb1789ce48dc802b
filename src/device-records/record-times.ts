// record-times.ts: the times of a record when the clock that noted them was wrong.
//
// A box without a battery starts at a time of before. Until the time is known, its clock notes arrivals that
// are wrong by years. When the clock is set or corrected, they go with it, so that no device looks silent
// since a day on which the gateway did not run.
//
//   same process   moved by the step (device-records)
//   same boot      the record on the disk says by which clock; moved by how far that is from the present one
//   earlier boot   the true times are lost; the start of this process takes their place
//
// Nor is a last message true that is later than the present: a clock that was believed was ahead. It stays as
// it is, since the present may be what is wrong, and is read as of the start of this process (record-views).

import type { EpochMs } from '../std/clock.ts'
import type { StoredRecord } from './device-record-codec.ts'
import { column } from './record-table.ts'
import type { Loss, UnknownClock } from './types.ts'

const timeColumns = [
  ...([column.firstAt, column.lastAt, column.mappedAt, column.positionArrivedAt] as const),
  ...([column.repeatsFrom, column.repeatedAt, column.newAt, column.blindFrom, column.blindAt] as const),
] as const

/** Two readings of the clocks of one boot differ by less. */
const sameMs = 2000

/**
 * Moves the times from `fromAt` to the last message. What is before was noted by another clock, and so was
 * what is behind, where that clock was ahead of this one.
 */
export function shiftTimes(
  numbers: { [index: number]: number },
  { base, losses }: { base: number; losses: readonly Loss[] },
  { byMs, fromAt }: { byMs: number; fromAt: EpochMs },
): void {
  const lastAt = numbers[base + column.lastAt]!
  const isOwn = (at: EpochMs | undefined) => at !== undefined && at >= fromAt && at <= lastAt
  for (const name of timeColumns) if (isOwn(numbers[base + name])) numbers[base + name]! += byMs
  for (const loss of losses) {
    if (isOwn(loss.firstAt)) loss.firstAt += byMs
    if (isOwn(loss.lastAt)) loss.lastAt += byMs
  }
}

/** `stored`, with its times as the present clock has them. */
export function redated(stored: StoredRecord, present: UnknownClock, now: EpochMs): StoredRecord {
  const { unknownClock } = stored
  if (unknownClock === undefined) return stored
  const numbers = [...stored.numbers]
  const losses = stored.losses.map((loss) => ({ ...loss }))
  const { bootId, bootAt } = unknownClock
  const isSameBoot = bootId === present.bootId
  const byMs = isSameBoot ? present.bootAt - bootAt : now - (numbers[column.lastAt] ?? 0)
  if (Math.abs(byMs) < sameMs) return stored
  shiftTimes(numbers, { base: 0, losses }, { byMs, fromAt: bootAt })
  return { ...stored, numbers, losses }
}
