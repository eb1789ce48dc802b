// judges.ts: what the mapping makes of a device's time and motion, beyond what one message says.

import { createMotion } from '../state/motion.ts'
import { createClocks, type Clocks } from '../devices/device-clocks.ts'
import type { CompiledSource, Judges } from '../record-mapper.ts'

export type ClockPolicy = { futureMaxMs: number; onFuture: 'quarantine' | 'restamp' | 'accept' }

/** Messages of which the median skew of a device is taken, and devices that are remembered. */
const samples = 15
const devicesMax = 65_536

export type JudgeClocks = { clocks: Clocks; timeOf: Judges['timeOf']; restamped(): number }

export function createClockJudge(
  { clockOffsetMs }: { clockOffsetMs: () => number | null },
  { futureMaxMs, onFuture }: ClockPolicy,
): JudgeClocks {
  const clocks = createClocks({ futureMaxMs, samples, devicesMax })
  let restamped = 0
  return { clocks, timeOf, restamped: () => restamped }

  function timeOf(...[entry, time, arrivedAt, attempt]: Parameters<Judges['timeOf']>): number | null {
    const verdict = clocks.observe(entry.device, time, arrivedAt, clockOffsetMs())
    if (verdict === 'ok' || onFuture === 'accept') return time
    if (onFuture === 'restamp') {
      restamped += 1
      return Number.NaN
    }
    const shown = new Date(time).toISOString()
    return verdict === 'future'
      ? attempt.quarantine('FUTURE', `The device time ${shown} lies too far ahead of ours.`)
      : attempt.quarantine('UNSET_CLOCK', `The device time ${shown} is that of a clock that was never set.`)
  }
}

export function judgesOf({ motion }: CompiledSource, { timeOf }: JudgeClocks): Judges {
  const moves = motion === null ? null : createMotion(motion)
  return { timeOf, movesAt: moves === null ? null : moves.movesAt }
}
