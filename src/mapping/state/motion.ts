// motion.ts: does it move, from the speed alone? With hysteresis, so that a truck in a traffic jam does not
// start and stop with every message.
//
//   standing --- speed > above ---> moving
//   moving   --- speed <= below --> standing
//
// In between a device goes on doing what it did; one that is not known yet stands. Only messages that are not
// older than what was judged last change the state, so that a late or repeated one disturbs nothing.
//
// Kept in memory only and bounded: a device that was forgotten, or a restart, begins with "standing" between
// the two thresholds. What is derived here never enters a payload's name.

import type { EpochMs } from '../../std/clock.ts'
import { createCache, type CacheCounters } from '../bounded-cache.ts'

export type MotionOptions = {
  /** Both in the unit that is sent. */
  above: number
  below: number
  /** Devices that are remembered; beyond, those longest unused are forgotten, counted as evictions. */
  devicesMax: number
}

export type Motion = {
  /** Whether the device moves. `time` orders its messages; NaN `speed` tells nothing. */
  movesAt(device: string, speed: number, time: EpochMs): boolean | undefined
  counters(): CacheCounters
}

type State = { moving: boolean; time: EpochMs }

export function createMotion({ above, below, devicesMax }: MotionOptions): Motion {
  const states = createCache<State>(devicesMax)
  return { movesAt, counters: () => states.counters() }

  function movesAt(device: string, speed: number, time: EpochMs): boolean | undefined {
    if (Number.isNaN(speed)) return undefined
    const state = states.get(device)
    const moving = speed > above || (speed > below && state !== undefined && state.moving)
    if (state === undefined) {
      states.set(device, { moving, time })
    } else if (time >= state.time) {
      state.moving = moving
      state.time = time
    }
    return moving
  }
}
