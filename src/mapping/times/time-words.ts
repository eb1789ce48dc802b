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

import { hourOfHalf, millisecondsIn, momentOf, timeOfDay } from './calendar.ts'
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

const halves: ReadonlySet<string> = new Set(['am', 'pm'])

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

/** What stands at a place: a time of day, a day, a year, a word, the zone again, or a mark between parts. */
const parts = new RegExp(
  [
    String.raw`(?<hour>\d\d?):(?<minute>\d\d)(?::(?<second>\d\d)(?:[.,](?<decimals>\d+))?)?(?!\d)`,
    String.raw`(?<day>\d\d?)(?![\d:])`,
    String.raw`(?<year>\d{4})(?![\d:])`,
    '(?<word>[a-z]+)',
    String.raw`(?<again>\(.*\)$)`,
    '[ ,/-]',
  ].join('|'),
  'iy',
)

/** `+1`, `+01`, `+0100`, `+01:00`. */
const offset = /[+-](?:\d{4}|\d\d?(?::\d\d)?)(?!\d)/y

type Part = 'year' | 'month' | 'day' | 'hour' | 'minute' | 'second' | 'ms' | 'half' | 'zoneMs' | 'weekday'

/** Epoch milliseconds; NaN for anything but such a time, or a missing but required zone. */
export function parseWords(text: string, zone: Zone | null): number {
  if (text.length > lengthMax) return Number.NaN
  const found = new Map<Part, number>()
  let at = 0
  /** A zone may follow without a blank. */
  let zoneMayFollow = false
  while (at < text.length) {
    const zoneText: string | undefined =
      zoneMayFollow || text[at - 1] === ' ' ? matchAt(offset, text, at)?.[0] : undefined
    if (zoneText !== undefined) {
      if (!takeOffset(found, zoneText, zoneMayFollow)) return Number.NaN
      at += zoneText.length
      zoneMayFollow = false
      continue
    }
    const part: RegExpExecArray | null = matchAt(parts, text, at)
    if (part === null || !takePart(found, part.groups)) return Number.NaN
    at += part[0].length
    zoneMayFollow = mayHaveZone(found, part.groups)
  }
  const value = (name: Part) => found.get(name) ?? Number.NaN
  const time = timeOfDay(value('hour'), value('minute'), value('second'))
  const local = momentOf(value('year'), value('month'), value('day'), time) + value('ms')
  const zoneMs = found.get('zoneMs')
  // The text is read to its end: a zone can only be that of the source.
  return zoneMs === undefined ? withZoneAt(text, text.length, local, zone) : local - zoneMs
}

function matchAt(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at
  return pattern.exec(text)
}

type Groups = Readonly<Record<string, string | undefined>>

/** `16:04+0100` and `GMT+0100`, but not `EST+0100`. */
function mayHaveZone(found: Map<Part, number>, { hour, word }: Groups = {}): boolean {
  const name = word?.toLowerCase() ?? ''
  return hour === undefined && !halves.has(name) ? zones.get(name) === 0 : !found.has('zoneMs')
}

/** False for what is no part, or occurred before. A mark has no group. */
function takePart(
  found: Map<Part, number>,
  { hour, minute, second = '0', decimals = '', day, year, word, again }: Groups = {},
): boolean {
  if (hour !== undefined) {
    put(found, 'minute', Number(minute))
    put(found, 'second', Number(second))
    put(found, 'ms', millisecondsIn(decimals))
    return put(found, 'hour', Number(hour))
  }
  if (day !== undefined) return put(found, 'day', Number(day))
  if (year !== undefined) return put(found, 'year', Number(year))
  // The zone in brackets that JavaScript adds repeats the offset.
  if (again !== undefined) return found.has('zoneMs')
  return word === undefined || takeWord(found, word.toLowerCase())
}

function takeWord(found: Map<Part, number>, word: string): boolean {
  if (halves.has(word)) {
    // Behind the time of day.
    const hour = hourOfHalf(found.get('hour') ?? Number.NaN, word)
    return put(found, 'half', 0) && found.set('hour', hour).has('minute')
  }
  const month = months.get(word)
  if (month !== undefined) return put(found, 'month', month)
  const hours = zones.get(word)
  if (hours !== undefined) return put(found, 'zoneMs', hours * 3_600_000)
  return weekdays.has(word) && put(found, 'weekday', 0)
}

function takeOffset(found: Map<Part, number>, text: string, zoneMayFollow: boolean): boolean {
  if (found.has('zoneMs') && !zoneMayFollow) return false
  const digits = text.slice(1).replace(':', '')
  const [hours, minutes] = digits.length > 2 ? [digits.slice(0, -2), digits.slice(-2)] : [digits, '0']
  const east = (Number(hours) * 60 + Number(minutes)) * 60_000
  found.set('zoneMs', text.startsWith('-') ? -east : east)
  return Number(hours) <= 18 && Number(minutes) <= 59
}

/** False where the part occurred before. */
function put(found: Map<Part, number>, part: Part, value: number): boolean {
  if (found.has(part)) return false
  found.set(part, value)
  return true
}
