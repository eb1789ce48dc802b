// clock-check.ts: applies `clocks` of the config: what happens to device times that are too far ahead or
// behind, or that come from a clock that was never set.

import type { EpochMs } from '../../std/clock.ts'
import type { RecordContext } from '../types.ts'
import { createDeviceClocks, type ClockMemory, type DeviceClocks } from './device-clocks.ts'
import { pastDetail } from './past-times.ts'

type OnWrongTime = 'quarantine' | 'restamp' | 'accept'

export type ClockPolicy = {
  futureMaxMs: number
  /** Without it no time is too old. */
  pastMaxMs?: number
  /** Also of a clock that was never set. */
  onFuture: OnWrongTime
  /** As `onFuture` where it is missing. */
  onPast?: OnWrongTime
  /** The decision of a person: an arrival whose true time is unknown counts as right. */
  trustsArrival?: boolean
}

export type ClockCheck = {
  clocks: DeviceClocks
  /** The time to send: NaN for the arrival time; null where the record was quarantined. */
  checkTime(device: string, time: EpochMs, context: RecordContext): EpochMs | null
  /** Whether `checkTime` would give the time itself, as far as the clock is concerned; nothing is noted. */
  isPlausible(time: EpochMs, context: RecordContext): boolean
  restampedCount(): number
}

/** Messages that the median skew of a device is taken of. */
const samples = 15

export function createClockCheck(policy: ClockPolicy, memory?: ClockMemory): ClockCheck {
  const { futureMaxMs, pastMaxMs = Infinity, onFuture, onPast = onFuture, trustsArrival = false } = policy
  const clocks = createDeviceClocks({ futureMaxMs, pastMaxMs, samples }, memory)
  let restamped = 0
  return { clocks, checkTime, isPlausible, restampedCount: () => restamped }

  function offsetOf({ offsetMs }: RecordContext): number | null {
    return offsetMs ?? (trustsArrival ? 0 : null)
  }

  function isPlausible(time: EpochMs, context: RecordContext): boolean {
    return clocks.judge(time, context.arrivedAt, offsetOf(context)) === 'ok'
  }

  function checkTime(device: string, time: EpochMs, context: RecordContext): EpochMs | null {
    const offsetMs = offsetOf(context)
    const verdict = clocks.observe(device, time, context.arrivedAt, offsetMs, context.recordSender)
    const action = verdict === 'past' ? onPast : onFuture
    if (verdict === 'ok' || action === 'accept') return time
    if (action === 'restamp') {
      restamped += 1
      return Number.NaN
    }
    if (verdict === 'past')
      return context.quarantine('PAST', pastDetail(time, context.arrivedAt + (offsetMs ?? 0), context.root))
    const shown = new Date(time).toISOString()
    return verdict === 'future'
      ? context.quarantine('FUTURE', `The device time ${shown} is too far ahead of ours.`)
      : context.quarantine('UNSET_CLOCK', `The device time ${shown} comes from a clock that was never set.`)
  }
}
