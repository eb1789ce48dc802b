// numbered-time.ts: dates of numbers whose order the config says (`dmy`, `mdy`, `ymd`), with a time of day:
//
//   13.05.2024 05:46:12    5/13/2024, 5:46:12 PM    24/05/13 05:46    05:46:12 13-05-2024    130524 054612.28
//
// Day and month have one or two digits between points, slashes or hyphens, or two digits where nothing is
// between them. A year of two digits is one from 2000 to 2099. What is before the colons decides nothing: the
// date comes first, unless the text begins with a time of day that has colons. AM and PM follow such a time.

import { hourOfHalf, millisecondsIn, momentOf, timeOfDay } from './calendar.ts'
import { withZoneAt } from './iso-time.ts'
import type { Zone } from './zones.ts'

export type DateOrder = 'dmy' | 'mdy' | 'ymd'

const lengthMax = 64

const year = String.raw`(?<year>\d{4}|\d\d)`
const dates = {
  dmy: [String.raw`(?<day>\d\d?)`, String.raw`(?<month>\d\d?)`, year],
  mdy: [String.raw`(?<month>\d\d?)`, String.raw`(?<day>\d\d?)`, year],
  ymd: [year, String.raw`(?<month>\d\d?)`, String.raw`(?<day>\d\d?)`],
} as const

// A comma without digits behind it separates the time from its date.
const decimals = String.raw`(?:[.,](?<decimals>\d+)|(?![.,]\d))`
const clock = String.raw`(?<hour>\d\d?):(?<minute>\d\d)(?::(?<second>\d\d)${decimals})?(?: ?(?<half>[AaPp][Mm]))?`
const clockOfDigits = String.raw`(?<hour>\d\d)(?<minute>\d\d)(?<second>\d\d)(?!\d)${decimals}`
const between = '(?:T|, *| +)'

const patterns = { dmy: patternOf('dmy'), mdy: patternOf('mdy'), ymd: patternOf('ymd') }

/** An offset belongs to a time of day: behind the date it would be part of nothing. */
function patternOf(order: DateOrder): RegExp {
  const [first, second, third] = dates[order]
  const marked = String.raw`${first}(?<mark>[./-])${second}\k<mark>${third}(?!\d)`
  const joined = `${first}${second}${third}`.replaceAll(String.raw`\d\d?)`, String.raw`\d\d)`)
  const date = String.raw`(?:${marked}|${joined}(?!\d))`
  return new RegExp(
    `^(?:${date}${between}(?:${clock}|${clockOfDigits})|${joined}${clockOfDigits}|${clock}${between}${date}$)`,
  )
}

/** Epoch milliseconds; NaN for anything but such a time, or a missing but required zone. */
export function parseNumbered(text: string, order: DateOrder, zone: Zone | null): number {
  const found = text.length > lengthMax ? null : patterns[order].exec(text)
  if (found === null) return Number.NaN
  const {
    year: years = '',
    month,
    day,
    hour,
    minute,
    second = 0,
    decimals: parts = '',
    half,
  } = found.groups ?? {}
  const time = timeOfDay(hourOfHalf(Number(hour), half), Number(minute), Number(second))
  const fullYear = years.length === 2 ? 2000 + Number(years) : Number(years)
  const local = momentOf(fullYear, Number(month), Number(day), time) + millisecondsIn(parts)
  return withZoneAt(text, found[0].length, local, zone)
}
