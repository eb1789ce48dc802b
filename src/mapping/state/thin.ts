// thin.ts: fewer payloads from devices that report more often than anybody wants to know.
//
// Against the last payload that passed, one passes when
//
//   every      so much device time has gone by
//   distance   the position is so far from that one
//   heading    the course differs by so much
//   signal     any signal or further field has another value (ignition is one)
//
// or when the asset began or ceased to move; and always when it is older than the last one, since what comes
// late fills a gap. Payloads of different shape (a position, an odometer) are different streams: they do not
// thin each other.
//
// A copy has the fate of its original, or a resend would change what is sent: the names of the last 32
// payloads of a stream are remembered with what became of them. Two payloads without a device time are copies
// only when the device says so (DUP).
//
// Kept in memory only and bounded: after a restart, and for a device that was forgotten, the next payload
// passes.

import type { EpochMs } from '../../std/clock.ts'
import { createCache, type CacheCounters } from '../bounded-cache.ts'

export type ThinOptions = {
  /** Each is null where it does not make a payload pass. */
  everyMs: number | null
  distanceM: number | null
  headingDeg: number | null
  signal: boolean
  /** Streams that are remembered; beyond, those longest unused are forgotten, counted as evictions. */
  streamsMax: number
}

/** What the rules look at in a payload; NaN and null where it has no such thing. */
export type ThinSample = {
  device: string
  /** Which stream of the device: the types of its values, not the values. */
  shape: string
  time: EpochMs
  /** The payload's window key; `resent` says that a known one is the same payload and not the same words. */
  windowKey: string
  resent: boolean
  latitude: number
  longitude: number
  heading: number
  moving: boolean | null
  /** The signals and further fields as text. */
  values: string
}

export type Thin = {
  passes(sample: ThinSample): boolean
  counters(): CacheCounters & { passed: number; thinned: number }
}

/** As many as most clients have in flight: a power of two. */
const fatesMax = 32

type Stream = {
  last: ThinSample | null
  /** The first 64 bits of the names, two words each, in a ring; bit n of `fates`: that one passed. */
  names: Uint32Array
  fates: number
  next: number
}

const metresPerRadian = 6_371_008.8
const radians = Math.PI / 180

export function createThin(options: ThinOptions): Thin {
  const streams = createCache<Stream>(options.streamsMax)
  const counts = { passed: 0, thinned: 0 }
  return { passes, counters: () => ({ ...streams.counters(), ...counts }) }

  function passes(sample: ThinSample): boolean {
    const key = `${sample.shape} ${sample.device}`
    let stream = streams.get(key)
    if (stream === undefined) {
      stream = { last: null, names: new Uint32Array(fatesMax * 2), fates: 0, next: 0 }
      streams.set(key, stream)
    }
    const fate = judge(stream, sample)
    if (fate) counts.passed += 1
    else counts.thinned += 1
    return fate
  }

  function judge(stream: Stream, sample: ThinSample): boolean {
    const high = Number.parseInt(sample.windowKey.slice(0, 8), 16)
    const low = Number.parseInt(sample.windowKey.slice(8, 16), 16)
    if (sample.resent) {
      const known = placeOf(stream, high, low)
      if (known !== -1) return (stream.fates & (1 << known)) !== 0
    }
    const { last } = stream
    const late = last !== null && sample.time < last.time
    const fate = last === null || late || differs(last, sample)
    if (fate && !late) stream.last = { ...sample, values: options.signal ? sample.values : '' }
    remember(stream, high, low, fate)
    return fate
  }

  function differs(last: ThinSample, now: ThinSample): boolean {
    const { everyMs, distanceM, headingDeg, signal } = options
    if (everyMs !== null && now.time - last.time >= everyMs) return true
    if (last.moving !== now.moving) return true
    if (signal && last.values !== now.values) return true
    if (headingDeg !== null && angleBetween(last.heading, now.heading) >= headingDeg) return true
    return distanceM !== null && metresBetween(last, now) >= distanceM
  }
}

function placeOf({ names }: Stream, high: number, low: number): number {
  for (let place = 0; place < fatesMax; place += 1)
    if (names[place * 2] === high && names[place * 2 + 1] === low) return place
  return -1
}

function remember(stream: Stream, high: number, low: number, fate: boolean): void {
  const place = stream.next
  stream.next = (place + 1) % fatesMax
  stream.names[place * 2] = high
  stream.names[place * 2 + 1] = low
  stream.fates = fate ? stream.fates | (1 << place) : stream.fates & ~(1 << place)
}

/** The smaller of the two angles between two courses; NaN where one is missing. */
function angleBetween(one: number, other: number): number {
  const angle = Math.abs(one - other) % 360
  return angle > 180 ? 360 - angle : angle
}

type Place = { latitude: number; longitude: number }

/** On the great circle (haversine); NaN where a position is missing. */
export function metresBetween(one: Place, other: Place): number {
  const north = Math.sin(((other.latitude - one.latitude) * radians) / 2)
  const east = Math.sin(((other.longitude - one.longitude) * radians) / 2)
  const across = Math.cos(one.latitude * radians) * Math.cos(other.latitude * radians)
  return 2 * metresPerRadian * Math.asin(Math.min(1, Math.sqrt(north * north + across * east * east)))
}
