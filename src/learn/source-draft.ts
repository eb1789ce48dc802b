// source-draft.ts: drafts a source from the names of keys, for messages that no preset fits. The keys are a
// guess, and a person must check the units. It drafts position, time, speed and heading. Odometer and engine
// hours are only noted, because a key named `odometer` may be a trip distance.

import { jsonIn } from './topic-shapes.ts'
import type { SourceOptions, TopicShape } from './types.ts'

export type Draft = {
  source: SourceOptions
  /** Sentences for the person who checks the draft. */
  notes: readonly string[]
}

type Leaf = { path: string; key: string; value: unknown }

const depthMax = 4
const leavesMax = 500

const names = {
  latitude: ['latitude', 'lat', 'gpslat', 'gpslatitude', 'positionlatitude'],
  longitude: ['longitude', 'lon', 'lng', 'long', 'gpslon', 'gpslng', 'gpslongitude', 'positionlongitude'],
  time: [
    'ts',
    'tst',
    'timestamp',
    'time',
    'fixtime',
    'gpstime',
    'devicetime',
    'datetime',
    'recordedat',
    'measuredat',
    'utc',
  ],
  speed: ['speed', 'spd', 'vel', 'velocity', 'gpsspeed', 'speedkmh', 'speedkph', 'speedmph', 'speedms', 'sp'],
  heading: ['heading', 'hdg', 'course', 'cog', 'bearing', 'direction', 'angle', 'ang', 'track'],
  device: ['imei', 'deviceid', 'vin', 'vehicleid', 'ident', 'device', 'serial', 'unitid', 'trackerid'],
  odometer: ['odometer', 'odo', 'mileage', 'totaldistance', 'vehicledistance'],
  hours: ['enginehours', 'hours', 'totalenginehours', 'motorhours', 'runtime'],
} as const

/** Null where no keys look like a position. */
export function draftOf(shape: TopicShape, topic: string, hasDevice: boolean): Draft | null {
  const values = shape.samples
    .map(({ bytes }) => jsonIn(bytes))
    .filter((value) => isObject(value) || isList(value))
  const isArray = values.some(isList)
  const leaves = values.flatMap((value) => leavesIn(isList(value) ? value[0] : value)).slice(0, leavesMax * 8)
  const find = (kind: keyof typeof names) => leafNamed(leaves, names[kind])
  const [latitude, longitude, time, speed, heading] = (
    ['latitude', 'longitude', 'time', 'speed', 'heading'] as const
  ).map(find)
  if (!latitude || !longitude) return null
  const device = hasDevice ? undefined : find('device')
  if (!hasDevice && !device) return null
  const format = time && formatOf(time.value)
  const map = {
    ...(time && format ? { time: { path: time.path, ...format } } : {}),
    latitude: { path: latitude.path },
    longitude: { path: longitude.path },
    ...(speed ? { speed: { path: speed.path, unit: speedUnitOf(speed.key) } } : {}),
    ...(heading ? { heading: { path: heading.path } } : {}),
    ...(speed ? { in_motion: { from: 'speed', above: 5 } } : {}),
  }
  const source = {
    topic,
    ...(device ? { device: { path: device.path } } : {}),
    ...(isArray ? { each: '$' } : {}),
    map,
  }
  return { source, notes: notesOf(speed, format, find('odometer'), find('hours')) }
}

function notesOf(
  speed: Leaf | undefined,
  format: { zone?: string } | undefined,
  odometer: Leaf | undefined,
  hours: Leaf | undefined,
): string[] {
  const notes = [
    'No preset fits, so this is a draft from the names of the keys. Compare it with the values that the ' +
      'device shows.',
  ]
  if (speed && speedUnitOf(speed.key) === 'km/h')
    notes.push(`Check the unit of ${speed.path}: km/h is a guess.`)
  if (format?.zone === 'utc') notes.push('The time has no zone; UTC is a guess.')
  if (odometer)
    notes.push(
      `${odometer.path} may be an odometer. If the dashboard shows the same value, add it as a signal.`,
    )
  if (hours)
    notes.push(
      `${hours.path} may be engine hours. If the dashboard shows the same value, add them as a signal.`,
    )
  return notes
}

function leafNamed(leaves: readonly Leaf[], wanted: readonly string[]): Leaf | undefined {
  // The names are ordered from clear to vague. Of several paths with one name the shortest counts.
  for (const name of wanted) {
    const found = leaves.filter(({ key, value }) => plainKey(key) === name && value !== null && value !== '')
    const [best] = found.sort((a, b) => a.path.length - b.path.length)
    if (best) return best
  }
  return undefined
}

function plainKey(key: string): string {
  return key.toLowerCase().replace(/[^a-z0-9]/g, '')
}

function leavesIn(root: unknown): Leaf[] {
  const leaves: Leaf[] = []
  visit(root, '', 0)
  return leaves

  function visit(value: unknown, path: string, depth: number): void {
    if (!isObject(value) || depth >= depthMax) return
    for (const [key, inner] of Object.entries(value)) {
      if (leaves.length >= leavesMax || key === '' || key.includes('"') || key.length > 100) continue
      const step = /^[A-Za-z_][\w-]*$/.test(key) ? key : `"${key}"`
      const own = path === '' ? step : `${path}.${step}`
      if (isObject(inner)) visit(inner, own, depth + 1)
      else if (!isList(inner)) leaves.push({ path: own, key, value: inner })
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

function speedUnitOf(key: string): string {
  const plain = plainKey(key)
  if (plain.endsWith('mph')) return 'mph'
  if (plain.endsWith('ms')) return 'm/s'
  return plain.includes('knot') ? 'knots' : 'km/h'
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isList(value: unknown): value is readonly unknown[] {
  return Array.isArray(value)
}
