// record-time.ts: the time of a record by `map.time`, as the device says it.

import type { EpochMs } from '../../std/clock.ts'
import type { SourcePlan } from '../compile/source-plan.ts'
import { shown, withoutResult } from '../path/value.ts'
import type { Reading } from '../read/reading.ts'
import type { Place } from '../types.ts'
import { zoneFor } from '../times/times.ts'
import { zoneAdvice, zoneMissing, type Zone } from '../times/zones.ts'
import { quote } from '../../std/quote.ts'

type PlannedTime = NonNullable<SourcePlan['time']>

/** What is wrong with a time, as a sentence. */
type TimeFault = { reason: 'NO_TIME' | 'NO_ZONE' | 'BAD_TIME'; detail: string }

/** NaN where the arrival time is used instead; null where the record was refused. */
export function timeOfRecord(time: PlannedTime, reading: Reading, ofDevice: Zone | null): EpochMs | null {
  const moment = time.read(reading, zoneFor(time.zone, ofDevice))
  const fault = isOfAnyUnit(moment) ? null : timeFault(time, moment, reading)
  if (fault === null) return moment
  return isArrivalSent(time, fault) ? Number.NaN : reading.refuse(fault.reason, fault.detail)
}

/** In the place of a time that is not there. */
export function isArrivalSent({ orArrival }: PlannedTime, { reason }: TimeFault): boolean {
  return orArrival && reason !== 'BAD_TIME'
}

/** `moment`: what was read; null where nothing is wrong with it. */
export function timeFault({ raw, format }: PlannedTime, moment: EpochMs, place: Place): TimeFault | null {
  if (Number.isNaN(moment)) return { reason: 'NO_TIME', detail: 'The message has no time.' }
  const value = raw(place)
  const found = shown(value)
  const hint = isOfAnyUnit(moment) ? '' : unitHint(value, format)
  if (Number.isFinite(moment) && hint === '') return null
  if (moment === zoneMissing) {
    const detail = `The time ${found} has no zone, and neither has the device: ${zoneAdvice}`
    return { reason: 'NO_ZONE', detail }
  }
  if (hint === '' && isNoTime(value))
    return { reason: 'NO_TIME', detail: `The time ${found} stands for no time.` }
  const wrong = withoutResult('time', value) ?? `The time ${found} is not in the format "${format}".${hint}`
  return { reason: 'BAD_TIME', detail: wrong }
}

// Times that a source cannot mean: numbers in another unit than it says, and texts that
// stand for no time. Both look like a clock that is wrong, and are none.

/** Milliseconds of one in each format of numbers. */
const units = new Map([
  ['s', 1000],
  ['ms', 1],
  ['us', 1e-3],
  ['ns', 1e-6],
])

/** Telemetry is not older than the first and not newer than the second. A time outside is in another unit. */
const [earliest, latest] = [Date.UTC(1990, 0), Date.UTC(3000, 0)]
/** In another unit a number counts as a time within these years: the units differ by a factor of 1,000. */
const [recent, near] = [Date.UTC(2000, 0), Date.UTC(2100, 0)]

function isOfAnyUnit(moment: number): boolean {
  return moment >= earliest && moment < latest
}

/** What the number is in another unit, as a sentence; '' where it is nothing in any. */
function unitHint(value: unknown, format: string): string {
  const isNumber =
    typeof value === 'number' || (typeof value === 'string' && /^\s*\d+(?:\.\d+)?\s*$/.test(value))
  const number = isNumber ? Number(value) : Number.NaN
  const own: readonly string[] = format.split(/\W+/)
  for (const [other, unitMs] of units) {
    const moment = Math.floor(number * unitMs)
    if (own.includes(other) || !(moment >= recent && moment < near)) continue
    return ` In the format ${quote(other)} it is ${new Date(moment).toISOString()}: set \`format: ${other}\`.`
  }
  return ''
}

/** A date of a year up to 1970: 0001-01-01, 30.12.1899, 0000-00-00, 1970-01-01T00:00+02:00. */
const oldDate =
  /^(?:(?:000[01]|1[0-8]\d\d|19[0-6]\d|1970)([-./])\d\d?\1\d\d?|\d\d?([-./])\d\d?\2(?:000[01]|1[0-8]\d\d|19[0-6]\d|1970))(?!\d)/

/** Firmware and databases write it where they have no time. */
function isNoTime(value: unknown): boolean {
  return typeof value === 'string' && value.length <= 64 && oldDate.test(value.trim())
}
