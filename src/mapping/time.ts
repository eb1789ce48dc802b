// time.ts: the time formats that devices send, each chosen in the config and none guessed; hand-written,
// since Date takes almost any text for a time and then means another one.
//
// Digits beyond milliseconds are cut off, not rounded up: the moment lies in the millisecond it names.

import { assertNever } from '../std/assert.ts'
import { isDecimal } from './value.ts'
import type { Read } from './path.ts'

export const timeFormats = [
  's',
  'ms',
  'us',
  's-float',
  'iso',
  'datetime',
  'compact',
  'auto',
  'arrival',
] as const

export type TimeFormat = (typeof timeFormats)[number]

/** Epoch milliseconds, whole; NaN where there is none, an infinity where there is no such time. */
export type ReadTime = (record: unknown, root: unknown) => number

/** The last millisecond that a Date can hold. */
const timeMax = 8.64e15

/** From here on a number means milliseconds: as seconds it would be after the year 5000. */
const millisecondsFrom = 1e11

/** A tenth of a double's own step at today's seconds: hides its error, never a digit that was written. */
const stepMs = 0.0005

export function compileTime(format: TimeFormat, read: Read, zoneIsUtc: boolean): ReadTime {
  const parse = parserOf(format, zoneIsUtc)
  return (record, root) => {
    const value = read(record, root)
    if (value === null || value === undefined || value === '') return Number.NaN
    const time = parse(value)
    return time >= 0 && time <= timeMax ? time : Number.POSITIVE_INFINITY
  }
}

function parserOf(format: TimeFormat, zoneIsUtc: boolean): (value: unknown) => number {
  switch (format) {
    case 's':
    case 's-float':
      return (value) => fromSeconds(numeric(value))
    case 'ms':
      return (value) => Math.floor(numeric(value))
    case 'us':
      return (value) => Math.floor(numeric(value) / 1000)
    case 'auto':
      return (value) => {
        const number = numeric(value)
        return number < millisecondsFrom ? fromSeconds(number) : Math.floor(number)
      }
    case 'iso':
      return (value) => (typeof value === 'string' ? parseDateTime(value, zoneIsUtc) : Number.NaN)
    case 'datetime':
      return (value) => (typeof value === 'string' ? parseDateTime(value, true) : Number.NaN)
    case 'compact':
      return (value) => parseCompact(typeof value === 'number' ? String(value) : value)
    case 'arrival':
      return () => Number.NaN
    default:
      return assertNever(format)
  }
}

function numeric(value: unknown): number {
  if (typeof value === 'number') return value
  return typeof value === 'string' && isDecimal(value) ? Number(value) : Number.NaN
}

function fromSeconds(seconds: number): number {
  const whole = Math.floor(seconds)
  return whole === seconds ? whole * 1000 : whole * 1000 + Math.floor((seconds - whole) * 1000 + stepMs)
}

/**
 * `2024-05-13T05:46:12.280Z`, a blank for the T, any number of digits behind the point, `+0300`, `+03:00`.
 */
export function parseDateTime(text: string, zoneIsUtc: boolean): number {
  if (text.length < 16 || text.length > 40) return Number.NaN
  const between = text.charCodeAt(10)
  if (between !== 0x20 && (between | 0x20) !== 0x74) return Number.NaN
  if (text[4] !== '-' || text[7] !== '-' || text[13] !== ':') return Number.NaN
  let at = 16
  let second = 0
  let ms = 0
  if (text.charCodeAt(at) === 0x3a) {
    second = twoDigits(text, at + 1)
    at += 3
    const mark = text.charCodeAt(at)
    if (mark === 0x2e || mark === 0x2c) {
      const start = at + 1
      at = start
      for (let unitMs = 100; isDigitAt(text, at); at += 1) {
        if (unitMs >= 1) ms += unitMs * (text.charCodeAt(at) - 0x30)
        unitMs /= 10
      }
      if (at === start) return Number.NaN
    }
  }
  const zoneMs = zoneAt(text, at, zoneIsUtc)
  const year = twoDigits(text, 0) * 100 + twoDigits(text, 2)
  const moment = momentOf(
    year,
    twoDigits(text, 5),
    twoDigits(text, 8),
    twoDigits(text, 11),
    twoDigits(text, 14),
    second,
  )
  return moment + ms - zoneMs
}

/** Milliseconds east of Greenwich; NaN for a zone by name, or none where none is allowed. */
function zoneAt(text: string, at: number, zoneIsUtc: boolean): number {
  if (at === text.length) return zoneIsUtc ? 0 : Number.NaN
  const mark = text.charCodeAt(at)
  if ((mark | 0x20) === 0x7a) return at + 1 === text.length ? 0 : Number.NaN
  if (mark !== 0x2b && mark !== 0x2d) return Number.NaN
  const rest = text.length - at
  const minutesAt = text[at + 3] === ':' ? at + 4 : at + 3
  if (rest !== 3 && minutesAt + 2 !== text.length) return Number.NaN
  const minutes = rest === 3 ? 0 : twoDigits(text, minutesAt)
  const hours = twoDigits(text, at + 1)
  if (minutes > 59 || hours > 18) return Number.NaN
  const zoneMs = (hours * 60 + minutes) * 60_000
  return mark === 0x2d ? -zoneMs : zoneMs
}

/** `20240513054612`, UTC. */
function parseCompact(text: unknown): number {
  if (typeof text !== 'string' || text.length !== 14) return Number.NaN
  const year = twoDigits(text, 0) * 100 + twoDigits(text, 2)
  return momentOf(
    year,
    twoDigits(text, 4),
    twoDigits(text, 6),
    twoDigits(text, 8),
    twoDigits(text, 10),
    twoDigits(text, 12),
  )
}

function momentOf(
  year: number,
  month: number,
  day: number,
  hour: number,
  minute: number,
  second: number,
): number {
  const valid =
    month >= 1 &&
    month <= 12 &&
    day >= 1 &&
    day <= daysIn(year, month) &&
    hour <= 23 &&
    minute <= 59 &&
    // A leap second is told as :60 and counted as the first second of the next minute.
    second <= 60
  if (!valid) return Number.NaN
  return ((daysBefore(year, month, day) * 24 + hour) * 60 + minute) * 60_000 + second * 1000
}

function daysIn(year: number, month: number): number {
  if (month === 2) return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31
}

/**
 * Days since 1970-01-01 in the Gregorian calendar; the year is counted from March, so that a leap day ends
 * it.
 */
function daysBefore(year: number, month: number, day: number): number {
  const marchYear = month > 2 ? year : year - 1
  const era = Math.floor(marchYear / 400)
  const yearOfEra = marchYear - era * 400
  const dayOfYear = Math.floor((153 * (month > 2 ? month - 3 : month + 9) + 2) / 5) + day - 1
  const dayOfEra = yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear
  return era * 146_097 + dayOfEra - 719_468
}

function isDigitAt(text: string, at: number): boolean {
  const unit = text.charCodeAt(at)
  return unit >= 0x30 && unit <= 0x39
}

/** NaN where there are no two digits. */
function twoDigits(text: string, at: number): number {
  return isDigitAt(text, at) && isDigitAt(text, at + 1)
    ? (text.charCodeAt(at) - 0x30) * 10 + text.charCodeAt(at + 1) - 0x30
    : Number.NaN
}
