// vehicle.ts: one truck on a plausible track: it starts at the depot, drives in towns, on roads and stands,
// accelerates and brakes as a truck does, and turns back when it is far away. Speed, odometer and engine
// hours follow from its name and the time (driving-plan.ts); where it drives is random.
//
// Positions move along great circles on a sphere; over the seconds between two readings the error against the
// ellipsoid is far below that of a GPS receiver.

import type { EpochMs } from '../std/clock.ts'
import { createDrivingPlan } from './driving-plan.ts'

export type Place = { latitude: number; longitude: number }

export type Reading = {
  device: string
  /** Number of the reading, from 1. */
  sequence: number
  /** Strictly ascending per vehicle, so that no two readings are equal. */
  at: EpochMs
  latitude: number
  longitude: number
  altitudeM: number
  speedKmh: number
  headingDeg: number
  moving: boolean
  satellites: number
  odometerKm: number
  engineHours: number
  fuelPercent: number
  supplyVolts: number
}

export type Vehicle = {
  /** Drives until `at` and returns the reading. */
  drive(at: EpochMs): Reading
}

/** Kassel: far from every coast, so that all directions stay on land for a while. */
export const depot: Place = { latitude: 51.3127, longitude: 9.4797 }

const earthRadiusM = 6_371_008.8
/** Beyond this distance a vehicle returns. */
const outermostM = 120_000
/** From this speed on a vehicle makes no tight turns. */
const straightFromMs = 15
const toRadians = Math.PI / 180

type Turn = { leg: number; degPerS: number; leftS: number }

type State = {
  place: Place
  headingDeg: number
  speedMs: number
  turn: Turn
  odometerM: number
  engineS: number
  fuelPercent: number
  altitudeM: number
}

export function createVehicle(random: () => number, options: { device: string; startAt: EpochMs }): Vehicle {
  const between = (low: number, high: number) => low + (high - low) * random()
  const plan = createDrivingPlan(options.device)
  let state: State = {
    // A random place in the yard.
    place: destination(depot, between(0, 360), between(0, 300)),
    headingDeg: between(0, 360),
    speedMs: plan.speedMs(options.startAt),
    turn: { leg: -1, degPerS: 0, leftS: 0 },
    odometerM: plan.odometerM(options.startAt),
    engineS: plan.engineS(options.startAt),
    fuelPercent: between(35, 98),
    altitudeM: between(150, 260),
  }
  let at = options.startAt
  let sequence = 0

  function nextTurn(leg: number): Turn {
    const most = state.speedMs < straightFromMs ? 1.5 : 0.15
    return { leg, degPerS: between(-most, most), leftS: between(30, 180) }
  }

  /** Drives from where it is to where it is at `to`. */
  function step(to: EpochMs, seconds: number): void {
    const leg = plan.leg(to)
    const turn = state.turn.leftS > 0 && state.turn.leg === leg ? state.turn : nextTurn(leg)
    const odometerM = plan.odometerM(to)
    const distanceM = Math.max(0, odometerM - state.odometerM)
    const farOut = distanceBetween(depot, state.place) > outermostM
    const headingDeg = farOut
      ? bearing(state.place, depot)
      : turned(state.headingDeg, distanceM > 0 ? turn.degPerS * seconds : 0)
    const used = state.fuelPercent - distanceM / 9000
    state = {
      place: distanceM > 0 ? destination(state.place, headingDeg, distanceM) : state.place,
      headingDeg,
      speedMs: plan.speedMs(to),
      turn: { ...turn, leftS: turn.leftS - seconds },
      odometerM,
      engineS: plan.engineS(to),
      fuelPercent: used > 8 ? used : 98,
      altitudeM: Math.min(600, Math.max(80, state.altitudeM + between(-0.01, 0.01) * distanceM)),
    }
  }

  return {
    drive(until) {
      // A clock that was set back must not move the track back in time.
      const now = Math.max(until, at + 1)
      const seconds = sequence === 0 ? 0 : (now - at) / 1000
      // Steps of one second; fewer and longer ones after a long pause, so that catching up is cheap.
      const steps = Math.min(60, Math.ceil(seconds))
      for (let done = 1; done <= steps; done += 1)
        step(done === steps ? now : at + (seconds * 1000 * done) / steps, seconds / steps)
      at = now
      sequence += 1
      return readInstruments(state, { device: options.device, sequence, at, random })
    },
  }
}

function readInstruments(
  state: State,
  { device, sequence, at, random }: { device: string; sequence: number; at: EpochMs; random: () => number },
): Reading {
  return {
    device,
    sequence,
    at,
    latitude: round(state.place.latitude, 6),
    longitude: round(state.place.longitude, 6),
    altitudeM: round(state.altitudeM, 1),
    speedKmh: round(state.speedMs * 3.6, 1),
    headingDeg: round(state.headingDeg, 1) % 360,
    moving: state.speedMs > 0,
    satellites: 8 + Math.floor(random() * 9),
    odometerKm: round(state.odometerM / 1000, 3),
    engineHours: round(state.engineS / 3600, 3),
    fuelPercent: round(state.fuelPercent, 1),
    supplyVolts: round(27.4 + random(), 2),
  }
}

/** The place at `distanceM` from `from` along the great circle that starts at `bearingDeg`. */
function destination(from: Place, bearingDeg: number, distanceM: number): Place {
  const angle = distanceM / earthRadiusM
  const direction = bearingDeg * toRadians
  const latitude = from.latitude * toRadians
  const sine =
    Math.sin(latitude) * Math.cos(angle) + Math.cos(latitude) * Math.sin(angle) * Math.cos(direction)
  const longitude =
    from.longitude * toRadians +
    Math.atan2(
      Math.sin(direction) * Math.sin(angle) * Math.cos(latitude),
      Math.cos(angle) - Math.sin(latitude) * sine,
    )
  return { latitude: Math.asin(sine) / toRadians, longitude: turned(longitude / toRadians, 180) - 180 }
}

/** Metres between two places along the great circle (haversine). */
export function distanceBetween(a: Place, b: Place): number {
  const half = (degrees: number) => Math.sin((degrees * toRadians) / 2) ** 2
  const chord =
    half(b.latitude - a.latitude) +
    Math.cos(a.latitude * toRadians) * Math.cos(b.latitude * toRadians) * half(b.longitude - a.longitude)
  return 2 * earthRadiusM * Math.asin(Math.min(1, Math.sqrt(chord)))
}

/** Initial bearing, in degrees from north, of the great circle from `from` to `to`. */
function bearing(from: Place, to: Place): number {
  const [fromLatitude, toLatitude] = [from.latitude * toRadians, to.latitude * toRadians]
  const across = (to.longitude - from.longitude) * toRadians
  const y = Math.sin(across) * Math.cos(toLatitude)
  const x =
    Math.cos(fromLatitude) * Math.sin(toLatitude) -
    Math.sin(fromLatitude) * Math.cos(toLatitude) * Math.cos(across)
  return turned(Math.atan2(y, x) / toRadians, 0)
}

/** `headingDeg` turned by `byDeg`, from 0 up to but not including 360. */
function turned(headingDeg: number, byDeg: number): number {
  return (((headingDeg + byDeg) % 360) + 360) % 360
}

function round(value: number, digits: number): number {
  const scale = 10 ** digits
  return Math.round(value * scale) / scale
}
