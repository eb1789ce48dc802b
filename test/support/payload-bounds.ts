// payload-bounds.ts: the bounds of every field that the packaged presets send, written down a second time: a
// change of the defaults in src must be a change here.

import { isJsonObject } from '../../src/sandbox/payload-check.ts'

type Json = Readonly<Record<string, unknown>>

/** Of fields that a preset may send. Any other field is a fault. */
const topFields = new Set([
  'payloadId',
  'carrier',
  'signalTimestamp',
  'assetIdentifier',
  'deviceIdentifier',
  'gps',
  'signals',
])

const gpsBounds: Readonly<Record<string, readonly [least: number, most: number]>> = {
  latitude: [-90, 90],
  longitude: [-180, 180],
  speed: [0, 250],
  heading: [0, 360 - 2 ** -44],
}

/** By type and unit. */
const signalBounds: Readonly<Record<string, readonly [least: number, most: number]>> = {
  'OBD_LIFETIME_ODOMETER KILOMETERS': [0, 10_000_000],
  'OBD_TOTAL_ENGINE_TIME HOURS': [0, 200_000],
}

/** What trackers send in the place of a value, in metres as kilometres and as it is. */
const sentinels = new Set([4_294_967_295, 4_294_967_294, 4_294_967.295, 4_294_967.294, 526_385_151.875])

/** A sentence about the first field that is not within its bounds; null for none. */
export function outOfBounds(payload: Json): string | null {
  const other = Object.keys(payload).find((key) => !topFields.has(key))
  if (other !== undefined) return `the field ${other} has no bounds`
  const { gps, signals, signalTimestamp: time } = payload
  if (typeof time !== 'number' || !(time >= 0 && time <= 8.64e15)) return `a time of ${String(time)}`
  const inGps = isJsonObject(gps) ? gpsFault(gps) : null
  if (inGps !== null) return inGps
  for (const signal of Array.isArray(signals) ? (signals as unknown[]) : []) {
    const fault = isJsonObject(signal) ? signalFault(signal) : 'a signal that is no object'
    if (fault !== null) return fault
  }
  return null
}

function gpsFault(gps: Json): string | null {
  for (const [name, value] of Object.entries(gps)) {
    if (name === 'inMotion' ? typeof value === 'boolean' : value === 'KILOMETERS_PER_HOUR') continue
    const bounds = gpsBounds[name]
    if (bounds === undefined) return `the field gps.${name} has no bounds`
    if (typeof value !== 'number' || !(value >= bounds[0] && value <= bounds[1]))
      return `gps.${name} of ${String(value)}`
  }
  return null
}

function signalFault({ type, valueUnit, value, assetPart }: Json): string | null {
  const kind = `${String(type)} ${String(valueUnit)}`
  const bounds = signalBounds[kind]
  if (bounds === undefined) return `the signal ${kind} has no bounds`
  if (assetPart !== undefined && assetPart !== 'ENGINE') return `the part ${JSON.stringify(assetPart)}`
  if (typeof value !== 'string' || !/^\d+(\.\d+)?$/.test(value)) return `${kind} of ${String(value)}`
  const number = Number(value)
  if (!(number >= bounds[0] && number <= bounds[1]) || sentinels.has(number)) return `${kind} of ${value}`
  return null
}
