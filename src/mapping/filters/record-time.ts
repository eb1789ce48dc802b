// record-time.ts: the time of a record by `map.time`, as the device says it.

import type { EpochMs } from '../../std/clock.ts'
import type { SourcePlan } from '../compile/source-plan.ts'
import { shown } from '../fields/gps.ts'
import { withoutResult } from '../path/no-result.ts'
import type { Reading } from '../read/reading.ts'
import { isNoTime, isOfAnyUnit, unitHint } from '../times/time-mistakes.ts'
import { zoneFor } from '../times/times.ts'
import { noZone, zoneAdvice, type Zone } from '../times/zones.ts'

/** NaN where the arrival time is used instead; null where the record was refused. */
export function timeOfRecord(
  { read, raw, orArrival, format, zone }: NonNullable<SourcePlan['time']>,
  reading: Reading,
  ofDevice: Zone | null,
): EpochMs | null {
  const { record, root, up, captures } = reading
  noZone.asked = false
  const moment = read(record, root, up, zoneFor(zone, ofDevice), captures)
  if (isOfAnyUnit(moment)) return moment
  if (Number.isNaN(moment)) return orArrival ? moment : reading.refuse('NO_TIME', 'The message has no time.')
  const value = raw(record, root, up, captures)
  const found = shown(value)
  const hint = unitHint(value, format)
  if (moment < Number.POSITIVE_INFINITY && hint === '') return moment
  if (noZone.asked) {
    if (orArrival) return Number.NaN
    return reading.refuse(
      'NO_ZONE',
      `The time ${found} has no zone, and neither has the device: ${zoneAdvice}`,
    )
  }
  if (hint === '' && isNoTime(value))
    return orArrival ? Number.NaN : reading.refuse('NO_TIME', `The time ${found} stands for no time.`)
  const wrong = withoutResult('time', value) ?? `The time ${found} is not in the format "${format}".${hint}`
  return reading.refuse('BAD_TIME', wrong)
}
