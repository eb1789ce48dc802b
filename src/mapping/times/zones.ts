// zones.ts: time zones of the IANA database, which comes with the runtime (ICU, read through Intl): local
// times as moments, and the offset at a moment.
//
// At a change of the clock a local time can occur twice or not at all. The rule is `compatible` of Temporal:
//
//   repeated   the first of the two moments        02:30 in Berlin on 2024-10-27 is 00:30Z
//   skipped    moved forward by what is skipped    02:30 in Berlin on 2024-03-31 is 01:30Z, 03:30 there
//
// It depends on the local time and its zone alone, never on the arrival: a message that is sent again must
// get the same payloadId.
//
// Intl is asked once for each day and zone: its answer takes microseconds. Two changes of one zone are at
// least six days apart (from 1970 to 2100), so the 60 hours around a day have at most one.

import { quote } from '../../std/quote.ts'
import { nearest } from '../../std/nearest-word.ts'
import type { EpochMs } from '../../std/clock.ts'
import { createCache } from '../bounded-cache.ts'

export type Zone = {
  readonly name: string
  /** The moment of a local time, which is written as the epoch milliseconds of the same time in UTC. */
  momentAt(local: number): EpochMs
  /** What to add to a moment for its local time, in milliseconds. */
  offsetAt(moment: EpochMs): number
  /** Whether the clock skips or repeats this local time. */
  changeAt(local: number): ClockChange | null
}

export type ClockChange = 'skipped' | 'repeated'

export const utc: Zone = {
  name: 'UTC',
  momentAt: (local) => local,
  offsetAt: () => 0,
  changeAt: () => null,
}

/** The moment of a local time of a device whose zone is not known. */
export const zoneMissing = Number.NEGATIVE_INFINITY

/** Of such devices. */
export const noZone: Zone = { ...utc, name: 'none', momentAt: () => zoneMissing }

/** What to do about a device whose zone is not known. */
export const zoneAdvice = 'fill the column "zone" of the device table, or set `defaults.zone`.'

const dayMs = 86_400_000
/** Offsets are between -12 and +14 hours, so every moment of a local day is in this range around it. */
const beforeDayMs = 18 * 3_600_000
const afterDayMs = 18 * 3_600_000
/** Days of each zone that are cached. A flood of messages with any times costs Intl calls, never memory. */
const daysMax = 1024
/** More names than the database has. */
const zonesMax = 1024
/** The limit of Intl (some 270,000 years). Beyond it the offset is 0. */
const momentMax = 8.64e15

const zones = createCache<Zone>(zonesMax)

/** Null for a name that the runtime does not know. It knows abbreviations, which `isZoneName` refuses. */
export function zoneNamed(name: string): Zone | null {
  const known = zones.get(name)
  if (known) return known
  const format = formatOf(name)
  if (format === null) return null
  const zone = createZone(name, format)
  zones.set(name, zone)
  return zone
}

/** PST and IST have several meanings, and Intl picks one. Names of the database have an area and a city. */
export function isZoneName(name: string): boolean {
  return name.toLowerCase() === 'utc' || (name.includes('/') && zoneNamed(name) !== null)
}

/** Null for a name that is none. */
export function zoneOf(name: string): Zone | null {
  if (name.toLowerCase() === 'utc') return utc
  return isZoneName(name) ? zoneNamed(name) : null
}

export function zoneProblem(name: string): string {
  const meant = nearestZone(name)
  const hint = meant === undefined ? '' : `. Did you mean "${meant}"?`
  return `must be a time zone such as Europe/Paris, found ${quote(name, 60)}${hint}`
}

/** Names that Intl takes and lists under an older one. */
const renamed = [
  'Africa/Asmara',
  'America/Argentina/Buenos_Aires',
  'America/Argentina/Cordoba',
  'America/Indiana/Indianapolis',
  'America/Kentucky/Louisville',
  'America/Nuuk',
  'Asia/Ho_Chi_Minh',
  'Asia/Kathmandu',
  'Asia/Kolkata',
  'Asia/Yangon',
  'Atlantic/Faroe',
  'Europe/Kyiv',
]

function nearestZone(name: string): string | undefined {
  const all = [...renamed.filter((one) => zoneNamed(one) !== null), ...Intl.supportedValuesOf('timeZone')]
  const written = name.trim().replaceAll(' ', '_')
  if (written.includes('/')) return nearest(written, all)
  const city = written.toLowerCase()
  return all.find((one) => one.slice(one.lastIndexOf('/') + 1).toLowerCase() === city)
}

function formatOf(name: string): Intl.DateTimeFormat | null {
  try {
    return new Intl.DateTimeFormat('en-US', {
      timeZone: name,
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
      era: 'short',
    })
  } catch (error) {
    if (error instanceof RangeError) return null
    throw error
  }
}

/** The offset before the only change around a day, the one after it, and its moment; else Infinity. */
type Day = { before: number; after: number; at: EpochMs }

function createZone(name: string, format: Intl.DateTimeFormat): Zone {
  const days = new Map<number, Day>()
  let lastNumber = Number.NaN
  let last: Day = { before: 0, after: 0, at: Number.POSITIVE_INFINITY }
  return { name, momentAt, offsetAt, changeAt }

  function momentAt(local: number): EpochMs {
    const { before, after, at } = dayOf(local)
    const first = local - before
    if (first < at) return first
    const second = local - after
    // A skipped time is before the change with the offset after it, and after it with the one before.
    return second >= at ? second : first
  }

  function offsetAt(moment: EpochMs): number {
    const { before, after, at } = dayOf(moment)
    return moment < at ? before : after
  }

  function changeAt(local: number): ClockChange | null {
    const { before, after, at } = dayOf(local)
    const isBefore = local - before < at
    const isAfter = local - after >= at
    if (isBefore === isAfter) return isBefore ? 'repeated' : 'skipped'
    return null
  }

  function dayOf(time: number): Day {
    const number = Math.floor(time / dayMs)
    if (number === lastNumber) return last
    let day = days.get(number)
    if (day === undefined) {
      if (days.size >= daysMax) days.clear()
      day = changeAround(format, number)
      days.set(number, day)
    }
    lastNumber = number
    last = day
    return day
  }
}

function changeAround(format: Intl.DateTimeFormat, number: number): Day {
  const start = number * dayMs - beforeDayMs
  const end = (number + 1) * dayMs + afterDayMs
  const before = offsetIn(format, start)
  const after = offsetIn(format, end)
  if (before === after) return { before, after, at: Number.POSITIVE_INFINITY }
  // In seconds: a change is at the start of one.
  let earlier = start / 1000
  let later = end / 1000
  while (later - earlier > 1) {
    const middle = Math.floor((earlier + later) / 2)
    if (offsetIn(format, middle * 1000) === before) earlier = middle
    else later = middle
  }
  return { before, after, at: later * 1000 }
}

function offsetIn(format: Intl.DateTimeFormat, moment: EpochMs): number {
  if (!(Math.abs(moment) <= momentMax)) return 0
  const parts = new Map<string, string>()
  for (const { type, value } of format.formatToParts(moment)) parts.set(type, value)
  const part = (type: string) => Number(parts.get(type))
  const year = parts.get('era')?.startsWith('B') ? 1 - part('year') : part('year')
  const [month, day, hour] = [part('month') - 1, part('day'), part('hour')]
  const offset = Date.UTC(year, month, day, hour, part('minute'), part('second')) - moment
  // Date.UTC maps the years 0 to 99 to 1900 to 1999, which gives a wrong offset.
  return Number.isFinite(offset) && Math.abs(offset) <= dayMs ? offset : 0
}
