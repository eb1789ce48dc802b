// position-times.ts: times and ages as decoders write them, where nothing says the format.
//
//   numbers     seconds or milliseconds since 1970, from 2000 to 2100; others are uptimes or counters
//   texts       ISO 8601 with or without zone (UTC), `2025:12:30 7:4:38`, English words, such numbers
//   objects     { year, month, day, hour, minute, second }, { year_utc, .. }
//   two keys    a date and a time of day: Date 2025:12:30, Time 7:4:38; a local time and its offset from UTC
//
// A text in quotes inside of the text is what the decoder of Lansitec makes of a Date (JSON.stringify). It
// adds the eight hours of China before, and writes a Z: they are taken off.

import { durationFrom } from '../times/duration.ts'
import { momentOf, timeOfDay } from '../times/calendar.ts'
import { parseDateTime } from '../times/iso-time.ts'
import { utc } from '../times/zones.ts'
import { parseWords } from '../times/time-words.ts'
import { isRecord } from '../path/path-eval.ts'
import { isDecimal } from '../path/value.ts'

const earliest = Date.UTC(2000, 0, 1)
const latest = Date.UTC(2100, 0, 1)
/** Larger numbers are milliseconds: as seconds they would be after the year 5000. */
const millisecondsFrom = 1e11
const lansitecShiftMs = 8 * 3_600_000
const lengthMax = 64

const yearFirst =
  /^(\d{4})[-:/.](\d{1,2})[-:/.](\d{1,2})(?:[T ,]+(\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:[.,]\d+)?)?)? ?Z?$/i
const dayFirst = /^(\d{1,2})([./-])(\d{1,2})[./-](\d{4})([T ,]+\d{1,2}:.*)$/i
const dayTime = /^(\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:[.,]\d+)?)? ?Z?$/i

/** Epoch milliseconds; NaN for anything else. */
export function timeFrom(value: unknown): number {
  const time = momentFrom(value)
  return time >= earliest && time < latest ? Math.floor(time) : Number.NaN
}

function momentFrom(value: unknown): number {
  if (typeof value === 'number') return value < millisecondsFrom ? value * 1000 : value
  if (isRecord(value)) return momentOfParts(value)
  if (typeof value !== 'string' || value === '' || value.length > lengthMax) return Number.NaN
  const text = value.trim()
  if (text.startsWith('"') && text.endsWith('"')) return momentFrom(text.slice(1, -1)) - lansitecShiftMs
  if (isDecimal(text)) return momentFrom(Number(text))
  const iso = parseDateTime(text, utc)
  if (!Number.isNaN(iso)) return iso
  const turned = dayFirst.exec(text)
  if (turned) return momentFrom(yearFirstOf(turned))
  const parts = yearFirst.exec(text)
  if (!parts) return parseWords(text, utc)
  // A date alone is no time.
  if (parts[4] === undefined) return Number.NaN
  const [year, month, day, hour, minute, second] = parts.slice(1).map((part) => Number(part ?? 0))
  return momentOf(year ?? 0, month ?? 0, day ?? 0, timeOfDay(hour ?? 0, minute ?? 0, second ?? 0))
}

/** With points the day comes first; else only a number above 12 says which is the day. */
function yearFirstOf([, first = '', mark, second = '', year = '', clock = '']: readonly string[]): unknown {
  if (mark === '.' || Number(first) > 12) return `${year}-${second}-${first}${clock}`
  return Number(second) > 12 ? `${year}-${first}-${second}${clock}` : undefined
}

const zoneText = /^(?:UTC|GMT)? ?([+-])(\d{1,2})(?::?(\d\d))?$/i
const zoneWritten = /(?:Z|[+-]\d\d:?\d\d|\d{5,})"?$|GMT|UTC/i

/** Whether a time is a text that does not say its zone. */
export function isLocalTime(value: unknown): boolean {
  return typeof value === 'string' && !zoneWritten.test(value.trim())
}

/** Milliseconds of `UTC+02:00`. A number may be hours, half hours, minutes or seconds: it says nothing. */
export function zoneFrom(value: unknown): number {
  const [, sign, hours, minutes = '0'] = (typeof value === 'string' && zoneText.exec(value.trim())) || []
  if (hours === undefined) return 0
  return (sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(minutes)) * 60_000
}

/** A date with the time of day beside it. */
export function timeOfDate(date: unknown, clock: unknown): number {
  if (typeof date !== 'string' || typeof clock !== 'string' || !dayTime.test(clock.trim())) return Number.NaN
  return timeFrom(`${date.trim()} ${clock.trim()}`)
}

function momentOfParts(value: Record<string, unknown>): number {
  const part = (...names: readonly string[]) => {
    const found = names.map((name) => value[name] ?? value[`${name}_utc`]).find((one) => one !== undefined)
    return typeof found === 'number' || (typeof found === 'string' && isDecimal(found))
      ? Number(found)
      : Number.NaN
  }
  const year = part('year', 'Year')
  const second = part('second', 'seconds', 'sec', 'Second')
  const clock = timeOfDay(part('hour', 'hours', 'Hour'), part('minute', 'minutes', 'min', 'Minute'), second)
  return momentOf(year < 100 ? year + 2000 : year, part('month', 'Month'), part('day', 'date', 'Day'), clock)
}

/** { value: 5, unit: "min" } */
function textOf({ value, unit }: Record<string, unknown>): string | number {
  const isNumber = typeof value === 'number' && typeof unit === 'string'
  return isNumber ? `${value} ${unit}` : typeof value === 'number' ? value : ''
}

const nothing = new Set(['-', '--', 'n/a', 'na', 'null'])

/** Milliseconds; NaN where the value says nothing, infinity where it cannot be read: the fix may be old. */
export function ageFrom(value: unknown, unitMs: number): number {
  if (typeof value === 'number') return value >= 0 ? Math.round(value * unitMs) : Number.NaN
  if (isRecord(value)) return ageFrom(textOf(value), unitMs)
  if (typeof value !== 'string') return Number.NaN
  const text = value.trim()
  if (text === '' || nothing.has(text.toLowerCase())) return Number.NaN
  if (isDecimal(text)) return ageFrom(Number(text), unitMs)
  const clock = dayTime.exec(text)
  if (clock?.[3] !== undefined)
    return Number(clock[1]) * 3_600_000 + Number(clock[2]) * 60_000 + Number(clock[3]) * 1000
  const fraction = /^(\d+\.\d+) ?([a-z]+)$/i.exec(text)
  const milliseconds = /^(\d+(?:\.\d+)?) ?(?:ms|msec|milliseconds?)$/i.exec(text.replace(/ ago$/i, ''))
  if (milliseconds) return Math.round(Number(milliseconds[1]))
  const one = fraction ? Number(durationFrom(`1 ${fraction[2] ?? ''}`)) * Number(fraction[1]) : Number.NaN
  const seconds = Number.isFinite(one) ? one : Number(durationFrom(text.replace(/ ago$/i, '')))
  return Math.round(seconds * 1000)
}
