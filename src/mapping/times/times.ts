// times.ts: the time formats of devices. The config chooses them and none is guessed; they are parsed
// here, since Date accepts almost any text and may take it for another time.
//
// Digits beyond milliseconds are cut off, not rounded up: the moment lies in that millisecond. Of seconds as
// a number a double holds six decimal places; a text has them all.

import { isDigitAt } from '../path/digits.ts'
import { momentOf, timeOfDay, twoDigits } from './calendar.ts'
import { parseWords } from './time-words.ts'
import { isDecimal } from '../path/value.ts'
import type { Read } from '../path/path.ts'
import type { Up } from '../types.ts'

/** Whole epoch milliseconds; NaN for an absent value, an infinity for anything but a time. */
export type ReadTime = (record: unknown, root: unknown, up?: Up, captures?: readonly string[]) => number

/** The last millisecond that a Date can hold. */
const timeMax = 8.64e15

/** Larger numbers are milliseconds: as seconds they would be after the year 5000. */
const millisecondsFrom = 1e11

/** In ms: twice the step of a double at today's seconds. Hides its error, none of six written digits. */
const stepMs = 0.0005

/** Milliseconds; anything that is not a time within `timeMax` for another value. */
type Parse = (value: unknown, zoneIsUtc: boolean) => number

const parsers = {
  s: secondsFrom,
  ms: (value) => Math.floor(numeric(value)),
  us: (value) => Math.floor(numeric(value) / 1000),
  's-float': secondsFrom,
  iso: (value, zoneIsUtc) => (typeof value === 'string' ? parseDateTime(value, zoneIsUtc) : Number.NaN),
  datetime: (value) => (typeof value === 'string' ? parseDateTime(value, true) : Number.NaN),
  compact: (value) => parseCompact(typeof value === 'number' ? String(value) : value),
  words: (value, zoneIsUtc) => (typeof value === 'string' ? parseWords(value, zoneIsUtc) : Number.NaN),
  auto: (value) => (numeric(value) < millisecondsFrom ? secondsFrom(value) : Math.floor(numeric(value))),
  arrival: () => Number.NaN,
} as const satisfies Record<string, Parse>

export type TimeFormat = keyof typeof parsers

/** In the order of the table, and typed for an enumeration of the schema. */
export const timeFormats = Object.keys(parsers) as [TimeFormat, ...TimeFormat[]]

/** Of several formats the first that can read a value does. */
export function compileTime(
  formats: TimeFormat | readonly TimeFormat[],
  read: Read,
  zoneIsUtc: boolean,
): ReadTime {
  const parse = typeof formats === 'string' ? parsers[formats] : parserOfMany(formats)
  return (record, root, up, captures) => {
    const value = read(record, root, up, captures)
    if (value === null || value === undefined || value === '') return Number.NaN
    const time = parse(value, zoneIsUtc)
    return time >= 0 && time <= timeMax ? time : Number.POSITIVE_INFINITY
  }
}

function parserOfMany(formats: readonly TimeFormat[]): Parse {
  const all: Parse[] = formats.map((format) => parsers[format])
  return (value, zoneIsUtc) => {
    for (const parse of all) {
      const time = parse(value, zoneIsUtc)
      if (time >= 0 && time <= timeMax) return time
    }
    return Number.NaN
  }
}

function numeric(value: unknown): number {
  if (typeof value === 'number') return value
  return typeof value === 'string' && isDecimal(value) ? Number(value) : Number.NaN
}

function secondsFrom(value: unknown): number {
  if (typeof value !== 'string') return fromSeconds(numeric(value))
  const point = value.indexOf('.')
  const plain = point > 0 && value.charCodeAt(0) !== 0x2d && !value.includes('e') && !value.includes('E')
  if (!plain || !isDecimal(value)) return fromSeconds(numeric(value))
  return Number(value.slice(0, point)) * 1000 + Number(value.slice(point + 1, point + 4).padEnd(3, '0'))
}

function fromSeconds(seconds: number): number {
  const whole = Math.floor(seconds)
  return whole === seconds ? whole * 1000 : whole * 1000 + Math.floor((seconds - whole) * 1000 + stepMs)
}

/**
 * ISO 8601, extended `2024-05-13T05:46:12.280+03:00` and basic `20240513T054612.280+0300`: a blank may stand
 * for the T, seconds may be missing, decimals and zone are written in any way.
 */
export function parseDateTime(text: string, zoneIsUtc: boolean): number {
  if (text.length < 13 || text.length > 40) return Number.NaN
  return text[4] === '-' ? parseExtended(text, zoneIsUtc) : parseBasic(text, zoneIsUtc)
}

function parseExtended(text: string, zoneIsUtc: boolean): number {
  if (!isBetween(text.charCodeAt(10)) || text[7] !== '-' || text[13] !== ':') return Number.NaN
  const hasSecond = text[16] === ':'
  const year = twoDigits(text, 0) * 100 + twoDigits(text, 2)
  const time = timeOfDay(twoDigits(text, 11), twoDigits(text, 14), hasSecond ? twoDigits(text, 17) : 0)
  const rest = hasSecond ? decimalsAndZoneAt(text, 19, zoneIsUtc) : -zoneAt(text, 16, zoneIsUtc)
  return momentOf(year, twoDigits(text, 5), twoDigits(text, 8), time) + rest
}

function parseBasic(text: string, zoneIsUtc: boolean): number {
  if (!isBetween(text.charCodeAt(8))) return Number.NaN
  const hasSecond = isDigitAt(text, 13)
  const year = twoDigits(text, 0) * 100 + twoDigits(text, 2)
  const time = timeOfDay(twoDigits(text, 9), twoDigits(text, 11), hasSecond ? twoDigits(text, 13) : 0)
  const rest = hasSecond ? decimalsAndZoneAt(text, 15, zoneIsUtc) : -zoneAt(text, 13, zoneIsUtc)
  return momentOf(year, twoDigits(text, 4), twoDigits(text, 6), time) + rest
}

/** What is between date and time: T, t or a blank. */
function isBetween(code: number): boolean {
  return code === 0x20 || (code | 0x20) === 0x74
}

/** Milliseconds that the text behind the seconds adds. */
function decimalsAndZoneAt(text: string, start: number, zoneIsUtc: boolean): number {
  const mark = text.charCodeAt(start)
  if (mark !== 0x2e && mark !== 0x2c) return -zoneAt(text, start, zoneIsUtc)
  let at = start + 1
  let ms = 0
  for (let unitMs = 100; isDigitAt(text, at); at += 1) {
    if (unitMs >= 1) ms += unitMs * (text.charCodeAt(at) - 0x30)
    unitMs /= 10
  }
  return at === start + 1 ? Number.NaN : ms - zoneAt(text, at, zoneIsUtc)
}

/** Milliseconds east of Greenwich; NaN for a zone name other than UTC, or a missing but required zone. */
function zoneAt(text: string, at: number, zoneIsUtc: boolean): number {
  if (at === text.length) return zoneIsUtc ? 0 : Number.NaN
  if (text.endsWith(' UTC') && at === text.length - 4) return 0
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
  const time = timeOfDay(twoDigits(text, 8), twoDigits(text, 10), twoDigits(text, 12))
  return momentOf(year, twoDigits(text, 4), twoDigits(text, 6), time)
}
