// numbered-time.ts: dates of numbers whose order the config says (`dmy`, `mdy`, `ymd`), with a time of day:
//
//   13.05.2024 05:46:12    5/13/2024, 5:46:12 PM    24/05/13 05:46    05:46:12 13-05-2024    130524 054612.28
//
// Day and month have one or two digits between points, slashes or hyphens, or two digits where nothing is
// between them. A year of two digits is one from 2000 to 2099. What is before the colons decides nothing: the
// date comes first, unless the text begins with a time of day that has colons. AM and PM follow such a time.

import { digitsEnd } from '../path/digits.ts'
import { momentOf, timeOfDay, twoDigits } from './calendar.ts'
import { millisecondsIn, withZoneAt } from './iso-time.ts'
import type { Zone } from './zones.ts'

export type DateOrder = 'dmy' | 'mdy' | 'ymd'

const lengthMax = 64

type Cursor = { readonly text: string; at: number }

/** Epoch milliseconds; NaN for anything but such a time, or a missing but required zone. */
export function parseNumbered(text: string, order: DateOrder, zone: Zone | null): number {
  if (text.length > lengthMax) return Number.NaN
  const cursor = { text, at: 0 }
  if (text[digitsEnd(text, 0)] === ':') {
    const clock = takeClock(cursor)
    if (!takeBetween(cursor)) return Number.NaN
    const local = takeDate(cursor, order) + clock
    // An offset belongs to a time of day: behind the date it would be part of nothing.
    return cursor.at === text.length ? withZoneAt(text, cursor.at, local, zone) : Number.NaN
  }
  const isJoined = isJoinedAt(text)
  const date = takeDate(cursor, order)
  if (!isJoined && !takeBetween(cursor)) return Number.NaN
  const local = date + takeClock(cursor)
  return withZoneAt(text, cursor.at, local, zone)
}

/** `130524054612`, `13052024054612`: digits of the date and of the time of day. */
function isJoinedAt(text: string): boolean {
  const digits = digitsEnd(text, 0)
  return digits === 12 || digits === 14
}

/** Milliseconds of a day; NaN for anything but a date. */
function takeDate(cursor: Cursor, order: DateOrder): number {
  const { text, at } = cursor
  const end = digitsEnd(text, at)
  const digits = end - at
  if (digits >= 6) {
    const isShort = digits === 6 || digits === 12
    if (!isShort && digits !== 8 && digits !== 14) return Number.NaN
    const yearDigits = isShort ? 2 : 4
    cursor.at = at + 4 + yearDigits
    const first = order === 'ymd' ? at + yearDigits : at
    const yearAt = order === 'ymd' ? at : at + 4
    return dayOf(
      order,
      digitsOf(text, yearAt, yearDigits),
      twoDigits(text, first),
      twoDigits(text, first + 2),
    )
  }
  const mark = text.charCodeAt(end)
  if (mark !== 0x2e && mark !== 0x2f && mark !== 0x2d) return Number.NaN
  const secondEnd = digitsEnd(text, end + 1)
  const thirdEnd = digitsEnd(text, secondEnd + 1)
  cursor.at = thirdEnd
  if (text.charCodeAt(secondEnd) !== mark) return Number.NaN
  const one = numberIn(text, at, end)
  const two = numberIn(text, end + 1, secondEnd)
  const three = numberIn(text, secondEnd + 1, thirdEnd)
  if (secondEnd - end - 1 > 2) return Number.NaN
  const [yearDigits, otherDigits] =
    order === 'ymd' ? [digits, thirdEnd - secondEnd - 1] : [thirdEnd - secondEnd - 1, digits]
  if ((yearDigits !== 2 && yearDigits !== 4) || otherDigits > 2) return Number.NaN
  const year = order === 'ymd' ? one : three
  const [first, second] = order === 'ymd' ? [two, three] : [one, two]
  return dayOf(order, yearDigits === 2 ? 2000 + year : year, first, second)
}

/** `first` and `second` are day and month in the order of the text. */
function dayOf(order: DateOrder, year: number, first: number, second: number): number {
  return order === 'dmy' ? momentOf(year, second, first, 0) : momentOf(year, first, second, 0)
}

function digitsOf(text: string, at: number, digits: number): number {
  const number = numberIn(text, at, at + digits)
  return digits === 2 ? 2000 + number : number
}

/** NaN for an empty text. The caller has found that all of it are digits. */
function numberIn(text: string, start: number, end: number): number {
  return end === start ? Number.NaN : Number(text.slice(start, end))
}

/** Blanks, a comma with blanks, or T. */
function takeBetween(cursor: Cursor): boolean {
  const { text } = cursor
  const start = cursor.at
  if (text[start] === 'T') {
    cursor.at += 1
    return true
  }
  if (text[start] === ',') cursor.at += 1
  while (text[cursor.at] === ' ') cursor.at += 1
  return cursor.at > start
}

/** Milliseconds since midnight; NaN for anything but a time of day. */
function takeClock(cursor: Cursor): number {
  const { text, at } = cursor
  const end = digitsEnd(text, at)
  if (text[end] !== ':') {
    if (end - at !== 6) return Number.NaN
    cursor.at = end
    const time = timeOfDay(twoDigits(text, at), twoDigits(text, at + 2), twoDigits(text, at + 4))
    return time + takeDecimals(cursor)
  }
  const hour = end - at > 2 ? Number.NaN : numberIn(text, at, end)
  const minute = twoDigits(text, end + 1)
  const hasSecond = text[end + 3] === ':'
  const second = hasSecond ? twoDigits(text, end + 4) : 0
  cursor.at = end + (hasSecond ? 6 : 3)
  const decimals = hasSecond ? takeDecimals(cursor) : 0
  return timeOfDay(takeHalfOfDay(cursor, hour), minute, second) + decimals
}

function takeDecimals(cursor: Cursor): number {
  const { text, at } = cursor
  if (text[at] !== '.' && text[at] !== ',') return 0
  const end = digitsEnd(text, at + 1)
  // A comma may separate the time from its date.
  if (end === at + 1) return text[at] === ',' ? 0 : Number.NaN
  cursor.at = end
  return millisecondsIn(text, at + 1, end)
}

/** The hour of 24, where AM or PM follows. */
function takeHalfOfDay(cursor: Cursor, hour: number): number {
  const { text } = cursor
  const at = text[cursor.at] === ' ' ? cursor.at + 1 : cursor.at
  const half = text.slice(at, at + 2).toUpperCase()
  if (half !== 'AM' && half !== 'PM') return hour
  cursor.at = at + 2
  if (!(hour >= 1 && hour <= 12)) return Number.NaN
  return (hour % 12) + (half === 'PM' ? 12 : 0)
}
