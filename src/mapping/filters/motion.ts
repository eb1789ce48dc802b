// motion.ts: derives motion from the speed, with hysteresis, so that a truck in a traffic jam does not start
// and stop with every message.
//
//   standing --- speed > above ---> moving
//   moving   --- speed <= below --> standing
//
// Between the two thresholds the state of a device does not change; that of an unknown device is "standing".
// Only a message that is not older than the last one changes the state, so that a late or repeated one has no
// effect.
//
// In memory only, and bounded: after a restart, or for a device that was evicted, the state between the
// thresholds is "standing" again. The derived motion is never part of a payloadId.

import type { EpochMs } from '../../std/clock.ts'
import { createCache } from '../bounded-cache.ts'

export type MotionOptions = {
  /** Both in the unit that is sent. */
  above: number
  below: number
}

export type Motion = ReturnType<typeof createMotion>

/** Devices in memory. Beyond it, the least recently used ones are evicted and counted. */
const devicesMax = 65_536

type State = { moving: boolean; time: EpochMs }

export function createMotion({ above, below }: MotionOptions) {
  const states = createCache<State>(devicesMax)
  return { movesAt, counters: () => states.counters() }

  /** Whether the device moves; undefined for a NaN `speed`. `time` orders the messages of the device. */
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
