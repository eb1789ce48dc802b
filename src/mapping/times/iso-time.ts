// iso-time.ts: times with the year first, as ISO 8601 and databases write them, and what may stand behind any
// time: its decimals and its zone.

import { digitsEnd, isDigitAt } from '../path/value.ts'
import { millisecondsIn, momentOf, timeOfDay, twoDigits } from './calendar.ts'
import type { Zone } from './zones.ts'

/**
 * ISO 8601, extended `2024-05-13T05:46:12.280+03:00` and basic `20240513T054612.280+0300`: a blank may stand
 * for the T, seconds may be missing, decimals and zone are written in any way.
 */
export function parseDateTime(text: string, zone: Zone | null): number {
  if (text.length < 13 || text.length > 40) return Number.NaN
  const isExtended = text[4] === '-'
  const { monthAt, dayAt, hourAt, minuteAt, secondAt } = isExtended ? extended : basic
  if (!isBetween(text.charCodeAt(hourAt - 1))) return Number.NaN
  if (isExtended && (text[7] !== '-' || text[13] !== ':')) return Number.NaN
  const hasSecond = isExtended ? text[16] === ':' : isDigitAt(text, 13)
  const year = twoDigits(text, 0) * 100 + twoDigits(text, 2)
  const second = hasSecond ? twoDigits(text, secondAt) : 0
  const time = timeOfDay(twoDigits(text, hourAt), twoDigits(text, minuteAt), second)
  const local = momentOf(year, twoDigits(text, monthAt), twoDigits(text, dayAt), time)
  return hasSecond
    ? withDecimalsAt(text, secondAt + 2, local, zone)
    : withZoneAt(text, minuteAt + 2, local, zone)
}

const extended = { monthAt: 5, dayAt: 8, hourAt: 11, minuteAt: 14, secondAt: 17 }
const basic = { monthAt: 4, dayAt: 6, hourAt: 9, minuteAt: 11, secondAt: 13 }

/** What is between date and time: T, t or a blank. */
function isBetween(code: number): boolean {
  return code === 0x20 || (code | 0x20) === 0x74
}

/** The moment of a local time to the second, of which decimals and a zone may follow in the text. */
function withDecimalsAt(text: string, start: number, local: number, zone: Zone | null): number {
  const mark = text.charCodeAt(start)
  if (mark !== 0x2e && mark !== 0x2c) return withZoneAt(text, start, local, zone)
  const end = digitsEnd(text, start + 1)
  return end === start + 1
    ? Number.NaN
    : withZoneAt(text, end, local + millisecondsIn(text, start + 1, end), zone)
}

/** The moment of a local time. The zone in the text counts before that of the source. */
export function withZoneAt(text: string, at: number, local: number, zone: Zone | null): number {
  if (at !== text.length) return local - offsetAt(text, at)
  return zone === null || Number.isNaN(local) ? Number.NaN : zone.momentAt(local)
}

/** Milliseconds east of Greenwich; NaN for anything but an offset, Z, UTC or GMT, perhaps behind a blank. */
function offsetAt(text: string, start: number): number {
  const at = text.charCodeAt(start) === 0x20 ? start + 1 : start
  if (at + 3 === text.length && (text.endsWith('UTC') || text.endsWith('GMT'))) return 0
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

/** `20240513054612` */
export function parseCompact(text: unknown, zone: Zone): number {
  if (typeof text !== 'string' || text.length !== 14) return Number.NaN
  const year = twoDigits(text, 0) * 100 + twoDigits(text, 2)
  const time = timeOfDay(twoDigits(text, 8), twoDigits(text, 10), twoDigits(text, 12))
  return withZoneAt(text, 14, momentOf(year, twoDigits(text, 4), twoDigits(text, 6), time), zone)
}
