// field-weight.ts: how much the records without a field weigh, of one device and of all (lost-fields.ts). The
// numbers of a device stand in its row (device-fields.ts), from `at` on.
//
//   P P P C C C C P P P C C C C     P has the field, C lacks it: the gap is 5
//   P P P C C C C C C C C C         the first four C are usual, the next five weigh 1, and then each 1 / 5
//
// The gap is the longest usual one. A longer one counts at once, at most eight times the gap of before: a
// night without GPS is no rhythm. Then it shrinks with each record that has the field.

import { column, gapsMax } from './device-fields.ts'

export type FieldWeight = {
  readonly gapMin: number
  /** Grows when a device has the field after others lacked it. */
  epoch: number
  /** Since then: the weight of the records without it, and their devices. */
  weight: number
  lacking: number
}

export const weightOfOneMax = 4
const gapShare = 1 / 128

export function beginEpoch(field: FieldWeight): void {
  field.epoch += 1
  field.weight = 0
  field.lacking = 0
}

/** A record of the device has it. */
export function noteHas(field: FieldWeight, row: Float64Array, at: number): void {
  const records = row[at + column.run]! + 1
  const gap = row[at + column.gap]!
  const shrunk = gap + (records - gap) * gapShare
  row[at + column.gap] = gap === 0 ? records : Math.max(shrunk, Math.min(records, gapsMax * gap))
  row[at + column.run] = 0
  if (field.weight > 0) beginEpoch(field)
}

/** A record of the device lacks it; whether it had it until now. */
export function noteLacks(field: FieldWeight, row: Float64Array, at: number): boolean {
  row[at + column.run]! += 1
  if (row[at + column.epoch] !== field.epoch) {
    row[at + column.epoch] = field.epoch
    row[at + column.missing] = 0
    row[at + column.weight] = 0
  }
  row[at + column.missing]! += 1
  if (!had(row, at, row[at + column.missing]!)) return false
  const before = row[at + column.weight]!
  const weight = weightOf(field, row, at)
  if (before === 0 && weight > 0) field.lacking += 1
  row[at + column.weight] = weight
  field.weight += weight - before
  return true
}

/** In gaps, beyond the usual one; nothing for a part of one. */
function weightOf({ gapMin }: FieldWeight, row: Float64Array, at: number): number {
  const gap = Math.max(gapMin, Math.floor(row[at + column.gap]!))
  const beyond = Math.min(row[at + column.missing]!, row[at + column.run]! - gap + 1) / gap
  return beyond < 1 ? 0 : Math.min(beyond, weightOfOneMax)
}

/** Devices that had the field until it was missing, and were heard since then; counted to `most`. */
export function hadBy(
  rows: Iterable<Float64Array>,
  field: FieldWeight & { at: number },
  most: number,
  heardSince = 0,
): number {
  let count = 0
  for (const row of rows) {
    if (count === most) break
    const missing = row[field.at + column.epoch] === field.epoch ? row[field.at + column.missing]! : 0
    if (row.at(-1)! >= heardSince && had(row, field.at, missing)) count += 1
  }
  return count
}

/** Before its last `missing` records. */
function had(row: Float64Array, at: number, missing: number): boolean {
  const gap = row[at + column.gap]!
  return gap > 0 && row[at + column.run]! - missing <= gapsMax * gap
}
