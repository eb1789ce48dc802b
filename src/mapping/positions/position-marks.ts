// position-marks.ts: what one object of a decoder says: its coordinates, whether there is a fix, and when it
// was taken.

import { isRecord } from '../path/path-eval.ts'
import { booleanFrom, numberIn } from '../path/value.ts'
import { roleOf, type Role, type RoleKind } from './position-names.ts'
import { ageFrom, isLocalTime, timeFrom, timeOfDate, zoneFrom } from './position-times.ts'

/** NaN where it is not said. */
export type Marks = { time: number; ageMs: number; isValid: boolean }

export type OnRead = (holder: Record<string, unknown>, key: string) => void

type Coordinates = { latitude: unknown; longitude: unknown; number: string }

/** A value that may be a position, or hold one. */
type Inner = { key: string; kind: RoleKind; value: unknown }

/** A date and a time of day in two keys; the earliest time without a zone, and the zone beside it. */
type Clock = { day: unknown; time: unknown; local: number; zoneMs: number }

type Inside = {
  own: Marks
  pairs: readonly Coordinates[]
  /** A latitude without a longitude, or the other way round. */
  half: Coordinates | undefined
  /** Times and ages with a number, as in `time1`, for the coordinates with this number. */
  numbered: ReadonlyMap<string, Partial<Marks>>
  inner: readonly Inner[]
}

const noNumbers: ReadonlyMap<string, Partial<Marks>> = new Map()

export const noMarks: Marks = { time: Number.NaN, ageMs: Number.NaN, isValid: true }

/** Those of an object count for what is inside of it. Of several times the earliest counts. */
export function inheritedMarks(outer: Marks, own: Marks): Marks {
  return {
    time: earlierOf(outer.time, own.time),
    ageMs: laterOf(outer.ageMs, own.ageMs),
    isValid: outer.isValid && own.isValid,
  }
}

function earlierOf(a: number, b: number): number {
  if (Number.isNaN(a)) return b
  return Number.isNaN(b) ? a : Math.min(a, b)
}

function laterOf(a: number, b: number): number {
  if (Number.isNaN(a)) return b
  return Number.isNaN(b) ? a : Math.max(a, b)
}

/** `isPlace`: the object itself is a position, so that its `status` is that of the fix. */
export function marksIn(holder: Record<string, unknown>, isPlace: boolean, onRead: OnRead | null): Inside {
  const sets: { set: string; of: Coordinates }[] = []
  const inner: Inner[] = []
  let numbered: Map<string, Partial<Marks>> | null = null
  let own: Marks = noMarks
  let clock: Clock | null = null
  let hasParts = false
  for (const key in holder) {
    // The value is of JSON: its prototype has no keys.
    const role = roleOf(key)
    const { kind } = role
    const value = holder[key]
    const isHolder = typeof value === 'object' && value !== null
    if (kind !== 'elsewhere' && (isHolder || (kind === 'place' && typeof value === 'string')))
      inner.push({ key, kind, value })
    if (value === null || value === undefined || value === '') continue
    if (kind === 'latitude' || kind === 'longitude') {
      if (addCoordinate(sets, kind, role, value)) onRead?.(holder, key)
      continue
    }
    if (kind === 'part of coordinate') hasParts ||= !Number.isNaN(numberOf(value))
    if (kind === 'time' || kind === 'date' || kind === 'zone' || kind === 'part of time') {
      clock ??= { day: undefined, time: undefined, local: Number.NaN, zoneMs: 0 }
      if (noteClock(clock, kind, value)) onRead?.(holder, key)
    }
    if (isAbout(role) && isRecord(value)) own = inheritedMarks(own, marksAbout(value, role, onRead))
    else if (kind === 'other' && isRecord(value) && saysNoFixInside(value, onRead))
      own = { ...own, isValid: false }
    const isSilent = kind === 'other' || (kind === 'status of place' && !isPlace && !isVoid(value))
    const said =
      (isSilent ? null : saidBy(role, key, value)) ?? (isExplicit(value) ? { isValid: false } : null)
    if (said === null) continue
    onRead?.(holder, key)
    const { number } = role
    if (clock !== null && kind === 'time' && number === '' && isLocalTime(value))
      clock.local = earlierOf(clock.local, said.time ?? Number.NaN)
    else if (kind === 'year') own = inheritedMarks(own, { ...noMarks, time: timeFrom(holder) })
    else if (number === '') own = inheritedMarks(own, { ...noMarks, ...said })
    else (numbered ??= new Map()).set(number, { ...numbered.get(number), ...said })
  }
  if (clock !== null) own = inheritedMarks(own, { ...noMarks, time: localTimeOf(clock) })
  const pairs: Coordinates[] = []
  let half: Coordinates | undefined
  for (const { of } of sets)
    if (hasParts && isWhole(of.latitude) && isWhole(of.longitude)) continue
    else if (of.latitude === undefined || of.longitude === undefined) half = of
    else pairs.push(of)
  return { own, pairs, half, numbered: numbered ?? noNumbers, inner }
}

/** True for a key that says nothing without the others. */
function noteClock(clock: Clock, kind: RoleKind, value: unknown): boolean {
  if (kind === 'date') clock.day ??= value
  if (kind === 'time') clock.time ??= value
  if (kind === 'zone') clock.zoneMs = zoneFrom(value)
  return kind === 'zone' || kind === 'part of time'
}

function localTimeOf({ day, time, local, zoneMs }: Clock): number {
  return (day === undefined ? local : earlierOf(local, timeOfDate(day, time))) - zoneMs
}

/** Also of a coordinate that is missing. */
function isWhole(degrees: unknown): boolean {
  return degrees === undefined || Number.isInteger(numberIn(degrees))
}

function isAbout({ kind }: Role): boolean {
  return kind === 'about' || kind === 'place' || kind === 'valid' || kind === 'fix type'
}

/** What an object beside a position says about it; nothing where it has a position itself. */
function marksAbout(value: Record<string, unknown>, { kind }: Role, onRead: OnRead | null): Marks {
  const { own, pairs } = marksIn(value, kind === 'place', null)
  if (pairs.length > 0) return noMarks
  if (onRead) marksIn(value, kind === 'place', onRead)
  // Tektelic: fix_status.position is 0 where there is none.
  const isValid = own.isValid && !(kind === 'fix type' && value['position'] === 0)
  return { ...own, isValid }
}

function addCoordinate(
  sets: { set: string; of: Coordinates }[],
  kind: 'latitude' | 'longitude',
  { set, number }: Role,
  value: unknown,
): boolean {
  const degrees = signed(isRecord(value) ? (value['value'] ?? value['deg']) : value)
  // LON of Dragino is a lamp.
  const isDegrees = typeof degrees === 'number' || (typeof degrees === 'string' && /\d/.test(degrees))
  if (!isDegrees) return false
  let known = sets.find((one) => one.set === set)
  if (known === undefined) {
    known = { set, of: { latitude: undefined, longitude: undefined, number } }
    sets.push(known)
  }
  known.of[kind] ??= degrees
  return true
}

/** Null where it says nothing. */
function saidBy(role: Role, key: string, value: unknown): Partial<Marks> | null {
  switch (role.kind) {
    case 'time': {
      const time = timeFrom(value)
      return Number.isNaN(time) ? null : { time }
    }
    case 'age': {
      const ageMs = ageFrom(value, role.unitMs)
      if (Number.isNaN(ageMs)) return null
      return Number.isFinite(ageMs) ? { ageMs } : { isValid: false }
    }
    case 'valid':
      return isRecord(value) ? null : { isValid: booleanFrom(value) !== false && !saysNoFix(value) }
    case 'invalid':
      return isRecord(value) ? null : { isValid: !saysYes(value) }
    case 'timed out':
      return { isValid: booleanFrom(value) !== true }
    case 'count':
      return { isValid: plainNumber(isRecord(value) ? (value['used'] ?? value['inUse'] ?? 1) : value) !== 0 }
    case 'dilution':
      return { isValid: !(plainNumber(value) >= dilutionOfNoFix) }
    case 'fix type':
      return isRecord(value)
        ? null
        : { isValid: value !== 0 && value !== '0' && value !== false && !saysNoFix(value) }
    case 'status':
      return isRecord(value) ? null : { isValid: value !== false && !saysNoFix(value) }
    case 'status of place':
      return { isValid: !saysNoFix(value) }
    case 'place':
      if (typeof value === 'string' && /^g(?:ps|nss)$/i.test(key)) return { isValid: !saysNoFix(value) }
      return typeof value === 'boolean' ? { isValid: value } : null
    case 'earlier':
      return typeof value === 'boolean' && fixWord.test(key) ? { isValid: !value } : null
    case 'year':
      return {}
    case 'date':
    case 'zone':
    case 'part of time':
    case 'part of coordinate':
    case 'latitude':
    case 'longitude':
    case 'about':
    case 'elsewhere':
    case 'other':
    default:
      return null
  }
}

const dilutionOfNoFix = 99
const fixWord = /fix|pos|loc|gps|gnss|known/i

/** A number other than 0 and 1 is a code of an error. */
function saysYes(value: unknown): boolean {
  if (typeof value === 'number') return value !== 0
  return (
    booleanFrom(value) === true || (typeof value === 'string' && /^\d+$/.test(value) && Number(value) > 0)
  )
}

const noFixWords = new Set('no none v void off na unknown undefined disabled idle 0 never missing'.split(' '))
const noFixPart =
  /nofix|notfix|unfix|no[23]dfix|nok$|without|invalid|notvalid|fail|timeout|timedout|lost|nolock|unlock|nosignal|nosat|nogps|nognss|nopos|noloc|nosolution|search|locating|acquiring|unavailable|notavailable|notlocated|stale|lastknown|cached|outdated|previous|error|expired/

/** `no fix`, `GPS_TIMEOUT`, `V`. */
export function saysNoFix(value: unknown): boolean {
  if (typeof value !== 'string' || value.length > 80) return false
  const text = value.toLowerCase().replaceAll(/[^a-z\d]/g, '')
  return noFixWords.has(text) || noFixPart.test(text)
}

const explicit =
  /(?:no|without|lost)[ _-]?(?:valid[ _-]?)?(?:gps|gnss)?[ _-]?(?:fix|lock)\b|(?:gps|gnss|fix)[ _-]?(?:timeout|timed[ _-]?out|fail|lost)|last[ _-]?known/i

/** An object without a position beside one with it: { decoded: { gps: "No fix" }, location: ".." }. */
function saysNoFixInside(value: Record<string, unknown>, onRead: OnRead | null): boolean {
  for (const key in value) {
    const text = value[key]
    if (typeof text !== 'string') continue
    if (!isExplicit(text) && !(/gps|gnss|fix/i.test(key) && saysNoFix(text))) continue
    if (marksIn(value, false, null).pairs.length > 0) return false
    onRead?.(value, key)
    return true
  }
  return false
}

/** The letter of NMEA for a position that is not valid. */
function isVoid(value: unknown): boolean {
  return value === 'V' || value === 'v'
}

/** A text under any name that can only mean that there is no fix: { event: "GPS_TIMEOUT" }. */
function isExplicit(value: unknown): boolean {
  return typeof value === 'string' && value.length <= 40 && explicit.test(value)
}

const hemisphere = /^([NSEW])? ?(\d{1,3}(?:\.\d+)?) ?°? ?([NSEW])?$/i

/** `51.3 N` as 51.3, `9.4W` as -9.4, `51.3°` as 51.3; other values as they are. */
function signed(value: unknown): unknown {
  if (typeof value !== 'string') return value
  const [, plain] = /^([+-]?\d{1,3}(?:\.\d+)?) ?°$/.exec(value.trim()) ?? []
  if (plain !== undefined) return plain
  const [, before, degrees = '', behind] = hemisphere.exec(value.trim()) ?? []
  const letter = (before ?? behind)?.toUpperCase()
  if (letter === undefined) return value
  return letter === 'S' || letter === 'W' ? `-${degrees}` : degrees
}

/** NaN for anything but a number. */
function numberOf(value: unknown): number {
  return numberIn(isRecord(value) ? value['value'] : value)
}

/** NaN for objects and lists: Number throws where their `toString` is no function. */
function plainNumber(value: unknown): number {
  return typeof value === 'object' && value !== null ? Number.NaN : Number(value)
}
