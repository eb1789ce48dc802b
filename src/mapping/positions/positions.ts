// positions.ts: finds the positions in the object that a decoder made of the bytes of a tracker. The entry
// file of the folder.
//
// A decoder names its values as it likes, and puts them where it likes (position-names.ts):
//
//   { latitude: 51.3, longitude: 9.4, sats: 7 }                  { gps: { lat: 51.3, lon: 9.4 }, fix: true }
//   { location: [51.3, 9.4] }     { location: "51.3,9.4" }       { type: "Point", coordinates: [9.4, 51.3] }
//   { history: [{ timestamp: .., latitude: .., longitude: .. }, ..] }        positions that were stored
//   { messages: [[{ type: "Latitude", measurementValue: 51.3 }, ..], ..] }   SenseCAP
//   { latitude1: .., longitude1: .., time1: .., latitude2: .., .. }          Lansitec
//
// The result has at most one current position, then each stored one. What says whether there is a fix, and
// when it was taken, counts for the positions beside it and further inside (position-marks.ts), but not for
// those in lists and with numbers: these were taken before, and need a time or an age of their own.
//
// Of several current positions the first usable one is taken: a second receiver may have a fix that the first
// one does not have. Where none is usable, the result says why: invalid, out of range, zeros.
//
// Never a position of the tracker: gateways, geofences, the last position after a failed fix, whole degrees
// with their minutes beside them (lat_deg, lat_min), coordinates that say that there is no position
// (position-pairs.ts). Two numbers in a list named `coordinates` without the type Point can be meant both
// ways, and are taken only where one of them must be the longitude.

import { isRecord } from '../path/path-eval.ts'
import { numberIn } from '../path/value.ts'
import { isBlank, isUsable, pairIn } from './position-pairs.ts'
import { inheritedMarks, marksIn, noMarks, type Marks, type OnRead } from './position-marks.ts'
import { roleOf } from './position-names.ts'

export type FoundPosition = {
  /** As the decoder wrote them. */
  latitude: unknown
  longitude: unknown
  /** Epoch milliseconds, and milliseconds before the message; NaN where the decoder does not say it. */
  time: number
  ageMs: number
  isValid: boolean
  /** Taken before: it has a time of its own, and the other values of the message are not of that time. */
  isStored: boolean
  /** The object of a stored position; null for the whole object, and where there is none. */
  part: Record<string, unknown> | null
}

type Place = {
  marks: Marks
  /** An element of a list, or one of several numbered positions. */
  isListed: boolean
  isEarlier: boolean
  isPlace: boolean
  depth: number
}

type Search = {
  found: FoundPosition[]
  /** In lists, without a time: one of them is the current position if there is no other. */
  untimed: FoundPosition[]
  half: FoundPosition | undefined
  /** The last one before a failed fix. */
  last: FoundPosition | undefined
  onRead: OnRead | null
}

const depthMax = 8

/** Undefined where there is no position at all. `onRead` is called with each key that was read. */
export function findPositions(decoded: unknown, onRead: OnRead | null = null): FoundPosition[] | undefined {
  if (!isRecord(decoded) && !Array.isArray(decoded)) return undefined
  const search: Search = { found: [], untimed: [], half: undefined, last: undefined, onRead }
  const place: Place = { marks: noMarks, isListed: false, isEarlier: false, isPlace: false, depth: 0 }
  if (Array.isArray(decoded)) visitList(decoded, place, search)
  else visit(decoded, place, search)
  const { found, untimed, half, last } = search
  const [only] = found
  if (only && found.length === 1 && untimed.length === 0) return [only]
  const now = found.filter(({ isStored }) => !isStored)
  const current = currentOf(now) ?? onlyOf(untimed)
  const stored = [...found.filter(({ isStored }) => isStored), ...otherTimesOf(now, current)]
  if (stored.length === 0) return listOf(current ?? half ?? last)
  // One that cannot be sent must not refuse the stored ones of its message.
  return current ? [{ ...current, isValid: current.isValid && isUsable(current) }, ...stored] : stored
}

/** Objects side by side with times of their own are a list, too: { "1": { time, .. }, "2": { time, .. } }. */
function otherTimesOf(now: readonly FoundPosition[], current: FoundPosition | undefined): FoundPosition[] {
  const times = new Set([current?.time])
  const others = now.filter((one) => !Number.isNaN(one.time) && one.isValid && isUsable(one))
  return others.flatMap((one) => {
    if (times.has(one.time)) return []
    times.add(one.time)
    return [{ ...one, isStored: true, part: {} }]
  })
}

function listOf(position: FoundPosition | undefined): FoundPosition[] | undefined {
  return position && [position]
}

/** Of several without a time nobody knows which is the last one. */
function onlyOf(untimed: readonly FoundPosition[]): FoundPosition | undefined {
  const [only] = untimed
  return only && { ...only, isValid: only.isValid && untimed.length === 1 }
}

function currentOf(found: readonly FoundPosition[]): FoundPosition | undefined {
  const chosen =
    found.find((one) => one.isValid && isUsable(one)) ??
    found.find((one) => one.isValid && !isBlank(one)) ??
    found.find((one) => one.isValid) ??
    found[0]
  if (chosen === undefined) return undefined
  // The same position may be written twice, once with its time.
  return found.reduce(
    (one, other) => (isSame(one, other) ? { ...one, ...inheritedMarks(one, other) } : one),
    chosen,
  )
}

function isSame(one: FoundPosition, other: FoundPosition): boolean {
  return (
    numberIn(one.latitude) === numberIn(other.latitude) &&
    numberIn(one.longitude) === numberIn(other.longitude)
  )
}

function visit(holder: Record<string, unknown>, place: Place, search: Search): void {
  const { onRead } = search
  const inside = marksIn(holder, place.isPlace, onRead)
  const marks = inheritedMarks(place.marks, inside.own)
  for (const { latitude, longitude, number } of inside.pairs) {
    const numbered = number === '' ? undefined : inside.numbered.get(number)
    const own = numbered ? { ...noMarks, ...numbered } : marks
    const isListed = place.isListed || numbered !== undefined
    add({ latitude, longitude }, { ...place, marks: own, isListed }, numbered ? {} : holder, search)
  }
  if (place.depth === 0 && inside.half) {
    const { latitude, longitude } = inside.half
    search.half = { latitude, longitude, ...marks, isStored: false, part: null }
  }
  const whole = pairIn(holder, 'point')
  if (whole) {
    onRead?.(holder, 'coordinates')
    onRead?.(holder, 'type')
    add(whole, { ...place, marks }, holder, search)
  }
  if (place.depth >= depthMax) return
  for (const { key, kind, value } of inside.inner) {
    const pair = kind === 'place' ? pairIn(value, key) : null
    if (pair) {
      onRead?.(holder, key)
      add(pair, { ...place, marks }, holder, search)
    } else if (typeof value !== 'string') {
      const isPlace = kind === 'place' || kind === 'valid'
      const isEarlier = place.isEarlier || kind === 'earlier' || kind === 'invalid'
      const inner = { marks, isListed: place.isListed, isEarlier, isPlace, depth: place.depth + 1 }
      if (Array.isArray(value)) visitList(value as unknown[], inner, search)
      else visit(value as Record<string, unknown>, inner, search)
    }
  }
}

function visitList(list: readonly unknown[], place: Place, search: Search): void {
  const named = namedIn(list, search.onRead)
  if (named) add(named.pair, { ...place, marks: inheritedMarks(place.marks, named.marks) }, {}, search)
  if (place.depth >= depthMax) return
  // One element may be the way that a decoder writes its only position.
  const isOnly = list.length === 1 && !place.isListed
  for (const element of list) {
    const inner = {
      ...place,
      isListed: !isOnly,
      depth: place.depth + 1,
      marks: isOnly ? place.marks : noMarks,
    }
    if (Array.isArray(element)) visitList(element as unknown[], inner, search)
    else if (isRecord(element)) visit(element, inner, search)
  }
}

const nameKeys = ['type', 'name', 'key', 'variable', 'field', 'id']
const valueKeys = ['measurementValue', 'value', 'val', 'v']

/** A list of named values: [{ type: "Latitude", measurementValue: 51.3, timestamp: .. }, ..]. */
function namedIn(list: readonly unknown[], onRead: OnRead | null) {
  let latitude: unknown
  let longitude: unknown
  let marks: Marks = noMarks
  for (const element of list) {
    if (!isRecord(element)) return null
    const name = nameKeys.map((key) => element[key]).find((one) => typeof one === 'string')
    const valueKey = valueKeys.find((key) => element[key] !== undefined)
    if (typeof name !== 'string' || valueKey === undefined) continue
    const { kind } = roleOf(name)
    if (kind === 'latitude') latitude ??= element[valueKey]
    else if (kind === 'longitude') longitude ??= element[valueKey]
    else {
      marks = inheritedMarks(marks, marksIn({ [name]: element[valueKey] }, false, null).own)
      continue
    }
    for (const key of [...nameKeys, valueKey]) onRead?.(element, key)
    marks = inheritedMarks(marks, marksIn(element, false, onRead).own)
  }
  if (latitude === undefined || longitude === undefined) return null
  return { pair: { latitude, longitude }, marks }
}

function add(
  { latitude, longitude }: { latitude: unknown; longitude: unknown },
  { marks, isListed, isEarlier }: Place,
  part: Record<string, unknown>,
  search: Search,
): void {
  const { time, ageMs } = marks
  const isTimed = !Number.isNaN(time) || (!Number.isNaN(ageMs) && !isEarlier)
  const isStored = (isListed || isEarlier) && isTimed
  const position = { latitude, longitude, time, ageMs, isValid: marks.isValid }
  if (isEarlier && !isTimed) {
    search.last = { ...position, isValid: false, isStored, part: null }
    return
  }
  if (!isStored) {
    const list = isListed ? search.untimed : search.found
    list.push({ ...position, isStored, part: null })
    return
  }
  // One that cannot be sent must not refuse the others of its message.
  search.found.push({ ...position, isValid: marks.isValid && isUsable(position), isStored, part })
}

export function isNoFix(position: FoundPosition): boolean {
  return !position.isValid || isBlank(position)
}
