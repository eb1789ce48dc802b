// device-fields.ts: the fields of one device: the rhythm of each, and how long it is missing.
//
//   P P P C C C C P P P C C C C     P has the field, C lacks it: the gap is 5
//   P P P C C C C C C C C C         the first four C are usual, the next five weigh 1, and then each 1 / 5
//
// The gap is the longest usual one. A longer one counts at once, at most eight times the gap of before: a
// night without GPS is no rhythm. Then it shrinks with each record that has the field.

import type { EpochMs } from '../../std/clock.ts'

export type DeviceFields = {
  /** -1 where it is not known. */
  family: number
  heardAt: EpochMs
  /** Bits of the fields of which others of the options are in force since the device had them. */
  changed: number
  /** Bits of the fields that are missing and that it names otherwise now. */
  renamed: number
  /** By field: the longest usual number of records from one that has it to the next; 0 where none had it. */
  gaps: number[]
  /** By field: records since the last one that had it. */
  runs: number[]
  /** By field: how many of those came before the options changed. */
  runsBefore: number[]
  /** Its last record that was looked at, whether that lacked nothing, and how many like it came since. */
  present: number
  judged: number
  isWhole: boolean
  alike: number
}

/** A device that lacked a field for so many times its gap does not count. */
export const gapsMax = 8
const gapShare = 1 / 128

export function newDevice(fields: number): DeviceFields {
  const zeros = () => Array.from({ length: fields }, () => 0)
  const counts = { gaps: zeros(), runs: zeros(), runsBefore: zeros() }
  const last = { present: 0, judged: 0, isWhole: false, alike: 0 }
  return { family: -1, heardAt: 0, changed: 0, renamed: 0, ...counts, ...last }
}

/** A record of the device has the field. */
export function noteHas(device: DeviceFields, index: number): void {
  const records = device.runs[index]! + 1
  const gap = device.gaps[index]!
  const shrunk = gap + (records - gap) * gapShare
  device.gaps[index] = gap === 0 ? records : Math.max(shrunk, Math.min(records, gapsMax * gap))
  device.runs[index] = 0
  device.runsBefore[index] = 0
  const bit = 1 << index
  device.changed &= ~bit
  device.renamed &= ~bit
}

/** Other options of the field are in force. */
export function noteChange(device: DeviceFields, index: number): void {
  device.runsBefore[index] = device.runs[index]!
  device.changed |= 1 << index
}

/** Whether the device had the field until the options changed, or until now. */
export function had({ gaps, runs, runsBefore, changed, renamed }: DeviceFields, index: number): boolean {
  const bit = 1 << index
  const missing = (renamed & bit) !== 0 ? 0 : (changed & bit) === 0 ? runs[index]! : runsBefore[index]!
  return gaps[index]! > 0 && missing <= gapsMax * gaps[index]!
}

/** How long the field is missing, in gaps beyond the usual one; nothing for a part of one. */
export function missingGaps({ gaps, runs, runsBefore }: DeviceFields, index: number, gapMin: number): number {
  const gap = Math.max(gapMin, Math.floor(gaps[index]!))
  const run = runs[index]!
  const beyond = Math.min(run - runsBefore[index]!, run - gap + 1) / gap
  return beyond < 1 ? 0 : beyond
}
