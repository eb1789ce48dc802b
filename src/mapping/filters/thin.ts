// thin.ts: fewer payloads from devices that report more often than needed.
//
// A payload passes when, compared with the last one that passed,
//
//   every      this much device time has gone by
//   distance   the position is this far away
//   heading    the heading differs by this much
//   signal     any signal or extra field has another value (ignition is one)
//
// or when the asset started or stopped moving. A payload older than the last one always passes, since a late
// payload fills a gap. Payloads with different kinds of values (a position, an odometer) are separate streams
// that are thinned independently.
//
// A duplicate has the same result as its original, or a resend would change what is sent: the keys of the
// last 32 payloads of a stream are remembered with their result. Two payloads without a device time are
// duplicates only when the device marks them with DUP.
//
// In memory only, and bounded: after a restart, or for a device that was evicted, the next payload passes.

import type { EpochMs } from '../../std/clock.ts'
import { createCache } from '../bounded-cache.ts'
import type { SourceConfig } from '../config.ts'
import { sentSignals, type Identity, type MappedRecord } from '../write.ts'

export type ThinRules = NonNullable<SourceConfig['thin']>

/** Streams in memory. Beyond it, the least recently used ones are evicted and counted. */
const streamsMax = 65_536

/** The values of a payload that the rules compare; NaN and null for those it does not have. */
export type ThinSample = {
  device: string
  /** The stream of the device: the types of its values. */
  shape: string
  time: EpochMs
  /** The window key. With `resent` a known key is a duplicate, else another payload with the same content. */
  windowKey: string
  resent: boolean
  latitude: number
  longitude: number
  heading: number
  moving: boolean | null
  /** The signals and extra fields as text. */
  values: string
}

export type Thin = ReturnType<typeof createThin>

/** Remembered payloads of a stream: as many as most clients have in flight, and the bits of a number. */
const resultsMax = 32

type Stream = {
  last: ThinSample | null
  /** The first 64 bits of the keys, two words each, in a ring; bit n of `passed`: number n passed. */
  keys: Uint32Array
  passed: number
  next: number
}

const metresPerRadian = 6_371_008.8
const radians = Math.PI / 180

export function createThin(rules: ThinRules) {
  const streams = createCache<Stream>(streamsMax)
  const counts = { passed: 0, thinned: 0 }
  return { passes, counters: () => ({ ...streams.counters(), ...counts }) }

  function passes(sample: ThinSample): boolean {
    const key = `${sample.shape} ${sample.device}`
    let stream = streams.get(key)
    if (stream === undefined) {
      stream = { last: null, keys: new Uint32Array(resultsMax * 2), passed: 0, next: 0 }
      streams.set(key, stream)
    }
    const passed = decide(stream, sample)
    if (passed) counts.passed += 1
    else counts.thinned += 1
    return passed
  }

  function decide(stream: Stream, sample: ThinSample): boolean {
    const high = Number.parseInt(sample.windowKey.slice(0, 8), 16)
    const low = Number.parseInt(sample.windowKey.slice(8, 16), 16)
    if (sample.resent) {
      const known = indexOf(stream, high, low)
      if (known !== -1) return (stream.passed & (1 << known)) !== 0
    }
    const { last } = stream
    const late = last !== null && sample.time < last.time
    const passed = last === null || late || differs(last, sample)
    if (passed && !late) stream.last = { ...sample, values: rules.signal ? sample.values : '' }
    remember(stream, high, low, passed)
    return passed
  }

  function differs(last: ThinSample, now: ThinSample): boolean {
    const { every, distance, heading, signal } = rules
    if (every !== undefined && now.time - last.time >= every) return true
    if (last.moving !== now.moving) return true
    if (signal && last.values !== now.values) return true
    if (heading !== undefined && angleBetween(last.heading, now.heading) >= heading) return true
    return distance !== undefined && metresBetween(last, now) >= distance
  }
}

function indexOf({ keys }: Stream, high: number, low: number): number {
  for (let index = 0; index < resultsMax; index += 1)
    if (keys[index * 2] === high && keys[index * 2 + 1] === low) return index
  return -1
}

function remember(stream: Stream, high: number, low: number, passed: boolean): void {
  const index = stream.next
  stream.next = (index + 1) % resultsMax
  stream.keys[index * 2] = high
  stream.keys[index * 2 + 1] = low
  stream.passed = passed ? stream.passed | (1 << index) : stream.passed & ~(1 << index)
}

/** The smaller angle between two headings; NaN where one is missing. */
function angleBetween(one: number, other: number): number {
  const angle = Math.abs(one - other) % 360
  return angle > 180 ? 360 - angle : angle
}

type Position = { latitude: number; longitude: number }

/** On the great circle (haversine); NaN where a position is missing. */
export function metresBetween(one: Position, other: Position): number {
  const north = Math.sin(((other.latitude - one.latitude) * radians) / 2)
  const east = Math.sin(((other.longitude - one.longitude) * radians) / 2)
  const across = Math.cos(one.latitude * radians) * Math.cos(other.latitude * radians)
  return 2 * metresPerRadian * Math.asin(Math.min(1, Math.sqrt(north * north + across * east * east)))
}

/** `resent`: a payload of the same key is the same one. */
export function thinSampleOf(mapped: MappedRecord, { windowKey }: Identity, resent: boolean): ThinSample {
  const { device, time, arrivedAt, fields } = mapped
  const values = sentSignals(mapped).join('') + fields
  const stream = { device, shape: shapeOf(mapped), time: time ?? arrivedAt }
  return { ...stream, windowKey, resent, ...positionOf(mapped), values }
}

const noPosition = { latitude: Number.NaN, longitude: Number.NaN, heading: Number.NaN, moving: null }

function positionOf({ gps, moving, withheld }: MappedRecord): Pick<ThinSample, keyof typeof noPosition> {
  if (gps === '' || withheld?.gps === true) return noPosition
  const { latitude, longitude, heading, inMotion } = JSON.parse(gps.slice(',"gps":'.length)) as Position & {
    heading?: number
    inMotion?: boolean
  }
  return { latitude, longitude, heading: heading ?? Number.NaN, moving: inMotion ?? moving }
}

function shapeOf({ gps, signals }: MappedRecord): string {
  let shape = gps === '' ? '' : 'gps'
  for (const signal of signals) shape += signal.slice(0, signal.indexOf('","value":'))
  return shape
}
