// record-time.ts: the time of a record by `map.time`, as the device says it.

import type { EpochMs } from '../../std/clock.ts'
import type { SourcePlan } from '../compile/source-plan.ts'
import { shown } from '../path/value.ts'
import { withoutResult } from '../path/no-result.ts'
import type { Reading } from '../read/reading.ts'
import type { Place } from '../types.ts'
import { isNoTime, isOfAnyUnit, unitHint } from '../times/time-mistakes.ts'
import { zoneFor } from '../times/times.ts'
import { zoneAdvice, zoneMissing, type Zone } from '../times/zones.ts'

type PlannedTime = NonNullable<SourcePlan['time']>

/** What is wrong with a time, as a sentence. */
export type TimeFault = { reason: 'NO_TIME' | 'NO_ZONE' | 'BAD_TIME'; detail: string }

/** NaN where the arrival time is used instead; null where the record was refused. */
export function timeOfRecord(time: PlannedTime, reading: Reading, ofDevice: Zone | null): EpochMs | null {
  const moment = time.read(reading, zoneFor(time.zone, ofDevice))
  const fault = isOfAnyUnit(moment) ? null : timeFault(time, moment, reading)
  if (fault === null) return moment
  return isArrivalSent(time, fault) ? Number.NaN : reading.refuse(fault.reason, fault.detail)
}

/** In the place of a time that is not there. */
export function isArrivalSent({ orArrival }: PlannedTime, { reason }: TimeFault): boolean {
  return orArrival && reason !== 'BAD_TIME'
}

/** `moment`: what was read; null where nothing is wrong with it. */
export function timeFault({ raw, format }: PlannedTime, moment: EpochMs, place: Place): TimeFault | null {
  if (Number.isNaN(moment)) return { reason: 'NO_TIME', detail: 'The message has no time.' }
  const value = raw(place)
  const found = shown(value)
  const hint = isOfAnyUnit(moment) ? '' : unitHint(value, format)
  if (Number.isFinite(moment) && hint === '') return null
  if (moment === zoneMissing) {
    const detail = `The time ${found} has no zone, and neither has the device: ${zoneAdvice}`
    return { reason: 'NO_ZONE', detail }
  }
  if (hint === '' && isNoTime(value))
    return { reason: 'NO_TIME', detail: `The time ${found} stands for no time.` }
  const wrong = withoutResult('time', value) ?? `The time ${found} is not in the format "${format}".${hint}`
  return { reason: 'BAD_TIME', detail: wrong }
}
