// duration.ts: spans of time as texts, such as `182d2h0m0s`, `4370h`, `1 h 30 min` or `PT4370H15M`, as
// seconds.
//
// Days are 24 hours. Years and months have no fixed length and are refused, as is a number without a unit.
// The seconds may have a fraction. Each unit occurs once, the longest first.

import { numberFrom } from '../path/value.ts'

/** Longer texts are not durations. So many digits of a part fit a whole number without rounding. */
const lengthMax = 64

const pattern = new RegExp(
  `^P?[ T]*${part('d|days?')}${part('h|hrs?|hours?')}${part('m|mins?|minutes?')}` +
    String.raw`(?:(\d{1,9})(\.\d+)? *(?i:s|secs?|seconds?)[ T]*)?$`,
)

function part(unit: string): string {
  return String.raw`(?:(\d{1,9}) *(?i:${unit})[ T]*)?`
}

/** Seconds as decimal text; undefined for an absent value, an infinity for anything else. */
export function durationFrom(value: unknown): string | number | undefined {
  if (typeof value === 'string' && value !== '') return secondsOf(value) ?? Number.POSITIVE_INFINITY
  return Number.isNaN(numberFrom(value)) ? undefined : Number.POSITIVE_INFINITY
}

function secondsOf(text: string): string | undefined {
  const [, days, hours, minutes, seconds, fraction = ''] =
    (text.length <= lengthMax && pattern.exec(text)) || []
  if ((days ?? hours ?? minutes ?? seconds) === undefined) return undefined
  const [d, h, m, s] = [days, hours, minutes, seconds].map((count = '0') => Number(count))
  return `${(d ?? 0) * 86_400 + (h ?? 0) * 3600 + (m ?? 0) * 60 + (s ?? 0)}${fraction}`
}
