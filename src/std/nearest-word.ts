// nearest-word.ts: finds the known word that is meant by another word: the usual name of the same thing, or
// the most similar word.

import { distance } from 'fastest-levenshtein'

/** Keys are short. A longer word is no typing mistake. */
const lengthMax = 64

/** Usual names, in lower case and without signs, after the word of the config that means the same. */
const synonyms: readonly (readonly [word: string, ...names: string[]])[] = [
  // Time formats, and units of durations.
  ['s', 'unix', 'epoch', 'posix', 'unixtime', 'unixtimestamp', 'sec', 'secs', 'second', 'seconds'],
  ['ms', 'unixms', 'epochms', 'millis', 'msec', 'millisecond', 'milliseconds', 'javascript'],
  ['us', 'micros', 'usec', 'microsecond', 'microseconds', 'epochus', 'unixus'],
  ['iso', 'iso8601', 'rfc3339', 'isodate'],
  ['words', 'rfc2822', 'rfc822', 'rfc1123', 'httpdate'],
  ['compact', 'yyyymmddhhmmss', 'isobasic'],
  ['arrival', 'now', 'server', 'received', 'receivetime'],
  ['min', 'mins', 'minute', 'minutes'],
  ['h', 'hr', 'hrs', 'hour', 'hours'],
  // Units of speed, distance and angle.
  ['km/h', 'kph', 'kmh', 'kmph', 'kmhr', 'kilometersperhour', 'kilometresperhour'],
  ['m/s', 'mps', 'ms', 'msec', 'meterspersecond', 'metrespersecond'],
  ['mph', 'mih', 'mileph', 'milesperhour'],
  ['knots', 'kn', 'kt', 'kts', 'knot'],
  ['km', 'kilometer', 'kilometre', 'kilometers', 'kilometres', 'kms'],
  ['m', 'meter', 'metre', 'meters', 'metres', 'mtr'],
  ['mi', 'mile', 'miles'],
  ['deg', 'degree', 'degrees', 'decimaldegrees', 'wgs84'],
  ['rad', 'radian', 'radians'],
  ['1e-7deg', '1e7', 'degrees1e7', 'deg1e7', 'e7', 'scaled'],
  // Origins of numbers.
  ['gnss', 'gps', 'glonass', 'satellite', 'positions'],
  ['counted', 'can', 'counter', 'tracker'],
  ['ignition', 'ign', 'acc'],
  ['estimate', 'estimated', 'synthetic'],
  // Encodings.
  ['teltonika', 'codec8', 'codec8e', 'codec16', 'avl'],
  ['scalar', 'plain', 'number', 'value', 'raw'],
  ['text', 'string', 'utf8'],
  ['sparkplug', 'sparkplugb', 'spb', 'spbv10'],
]

/** The known word meant by `word`; undefined where none is near enough to be a typing mistake. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  if (word.length > lengthMax) return undefined
  const plain = word.toLowerCase().replace(/[^a-z0-9]/g, '')
  for (const [meant, ...names] of synonyms) if (names.includes(plain) && known.includes(meant)) return meant
  let best: string | undefined
  // A third of the letters may be wrong. Two swapped neighbours count as two wrong letters.
  let distanceMin = Math.max(1, Math.round(word.length / 3)) + 1
  for (const candidate of known) {
    const edits = isTruncated(word, candidate) ? 1 : distance(word.toLowerCase(), candidate.toLowerCase())
    if (edits < distanceMin) {
      distanceMin = edits
      best = candidate
    }
  }
  return best
}

/** `max` for `max_bytes`, and `bytes` for `max_bytes`. */
function isTruncated(word: string, candidate: string): boolean {
  return word.length >= 3 && (candidate.startsWith(`${word}_`) || candidate.endsWith(`_${word}`))
}
