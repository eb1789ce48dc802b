// field-weight.ts: how much the records without a field weigh, of one device and of all (lost-fields.ts). The
// numbers of a device stand in its row (device-fields.ts), from `at` on.

import { column } from './device-fields.ts'

export type FieldWeight = {
  /** Grows when a device has the field after others lacked it. */
  epoch: number
  /** Since then: the weight of the records without it, and their devices. */
  weight: number
  lacking: number
}

export const weightOfOneMax = 4
/** A device that lacked a field for so many times its gap does not count. */
const gapsMax = 8
const gapShare = 1 / 8

export function beginEpoch(field: FieldWeight): void {
  field.epoch += 1
  field.weight = 0
  field.lacking = 0
}

/** A record of the device has it. */
export function noteHas(field: FieldWeight, row: Float64Array, at: number): void {
  const records = row[at + column.run]! + 1
  const gap = row[at + column.gap]!
  row[at + column.gap] = gap === 0 ? records : gap + (records - gap) * gapShare
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
  const weight = row[at + column.weight]!
  const more = Math.min(weightOfOneMax - weight, 1 / row[at + column.gap]!)
  if (weight === 0) field.lacking += 1
  row[at + column.weight] = weight + more
  field.weight += more
  return true
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
