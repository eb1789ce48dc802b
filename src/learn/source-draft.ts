// source-draft.ts: drafts a source from the names of keys, for messages that no preset fits. The keys are a
// guess, and a person must check the units. It drafts position, time, speed and heading. Odometer and engine
// hours are only noted, because a key named `odometer` may be a trip distance.

import { coordinateOf, fieldNames, plainKey, unitOption } from '../mapping/mapping.ts'
import { jsonIn, type TopicShape } from './topic-shapes.ts'
import type { SourceOptions } from './types.ts'

type Draft = {
  source: SourceOptions
  /** Sentences for the person who checks the draft. */
  notes: readonly string[]
}

type Leaf = { path: string; key: string; value: unknown }

const depthMax = 4
const leavesMax = 500

/** A value in an object of its own: `odometer: { value: 1, unit: km }`. */
const valueKeys = new Set(['value', 'val'])

/** `named`: whether the topic names the device. */
export function draftOf(shape: TopicShape, topic: string, named: boolean): Draft | null {
  const { leaves, isArray } = leavesOf(shape)
  const find = (kind: keyof typeof fieldNames) => leafNamed(leaves, fieldNames[kind])
  const coordinates = coordinatesIn(leaves)
  const time = leavesNamed(leaves, fieldNames.time).find(({ value }) => formatOf(value) !== undefined)
  const speed = leavesNamed(leaves, fieldNames.speed).find((leaf) => isSpeed(leaves, leaf))
  const heading = leavesNamed(leaves, fieldNames.heading).find((leaf) => isHeading(leaves, leaf))
  if (coordinates === null) return null
  const { latitude, longitude } = coordinates
  const form = coordinateForm(valuesAt(leaves, latitude), valuesAt(leaves, longitude))
  if (form.kind === 'unusable') return null
  const device = deviceOf(shape, find('device'), named)
  if (!named && !device) return null
  const format = time && formatOf(time.value)
  const speedUnit = speed && speedUnitOf(leaves, speed)
  const map = {
    ...(time && format ? { time: { path: time.path, ...format } } : {}),
    latitude: { path: latitude.path, ...form.options },
    longitude: { path: longitude.path, ...form.options },
    ...(speed ? { speed: { path: speed.path, unit: speedUnit?.unit } } : {}),
    ...(heading ? { heading: { path: heading.path } } : {}),
    ...(speed ? { in_motion: { from: 'speed', above: 5 } } : {}),
  }
  const source = {
    topic,
    ...device,
    ...(isArray ? { each: '$' } : {}),
    map,
  }
  const counters = { odometer: counterOf(leaves, 'odometer'), hours: counterOf(leaves, 'hours') }
  return { source, notes: notesOf({ leaves, speed, speedUnit, format, form, ...counters }) }
}

/** A sentence of NMEA 0183 in a text. */
export const sentence = /\$[A-Z]{2,3}(GGA|RMC|GLL|VTG|GSA|GSV|GNS|ZDA|HDT)\b|\$P[A-Z]{3,}/

/** A source with the preset nmea for sentences in a key of JSON; null where no key has them. */
export function sentencesDraftOf(shape: TopicShape, topic: string, named: boolean): SourceOptions | null {
  const { leaves, isArray } = leavesOf(shape)
  const leaf = leaves.find(({ value }) => typeof value === 'string' && sentence.test(value))
  const device = deviceOf(shape, leafNamed(leaves, fieldNames.device), named)
  if (!leaf || isArray || (!named && !device)) return null
  return {
    preset: 'nmea',
    topic,
    encoding: 'json',
    extract: [{ from: leaf.path, as: 'nmea', into: 'nmea' }],
    each: 'nmea.records',
    ...(device ? { device: { path: `$.${device.device.path}` } } : {}),
  }
}

/** The position in the messages of a shape; null where no keys look like one. */
export function positionIn(shape: TopicShape): { form: CoordinateForm; paths: string } | null {
  const { leaves } = leavesOf(shape)
  const coordinates = coordinatesIn(leaves)
  if (coordinates === null) return null
  const { latitude, longitude } = coordinates
  const form = coordinateForm(valuesAt(leaves, latitude), valuesAt(leaves, longitude))
  return { form, paths: `${latitude.path}, ${longitude.path}` }
}

function leavesOf({ samples }: TopicShape): { leaves: Leaf[]; isArray: boolean } {
  const values = samples.map(({ bytes }) => jsonIn(bytes)).filter((value) => isObject(value) || isList(value))
  const leaves = values.flatMap((value) => leavesIn(isList(value) ? value[0] : value)).slice(0, leavesMax * 8)
  return { leaves, isArray: values.some(isList) }
}

function valuesAt(leaves: readonly Leaf[], { path }: Leaf): unknown[] {
  return leaves.filter((leaf) => leaf.path === path).map(({ value }) => value)
}

/**
 * Where the topic does not name the device, or several devices share a topic, the message does. Undefined
 * where it does not, or need not.
 */
function deviceOf(
  shape: TopicShape,
  leaf: Leaf | undefined,
  named: boolean,
): { device: { path: string } } | undefined {
  if (!leaf || (named && !shareTopics(shape, leaf))) return undefined
  return { device: { path: leaf.path } }
}

function shareTopics({ samples }: TopicShape, { path }: Leaf): boolean {
  const found = new Map<string, unknown>()
  for (const { topic, bytes } of samples) {
    const value = jsonIn(bytes)
    const own = leavesIn(isList(value) ? value[0] : value).find((leaf) => leaf.path === path)?.value
    if (own === undefined) continue
    if (found.has(topic) && found.get(topic) !== own) return true
    found.set(topic, own)
  }
  return false
}

/** Also under a name such as `can_odometer_km`, and not one of a trip or of a receiver. */
function counterOf(leaves: readonly Leaf[], kind: 'odometer' | 'hours'): Leaf | undefined {
  const [contained, foreign] =
    kind === 'odometer'
      ? [/odometer|mileage|total_?distance|kilometerstand/i, /trip|gps|gnss|virtual|service/i]
      : [/engine_?hours|hour_?meter|motor_?hours|engine_?run/i, /trip|idle|service/i]
  const inside = (path: string) => foreign.test(path)
  return (
    leavesNamed(leaves, fieldNames[kind]).find(({ path, value }) => isNumber(value) && !inside(path)) ??
    leaves.find(({ key, value }) => isNumber(value) && contained.test(key) && !foreign.test(key))
  )
}

type Notes = {
  leaves: readonly Leaf[]
  speed: Leaf | undefined
  speedUnit: { unit: string; isGuess: boolean } | undefined
  format: { zone?: string } | undefined
  form: CoordinateForm
  odometer: Leaf | undefined
  hours: Leaf | undefined
}

function notesOf({ leaves, speed, speedUnit, format, form, odometer, hours }: Notes): string[] {
  const notes = [
    'No preset fits, so this is a draft from the names of the keys. Compare it with the values that the ' +
      'device shows.',
  ]
  if (form.kind === 'scaled') notes.push(form.note)
  if (speed && speedUnit?.isGuess === true) notes.push(`Check the unit of ${speed.path}: km/h is a guess.`)
  if (format?.zone === 'utc') notes.push('The time has no zone; UTC is a guess.')
  if (odometer)
    notes.push(
      `${odometer.path} may be an odometer. If the dashboard shows the same value, add it as a signal: ` +
        signalText('OBD_LIFETIME_ODOMETER', odometer.path, unitOf(leaves, odometer), ['km', 'm', 'mi']),
    )
  if (hours)
    notes.push(
      `${hours.path} may be engine hours. If the dashboard shows the same value, add them as a signal: ` +
        signalText('OBD_TOTAL_ENGINE_TIME', hours.path, unitOf(leaves, hours), ['h', 'min', 's', 'ms']),
    )
  return notes
}

/** `{ type: OBD_LIFETIME_ODOMETER, path: odometer_m, unit: m }.` */
function signalText(type: string, path: string, unit: string | null, known: readonly string[]): string {
  const text = (own: string) =>
    `{ type: ${type}, path: ${path.includes('"') ? `'${path}'` : path}, unit: ${own} }.`
  if (unit !== null && known.includes(unit)) return text(unit)
  return `${text(known[0] ?? '')} The message does not say its unit; it may be ${known.join(', ')}.`
}

/** The unit in the key, or beside the value: `{ value: 1, unit: km }`. */
function unitOf(leaves: readonly Leaf[], { path, key }: Leaf): string | null {
  const inKey = splitUnit(key).unit
  const parent = /^(.*)\.(?:value|val)$/i.exec(path)?.[1]
  if (parent === undefined) return inKey
  const beside = leaves.find((leaf) => leaf.path === `${parent}.unit` || leaf.path === `${parent}.units`)
  return unitWord(beside?.value) ?? inKey
}

/** By what they are called: `lat`, `currentLatitude`, `gnss_lat`, `lat_e7`. The clearest names first. */
function coordinatesIn(leaves: readonly Leaf[]): { latitude: Leaf; longitude: Leaf } | null {
  const called = leaves.filter(isThere).flatMap((leaf) => {
    const role = coordinateOf(leaf.key) ?? coordinateOf(splitUnit(leaf.key).name)
    return role === null ? [] : [{ leaf, ...role }]
  })
  called.sort((a, b) => a.set.length - b.set.length || a.leaf.path.length - b.leaf.path.length)
  for (const north of called.filter(({ kind }) => kind === 'latitude')) {
    const east = called.find(({ kind, set }) => kind === 'longitude' && set === north.set)
    if (east) return { latitude: north.leaf, longitude: east.leaf }
  }
  return null
}

function isThere({ value }: Leaf): boolean {
  return value !== null && value !== ''
}

function leafNamed(leaves: readonly Leaf[], wanted: readonly string[]): Leaf | undefined {
  return leavesNamed(leaves, wanted)[0]
}

/** The best first. The names are ordered from clear to vague; of several paths of one the shortest counts. */
function leavesNamed(leaves: readonly Leaf[], wanted: readonly string[]): Leaf[] {
  return wanted.flatMap((name) =>
    leaves
      .filter((leaf) => isThere(leaf) && isNamed(leaf.key, name))
      .sort((a, b) => a.path.length - b.path.length),
  )
}

/** Also with a unit behind it: `speed_kn`. */
function isNamed(key: string, name: string): boolean {
  return plainKey(key) === name || plainKey(splitUnit(key).name) === name
}

function isNumber(value: unknown): boolean {
  return typeof value === 'number' || (typeof value === 'string' && /^-?\d+(\.\d+)?$/.test(value.trim()))
}

/** A text such as "54 km/h" or a word is not read; a number that no vehicle drives is something else. */
function isSpeed(leaves: readonly Leaf[], leaf: Leaf): boolean {
  return mostly(leaves, leaf, (value) => value < 1000)
}

/** Within a circle, and not the number of a direction of travel. */
function isHeading(leaves: readonly Leaf[], leaf: Leaf): boolean {
  const isDirection = /^dir/i.test(leaf.key) && mostly(leaves, leaf, (value) => value <= 2)
  return !isDirection && mostly(leaves, leaf, (value) => value >= 0 && value <= 360)
}

/** A single other value is a fault of the device. */
function mostly(leaves: readonly Leaf[], leaf: Leaf, holds: (value: number) => boolean): boolean {
  const values = valuesAt(leaves, leaf).filter((value) => value !== null && value !== '')
  return values.filter((value) => isNumber(value) && holds(Number(value))).length * 2 > values.length
}

function leavesIn(root: unknown): Leaf[] {
  const leaves: Leaf[] = []
  visit(root, '', 0, '')
  return leaves

  function visit(value: unknown, path: string, depth: number, outer: string): void {
    if (!isObject(value) || depth >= depthMax) return
    for (const [key, inner] of Object.entries(value)) {
      if (leaves.length >= leavesMax || key === '' || key.includes('"') || key.length > 100) continue
      const step = /^[A-Za-z_][\w-]*$/.test(key) ? key : `"${key}"`
      const own = path === '' ? step : `${path}.${step}`
      if (isObject(inner)) visit(inner, own, depth + 1, key)
      // The point of GeoJSON has its longitude first.
      else if (key === 'coordinates' && value['type'] === 'Point' && isList(inner))
        leaves.push(
          { path: `${own}[1]`, key: 'latitude', value: inner[1] },
          { path: `${own}[0]`, key: 'longitude', value: inner[0] },
        )
      else if (!isList(inner)) {
        const name = valueKeys.has(key.toLowerCase()) && outer !== '' ? outer : key
        leaves.push({ path: own, key: name, value: inner })
      }
    }
  }
}

type Format = { format: string; zone?: 'utc' }

/** Undefined for a time of an unknown format. */
function formatOf(value: unknown): Format | undefined {
  if (typeof value === 'number') {
    if (value >= 1e14) return { format: 'us' }
    if (value >= 1e11) return { format: 'ms' }
    return value >= 1e8 ? { format: 's' } : undefined
  }
  if (typeof value !== 'string') return undefined
  if (/^\d{14}$/.test(value)) return { format: 'compact' }
  if (/^\d{9,13}(\.\d+)?$/.test(value)) return { format: 'auto' }
  if (!/^\d{4}-\d\d-\d\d[ T]\d\d:\d\d/.test(value)) return undefined
  return /(Z|[+-]\d\d:?\d\d)$/i.test(value) ? { format: 'iso' } : { format: 'iso', zone: 'utc' }
}

const speedUnits = ['km/h', 'm/s', 'knots', 'mph', 'cm/s']
/** Milliseconds are no unit of a speed. */
const speedEnds = { mph: 'mph', kmh: 'km/h', kph: 'km/h', ms: 'm/s', knot: 'knots', knots: 'knots' }

function speedUnitOf(leaves: readonly Leaf[], leaf: Leaf): { unit: string; isGuess: boolean } {
  const own = unitOf(leaves, leaf)
  const plain = plainKey(leaf.key)
  const [, atEnd = null] = Object.entries(speedEnds).find(([end]) => plain.endsWith(end)) ?? []
  const unit = own !== null && speedUnits.includes(own) ? own : atEnd
  return { unit: unit ?? 'km/h', isGuess: unit === null }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isList(value: unknown): value is readonly unknown[] {
  return Array.isArray(value)
}

// The unit that a key names: `odometer_m`, `speedKmh`, `speed_kn`, `lat_e7`; or the one beside
// a value: `speed: { value: 54, unit: mph }`.

/** Words that are units at the end of a key only, or no units of a payload. */
const ofKeys: Readonly<Record<string, string>> = {
  kmph: 'km/h',
  mps: 'm/s',
  cms: 'cm/s',
  e7: 'e7',
  e6: 'e6',
  utc: 'utc',
}

/** The key without its unit, and the unit; null where the last word of the key is none. */
function splitUnit(key: string): { name: string; unit: string | null } {
  // `speed_km_h` and `speed(km/h)` are one word at the end.
  const text = key.replace(/[\s([]*km[_/ ]?h[)\]]?$/i, '_kmh').replace(/[\s([]*m[_/ ]s[)\]]?$/i, '_mps')
  const parts = text
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .split(/[^A-Za-z0-9/]+/)
    .filter((part) => part !== '')
  const unit = unitWord(parts.at(-1))
  return unit === null ? { name: key, unit } : { name: parts.slice(0, -1).join('_'), unit }
}

/** The unit that a text means. */
function unitWord(text: unknown): string | null {
  if (typeof text !== 'string') return null
  return Object.entries(ofKeys).find(([word]) => word === text.toLowerCase())?.[1] ?? unitOption(text)
}

// How the numbers of a position are written: degrees, integers of a part of a degree, or
// degrees and minutes as NMEA writes them (4807.038 is 48 degrees and 7.038 minutes).

type CoordinateForm =
  | { kind: 'degrees'; options: object }
  | { kind: 'scaled'; options: object; note: string }
  /** No option of a source reads it. */
  | { kind: 'unusable'; note: string }

const scales = [
  // The largest part first: a position then has the most digits.
  { most: 90e6, options: { unit: '1e-7deg' }, name: 'ten-millionths of a degree (1e-7deg)' },
  { most: 90e5, options: { scale: 0.000001 }, name: 'millionths of a degree' },
  { most: 90e4, options: { scale: 0.00001 }, name: 'hundred-thousandths of a degree' },
] as const

export function coordinateForm(
  latitudes: readonly unknown[],
  longitudes: readonly unknown[],
): CoordinateForm {
  const [north, east] = [numbersIn(latitudes), numbersIn(longitudes)]
  const [northMost, eastMost] = [largest(north), largest(east)]
  if (mostlyWithin(north, 90) && mostlyWithin(east, 180)) return { kind: 'degrees', options: {} }
  const all = [...north, ...east]
  if (isMinutes(north, 9000) && isMinutes(east, 18_000) && !all.every(Number.isInteger))
    return {
      kind: 'scaled',
      options: { unit: 'ddmm' },
      note:
        'The position is written in degrees and minutes as in NMEA 0183: 4807.038 is 48 degrees and 7.038 minutes ' +
        '(`unit: ddmm`). Compare the place with a map.',
    }
  if (!all.every(Number.isInteger))
    return { kind: 'unusable', note: 'The position is out of the range of degrees.' }
  for (const { most, options, name } of scales)
    if (northMost > most || eastMost > most * 2)
      return {
        kind: 'scaled',
        options,
        note: `The position is a scaled integer; ${name} is a guess. Compare the place with a map.`,
      }
  return { kind: 'unusable', note: 'The position is a scaled integer of an unknown scale.' }
}

function numbersIn(values: readonly unknown[]): number[] {
  return values
    .filter((value) => typeof value === 'number' || (typeof value === 'string' && value.trim() !== ''))
    .map(Number)
    .filter(Number.isFinite)
}

/** A single wrong value is a fault of the device, and not another form. */
function mostlyWithin(values: readonly number[], most: number): boolean {
  return values.filter((value) => Math.abs(value) <= most).length * 2 >= values.length
}

function largest(values: readonly number[]): number {
  return values.reduce((most, value) => Math.max(most, Math.abs(value)), 0)
}

/** Degrees and minutes: 4807.038. */
function isMinutes(values: readonly number[], most: number): boolean {
  return values.length > 0 && values.every((value) => Math.abs(value) <= most && Math.abs(value) % 100 < 60)
}
