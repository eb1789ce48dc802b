// times.ts: the times of devices: their formats, zones, and a date beside the time of day.
//
//   iso-time.ts        2024-05-13T05:46:12.280Z and 20240513 054612    time-words.ts  13 May 2024 05:46:12
//   numbered-time.ts   13.05.2024 05:46:12, day or month first         zones.ts       local times as moments
//   fix-time.ts        when a position was taken                       duration.ts    spans of time
//   calendar.ts        days as milliseconds
//
// The config chooses the formats and none is guessed; they are parsed here, since Date accepts almost any
// text and may take it for another time. A time without a zone is read in that of its source or device; a
// zone in the text counts first.
//
// Digits beyond milliseconds are cut off, not rounded up: the moment lies in that millisecond. Of seconds as
// a number a double holds six decimal places; a text has them all.

import { Malformed } from '../path/text-cursor.ts'
import { decimalIn } from '../path/value.ts'
import type { Read } from '../path/path.ts'
import type { Place } from '../types.ts'
import { parseCompact, parseDateTime } from './iso-time.ts'
import { parseNumbered, type DateOrder } from './numbered-time.ts'
import { parseWords } from './time-words.ts'
import { noZone, utc, zoneMissing, zoneOf, zoneProblem, type Zone } from './zones.ts'

/**
 * Whole epoch milliseconds; NaN for an absent value, Infinity for anything but a time, `zoneMissing` for one
 * that needs the zone of its device, which is not known. `zone` is that of a time without one: null where the
 * source has none.
 */
export type ReadTime = (place: Place, zone: Zone | null) => number

/** Of the device: by its row in the device table, or by `defaults`. */
export type ZoneRule = Zone | 'device' | null

/** The last millisecond that a Date can hold. */
const timeMax = 8.64e15

/** Of `auto`: seconds, ms, us and ns of this size and larger would be after the year 5000. */
const [secondsEnd, msEnd, usEnd, nsEnd] = [1e11, 1e14, 1e17, 1e20]

/**
 * In ms: twice the step of a double at today's seconds, and at today's nanoseconds. Hides its error, none of
 * six written digits.
 */
const stepMs = 0.0005

/** Milliseconds; anything that is not a time within `timeMax` for another value. */
type Parse = (value: unknown, zone: Zone | null) => number

const parsers = {
  s: secondsFrom,
  ms: (value) => Math.floor(numeric(value)),
  us: (value) => Math.floor(numeric(value) / 1000),
  ns: nanosecondsIn,
  's-float': secondsFrom,
  iso: (value, zone) => (typeof value === 'string' ? parseDateTime(value, zone) : Number.NaN),
  datetime: (value, zone) => (typeof value === 'string' ? parseDateTime(value, zone ?? utc) : Number.NaN),
  compact: (value, zone) => parseCompact(typeof value === 'number' ? String(value) : value, zone ?? utc),
  words: (value, zone) => (typeof value === 'string' ? parseWords(value, zone) : Number.NaN),
  dmy: numbered('dmy'),
  mdy: numbered('mdy'),
  ymd: numbered('ymd'),
  auto: ofSize,
  arrival: () => Number.NaN,
} as const satisfies Record<string, Parse>

export type TimeFormat = keyof typeof parsers
type Formats = TimeFormat | readonly TimeFormat[]

/** In the order of the table, and typed for an enumeration of the schema. */
export const timeFormats = Object.keys(parsers) as [TimeFormat, ...TimeFormat[]]

/** Formats of local times. Without a zone in the text or the config `iso` and `words` are refused. */
const localFormats: readonly TimeFormat[] = ['iso', 'datetime', 'compact', 'words', 'dmy', 'mdy', 'ymd']
/** Of two of them the second one would never read anything. */
const numberFormats: readonly TimeFormat[] = ['s', 's-float', 'ms', 'us', 'ns', 'auto']
/** Those of which no text is known to have a zone. */
const zoneFormats: readonly TimeFormat[] = ['dmy', 'mdy', 'ymd']
/** Those that read a date and a time of day with a blank between them. */
const datedFormats: readonly TimeFormat[] = localFormats.filter((format) => format !== 'compact')

/** Of several formats the first that can read a value does. Throws Malformed. */
export function compileTime(formats: Formats, read: Read): ReadTime {
  const [first, second] = [formats].flat().filter((format) => numberFormats.includes(format))
  if (first !== undefined && second !== undefined)
    throw new Malformed(
      `has the format ${second} behind ${first}, which reads every number; auto alone tells s, ms, us and ns apart`,
    )
  const parse = typeof formats === 'string' ? parsers[formats] : parserOfMany(formats)
  return (place, zone) => {
    const found = read(place)
    const value = typeof found === 'string' ? withPlainBlanks(found.trim()) : found
    if (value === null || value === undefined || value === '') return Number.NaN
    const time = parse(value, zone)
    return (time >= 0 && time <= timeMax) || time === zoneMissing ? time : Number.POSITIVE_INFINITY
  }
}

/** Locales of .NET, Java and browsers write blanks that do not break, before AM and PM among others. */
function withPlainBlanks(text: string): string {
  return /[^!-~ ]/.test(text) ? text.replace(/\s/g, ' ') : text
}

/** Throws Malformed for a zone that does not exist, or that a format needs and the config does not have. */
export function compileZone(formats: Formats, zone: string | undefined): ZoneRule {
  if (zone === undefined) {
    const strict = zoneFormats.find((format) => format === formats || formats.includes(format))
    if (strict === undefined) return null
    throw new Malformed(
      `has the format ${strict}, which needs \`zone\`: utc, a time zone such as Europe/Paris, or device`,
    )
  }
  if (zone === 'device') return 'device'
  const found = zoneOf(zone)
  if (found === null) throw new Malformed(`has an unknown zone: it ${zoneProblem(zone)}`)
  return found
}

export function isLocalFormat(format: TimeFormat): boolean {
  return localFormats.includes(format)
}

/** The zone for the times of one device. Without one no local time of it is read. */
export function zoneFor(rule: ZoneRule, ofDevice: Zone | null): Zone | null {
  return rule === 'device' ? (ofDevice ?? noZone) : rule
}

/**
 * A date and a time of day as one value: `130524` and `054612.00`. A JSON number has lost the zeros at its
 * start, which are added. Throws Malformed for a format that no such text has.
 */
export function compileDated(formats: Formats, date: Read, clock: Read): Read {
  const other = [formats].flat().find((format) => !datedFormats.includes(format))
  if (other !== undefined)
    throw new Malformed(`has a date beside the format ${other}; use one of ${datedFormats.join(', ')}`)
  return (place) => {
    const day = date(place)
    const time = clock(place)
    if (isMissing(day) || isMissing(time)) return undefined
    if (typeof day !== 'string' && typeof day !== 'number') return day
    if (typeof time !== 'string' && typeof time !== 'number') return time
    return `${typeof day === 'number' ? withZeros(day) : day} ${typeof time === 'number' ? withZeros(time) : time}`
  }
}

function isMissing(value: unknown): boolean {
  return value === null || value === undefined || value === ''
}

/** Six digits before the point, or eight. */
function withZeros(value: number): string {
  const text = String(value)
  const point = text.indexOf('.')
  const digits = point === -1 ? text.length : point
  return '0'.repeat(digits <= 6 ? 6 - digits : digits % 2) + text
}

function numbered(order: DateOrder): Parse {
  return (value, zone) => {
    if (typeof value === 'string') return parseNumbered(value, order, zone)
    // A number has lost the zero at its start.
    if (!Number.isSafeInteger(value) || !(Number(value) > 0)) return Number.NaN
    const digits = String(value)
    return parseNumbered(digits.length % 2 === 0 ? digits : `0${digits}`, order, zone)
  }
}

function parserOfMany(formats: readonly TimeFormat[]): Parse {
  const all: Parse[] = formats.map((format) => parsers[format])
  return (value, zone) => {
    let fault = Number.NaN
    for (const parse of all) {
      const time = parse(value, zone)
      if (time >= 0 && time <= timeMax) return time
      if (time === zoneMissing) fault = time
    }
    return fault
  }
}

/** NaN for anything below zero, which is no time. */
function numeric(value: unknown): number {
  const number = typeof value === 'string' ? Number(exactIn(value)) : value
  return typeof number === 'number' && number >= 0 ? number : Number.NaN
}

/** As `decimalIn`, but not 1.79596E+12, which a spreadsheet has rounded: seconds have ten digits. */
function exactIn(text: string): string | undefined {
  const decimal = decimalIn(text)
  const mantissa = decimal?.split(/e/i, 1)[0]
  if (mantissa === decimal) return decimal
  return mantissa !== undefined && mantissa.replace(/\D/g, '').length >= 10 ? decimal : undefined
}

function ofSize(value: unknown): number {
  const number = numeric(value)
  if (number < secondsEnd) return secondsFrom(value)
  if (number < msEnd) return Math.floor(number)
  if (number < usEnd) return Math.floor(number / 1000)
  return number < nsEnd ? nanosecondsIn(value) : Number.NaN
}

/** Whole nanoseconds are beyond 2^53, and come as the text of their digits. */
function nanosecondsIn(value: unknown): number {
  return typeof value === 'string' && /^[0-9]{1,20}$/.test(value)
    ? Number(BigInt(value) / 1_000_000n)
    : Math.floor(numeric(value) / 1e6 + stepMs)
}

function secondsFrom(value: unknown): number {
  const text = typeof value === 'string' ? exactIn(value) : undefined
  if (text === undefined) return fromSeconds(numeric(value))
  const point = text.indexOf('.')
  const plain = point > 0 && text.charCodeAt(0) !== 0x2d && !text.includes('e') && !text.includes('E')
  if (!plain) return fromSeconds(numeric(text))
  return Number(text.slice(0, point)) * 1000 + Number(text.slice(point + 1, point + 4).padEnd(3, '0'))
}

function fromSeconds(seconds: number): number {
  const whole = Math.floor(seconds)
  return whole === seconds ? whole * 1000 : whole * 1000 + Math.floor((seconds - whole) * 1000 + stepMs)
}
