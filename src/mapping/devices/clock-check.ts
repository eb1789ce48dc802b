// clock-check.ts: what the mapping makes of a device's time and motion, beyond what one message says.

import { createMotion } from '../state/motion.ts'
import { createDeviceClocks, type DeviceClocks } from './device-clocks.ts'
import type { CompiledSource, RecordChecks } from '../mapper/record-mapper.ts'

export type ClockPolicy = { futureMaxMs: number; onFuture: 'quarantine' | 'restamp' | 'accept' }

/** Messages of which the median skew of a device is taken, and devices that are remembered. */
const samples = 15
const devicesMax = 65_536

export type ClockCheck = {
  clocks: DeviceClocks
  checkTime: RecordChecks['checkTime']
  restampedCount(): number
}

export function createClockCheck(
  { clockOffsetMs }: { clockOffsetMs: () => number | null },
  { futureMaxMs, onFuture }: ClockPolicy,
): ClockCheck {
  const clocks = createDeviceClocks({ futureMaxMs, samples, devicesMax })
  let restamped = 0
  return { clocks, checkTime, restampedCount: () => restamped }

  function checkTime(
    ...[entry, time, arrivedAt, context]: Parameters<RecordChecks['checkTime']>
  ): number | null {
    const verdict = clocks.observe(entry.device, time, arrivedAt, clockOffsetMs())
    if (verdict === 'ok' || onFuture === 'accept') return time
    if (onFuture === 'restamp') {
      restamped += 1
      return Number.NaN
    }
    const shown = new Date(time).toISOString()
    return verdict === 'future'
      ? context.quarantine('FUTURE', `The device time ${shown} lies too far ahead of ours.`)
      : context.quarantine('UNSET_CLOCK', `The device time ${shown} is that of a clock that was never set.`)
  }
}

export function recordChecksOf({ motion }: CompiledSource, { checkTime }: ClockCheck): RecordChecks {
  const moves = motion === null ? null : createMotion(motion)
  return { checkTime, isMovingAt: moves === null ? null : moves.movesAt }
}
