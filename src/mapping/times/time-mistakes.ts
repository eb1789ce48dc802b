// time-mistakes.ts: times that a source cannot mean: numbers in another unit than it says, and texts that
// stand for no time. Both look like a clock that is wrong, and are none.

import { quote } from '../../std/quote.ts'

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

export function isOfAnyUnit(moment: number): boolean {
  return moment >= earliest && moment < latest
}

/** What the number is in another unit, as a sentence; '' where it is nothing in any. */
export function unitHint(value: unknown, format: string): string {
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
export function isNoTime(value: unknown): boolean {
  return typeof value === 'string' && value.length <= 64 && oldDate.test(value.trim())
}
