// time-words.ts: times with the month as a word, as Java, C, JavaScript and mail headers write them:
//
//   Fri Feb 18 17:07:53 EST 2022         18-Feb-2022 17:07:52.743
//   Fri, 18 Feb 2022 17:07:53 +0100      Fri Feb 18 2022 17:07:53 GMT+0100 (CET)
//   nov/28/2026 05:07:53 PM
//
// The parts are recognised by their shape, in any order, each at most once: the month in English, the day in
// one or two digits, the year in four, the time of day with its colons, and a zone. The day of the week is
// not checked. A zone is an offset or an abbreviation of the table below. An abbreviation with several
// meanings is in the table only if devices use it for one of them: EST to PDT are North American and BST is
// British summer time, but IST, AST and CLT are ambiguous.

import { digitsEnd, isDigitAt } from '../path/digits.ts'
import { momentOf, timeOfDay, twoDigits } from './calendar.ts'
import { withZoneAt } from './iso-time.ts'
import type { Zone } from './zones.ts'

const lengthMax = 64

const months = abbreviated(
  'january february march april may june july august september october november december',
)
const weekdays = abbreviated('monday tuesday wednesday thursday friday saturday sunday')

/** By name and abbreviation, counted from 1. */
function abbreviated(names: string): Map<string, number> {
  const numbers = new Map<string, number>()
  for (const [index, name] of names.split(' ').entries())
    for (let length = 3; length <= name.length; length += 1) numbers.set(name.slice(0, length), index + 1)
  return numbers
}

/** Hours east of Greenwich. */
const zones = new Map<string, number>([
  ...named(0, 'z', 'ut', 'utc', 'gmt', 'wet'),
  ...named(1, 'cet', 'mez', 'bst', 'west'),
  ...named(2, 'eet', 'cest', 'mesz', 'sast', 'cat'),
  ...named(3, 'eest', 'msk', 'trt', 'eat'),
  ...named(7, 'wib'),
  ...named(8, 'awst', 'hkt', 'sgt'),
  ...named(9, 'jst', 'kst'),
  ...named(9.5, 'acst'),
  ...named(10, 'aest'),
  ...named(10.5, 'acdt'),
  ...named(11, 'aedt'),
  ...named(12, 'nzst'),
  ...named(13, 'nzdt'),
  ...named(-2.5, 'ndt'),
  ...named(-3, 'brt', 'art'),
  ...named(-3.5, 'nst'),
  ...named(-4, 'edt'),
  ...named(-5, 'est', 'cdt'),
  ...named(-6, 'cst', 'mdt'),
  ...named(-7, 'mst', 'pdt'),
  ...named(-8, 'pst', 'akdt'),
  ...named(-9, 'akst'),
  ...named(-10, 'hst'),
])

function named(hours: number, ...names: string[]): [string, number][] {
  return names.map((name) => [name, hours])
}

type Parts = {
  readonly text: string
  at: number
  year: number
  month: number
  day: number
  hour: number
  minute: number
  second: number
  ms: number
  /** Milliseconds east of Greenwich. */
  zoneMs: number
  /** Whether a zone may follow without a blank. */
  zoneMayFollow: boolean
  weekday: boolean
  /** AM or PM was read. */
  hasHalf: boolean
}

/** Epoch milliseconds; NaN for anything but such a time, or a missing but required zone. */
export function parseWords(text: string, zone: Zone | null): number {
  if (text.length > lengthMax) return Number.NaN
  const none = Number.NaN
  const parts: Parts = {
    text,
    at: 0,
    year: none,
    month: none,
    day: none,
    hour: none,
    minute: none,
    second: 0,
    ms: 0,
    zoneMs: none,
    zoneMayFollow: false,
    weekday: false,
    hasHalf: false,
  }
  while (parts.at < text.length) if (!takePart(parts)) return Number.NaN
  const { year, month, day, hour, minute, second, ms, zoneMs } = parts
  const local = momentOf(year, month, day, timeOfDay(hour, minute, second)) + ms
  // The text is read to its end: a zone can only be that of the source.
  return Number.isNaN(zoneMs) ? withZoneAt(text, text.length, local, zone) : local - zoneMs
}

/** Takes a part, or a mark between parts; false for anything else. */
function takePart(parts: Parts): boolean {
  const { text, at } = parts
  const unit = text.charCodeAt(at)
  if (isDigitAt(text, at)) return takeNumber(parts)
  if (isLetter(unit)) return takeWord(parts)
  const isSign = unit === 0x2b || unit === 0x2d
  if (isSign && isDigitAt(text, at + 1) && (parts.zoneMayFollow || text.charCodeAt(at - 1) === 0x20))
    return takeOffset(parts)
  parts.zoneMayFollow = false
  if (unit === 0x28) {
    // The zone in brackets that JavaScript adds repeats the offset.
    parts.at = text.length
    return text.endsWith(')') && !Number.isNaN(parts.zoneMs)
  }
  parts.at += 1
  return unit === 0x20 || unit === 0x2c || unit === 0x2d || unit === 0x2f
}

function takeNumber(parts: Parts): boolean {
  const { text, at } = parts
  const end = digitsEnd(text, at)
  const number = Number(text.slice(at, end))
  parts.at = end
  parts.zoneMayFollow = false
  if (text.charCodeAt(end) === 0x3a) return end - at <= 2 && takeClock(parts, number)
  if (end - at <= 2) return put(parts, 'day', number)
  return end - at === 4 && put(parts, 'year', number)
}

/** The time of day after its hour: `:07`, `:07:53`, `:07:52.743`. */
function takeClock(parts: Parts, hour: number): boolean {
  const { text } = parts
  parts.minute = twoDigits(text, parts.at + 1)
  let at = parts.at + 3
  if (text.charCodeAt(at) === 0x3a) {
    parts.second = twoDigits(text, at + 1)
    at += 3
    const mark = text.charCodeAt(at)
    if ((mark === 0x2e || mark === 0x2c) && isDigitAt(text, at + 1)) {
      const end = digitsEnd(text, at + 1)
      parts.ms = Number(text.slice(at + 1, Math.min(end, at + 4)).padEnd(3, '0'))
      at = end
    }
  }
  parts.at = at
  parts.zoneMayFollow = Number.isNaN(parts.zoneMs)
  return !isDigitAt(text, at) && put(parts, 'hour', hour)
}

function takeWord(parts: Parts): boolean {
  const { text, at } = parts
  let end = at
  while (isLetter(text.charCodeAt(end))) end += 1
  const word = text.slice(at, end).toLowerCase()
  parts.at = end
  parts.zoneMayFollow = false
  if (word === 'am' || word === 'pm') return takeHalfOfDay(parts, word)
  const month = months.get(word)
  if (month !== undefined) return put(parts, 'month', month)
  const hours = zones.get(word)
  if (hours !== undefined) {
    // `GMT+0100`, but not `EST+0100`.
    parts.zoneMayFollow = hours === 0
    return put(parts, 'zoneMs', hours * 3_600_000)
  }
  const repeated = parts.weekday
  parts.weekday = true
  return weekdays.has(word) && !repeated
}

/** Behind the time of day. */
function takeHalfOfDay(parts: Parts, half: 'am' | 'pm'): boolean {
  const { hour, hasHalf } = parts
  parts.hasHalf = true
  parts.hour = (hour % 12) + (half === 'pm' ? 12 : 0)
  parts.zoneMayFollow = Number.isNaN(parts.zoneMs)
  return !hasHalf && hour >= 1 && hour <= 12
}

/** `+01`, `+0100`, `+01:00`. */
function takeOffset(parts: Parts): boolean {
  const { text, at, zoneMs, zoneMayFollow } = parts
  const end = digitsEnd(text, at + 1)
  const digits = end - at - 1
  const colon = digits <= 2 && text.charCodeAt(end) === 0x3a
  const hours = Number(text.slice(at + 1, digits === 4 ? at + 3 : end))
  const minutes = digits === 4 || colon ? twoDigits(text, colon ? end + 1 : at + 3) : 0
  parts.at = colon ? end + 3 : end
  parts.zoneMayFollow = false
  if (!(digits <= 2 || digits === 4) || !(hours <= 18 && minutes <= 59)) return false
  if (isDigitAt(text, parts.at) || !(zoneMayFollow || Number.isNaN(zoneMs))) return false
  const east = (hours * 60 + minutes) * 60_000
  parts.zoneMs = text.charCodeAt(at) === 0x2d ? -east : east
  return true
}

/** False where the part occurred before. */
function put(parts: Parts, key: 'year' | 'month' | 'day' | 'hour' | 'zoneMs', value: number): boolean {
  if (!Number.isNaN(parts[key])) return false
  parts[key] = value
  return true
}

function isLetter(unit: number): boolean {
  const lower = unit | 0x20
  return lower >= 0x61 && lower <= 0x7a
}
