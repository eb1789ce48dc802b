// driving-plan.ts: how fast a vehicle drives at which time, and how far it has driven by then. Both follow
// from its name and the time alone, so that the odometer of a simulator that starts again continues where it
// was.
//
// Time is divided into blocks of twelve legs of ten minutes. A block has a leg for each of the speeds below,
// in an order of its own, so every block has the same length and none before it must be summed up. In a leg
// the vehicle accelerates from a stop, drives, and brakes to a stop:
//
//   speed   ____________
//          /            \
//         /              \
//      --                  -----> 600 s

import type { EpochMs } from '../std/clock.ts'
import { seededRandom } from './seeded-random.ts'

export type DrivingPlan = {
  odometerM(at: EpochMs): number
  engineS(at: EpochMs): number
  speedMs(at: EpochMs): number
  /** The number of the leg. */
  leg(at: EpochMs): number
}

/** 2025-01-01. Before it, vehicles stand. */
const epochMs = 1_735_689_600_000
const legS = 600
const speedsKmh = [0, 28, 34, 41, 48, 55, 62, 68, 74, 79, 82, 85]
const accelerationMs2 = 0.7
const brakingMs2 = 1.4
const blockM = speedsKmh.reduce((sum, speed) => sum + legM(speed / 3.6, legS), 0)

export function createDrivingPlan(device: string): DrivingPlan {
  const seed = hashOf(device)
  const random = seededRandom(seed)
  const startM = (20_000 + 380_000 * random()) * 1000
  // A truck's engine runs one hour for about 45 km.
  const startS = (startM / 45_000) * 3600
  let known = { block: -1, speeds: [] as readonly number[] }
  return {
    odometerM(at) {
      const { block, leg, s } = placeOf(at)
      const speeds = speedsIn(block)
      let driven = startM + block * blockM + legM(speeds[leg] ?? 0, s)
      for (let before = 0; before < leg; before += 1) driven += legM(speeds[before] ?? 0, legS)
      return driven
    },
    engineS: (at) => startS + Math.max(0, at - epochMs) / 1000,
    speedMs(at) {
      const { block, leg, s } = placeOf(at)
      return Math.min(speedsIn(block)[leg] ?? 0, s * accelerationMs2, (legS - s) * brakingMs2)
    },
    leg: (at) => Math.floor(Math.max(0, at - epochMs) / 1000 / legS),
  }

  function speedsIn(block: number): readonly number[] {
    if (known.block !== block) known = { block, speeds: shuffled(seed ^ Math.imul(block + 1, 0x9e3779b1)) }
    return known.speeds
  }
}

function placeOf(at: EpochMs): { block: number; leg: number; s: number } {
  const elapsedS = Math.max(0, at - epochMs) / 1000
  const legs = Math.floor(elapsedS / legS)
  return {
    block: Math.floor(legs / speedsKmh.length),
    leg: legs % speedsKmh.length,
    s: elapsedS - legs * legS,
  }
}

/** Metres in the first `s` seconds of a leg with this speed. */
function legM(speedMs: number, s: number): number {
  const fastAtS = speedMs / accelerationMs2
  const slowAtS = legS - speedMs / brakingMs2
  const accelerated = (Math.min(s, fastAtS) ** 2 * accelerationMs2) / 2
  const steady = Math.max(0, Math.min(s, slowAtS) - fastAtS) * speedMs
  const brakedS = Math.max(0, s - slowAtS)
  return accelerated + steady + brakedS * speedMs - (brakedS ** 2 * brakingMs2) / 2
}

/** The speeds of a block in m/s, in an order of their own. */
function shuffled(seed: number): number[] {
  const random = seededRandom(seed)
  return speedsKmh
    .map((speed) => ({ speedMs: speed / 3.6, place: random() }))
    .sort((a, b) => a.place - b.place)
    .map(({ speedMs }) => speedMs)
}

/** FNV-1a. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5
  for (const byte of Buffer.from(text)) hash = Math.imul(hash ^ byte, 0x01000193)
  return hash >>> 0
}
