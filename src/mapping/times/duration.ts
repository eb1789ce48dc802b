// duration.ts: spans of time as texts, such as `182d2h0m0s`, `4370h`, `1 h 30 min` or `PT4370H15M`, as
// seconds.
//
// Days are 24 hours. Years and months have no fixed length and are refused, as is a number without a unit.
// The seconds may have a fraction. Each unit occurs once, the longest first.

import { digitsEnd } from '../path/digits.ts'
import { numberFrom } from '../path/value.ts'

const secondsIn = new Map<string, number>()
for (const [seconds, ...names] of [
  [86_400, 'd', 'day', 'days'],
  [3600, 'h', 'hr', 'hrs', 'hour', 'hours'],
  [60, 'm', 'min', 'mins', 'minute', 'minutes'],
  [1, 's', 'sec', 'secs', 'second', 'seconds'],
] as const)
  for (const name of names) secondsIn.set(name, seconds)

/** Longer texts are not durations. So many digits of a part fit a whole number without rounding. */
const lengthMax = 64
const digitsMax = 9

/** Seconds as decimal text; undefined for an absent value, an infinity for anything else. */
export function durationFrom(value: unknown): string | number | undefined {
  if (typeof value === 'string' && value !== '') return secondsOf(value) ?? Number.POSITIVE_INFINITY
  return Number.isNaN(numberFrom(value)) ? undefined : Number.POSITIVE_INFINITY
}

function secondsOf(text: string): string | undefined {
  if (text.length > lengthMax) return undefined
  let seconds = 0
  let fraction = ''
  let longest = Number.POSITIVE_INFINITY
  let at = text[0] === 'P' ? 1 : 0
  for (;;) {
    while (text[at] === ' ' || text[at] === 'T') at += 1
    if (at === text.length) return longest === Number.POSITIVE_INFINITY ? undefined : `${seconds}${fraction}`
    const end = digitsEnd(text, at)
    if (end === at || end - at > digitsMax) return undefined
    const count = Number(text.slice(at, end))
    at = text[end] === '.' ? digitsEnd(text, end + 1) : end
    if (at === end + 1) return undefined
    fraction = text.slice(end, at)
    while (text[at] === ' ') at += 1
    const word = lettersEnd(text, at)
    const unit = secondsIn.get(text.slice(at, word).toLowerCase())
    if (unit === undefined || unit >= longest || (fraction !== '' && unit !== 1)) return undefined
    longest = unit
    seconds += count * unit
    at = word
  }
}

/** A `T` ends a unit: it comes before the hours in `P182DT2H` and is in no name of a unit. */
function lettersEnd(text: string, start: number): number {
  let at = start
  for (; at < text.length && text[at] !== 'T'; at += 1) {
    const lower = text.charCodeAt(at) | 0x20
    if (lower < 0x61 || lower > 0x7a) break
  }
  return at
}
