// record-time.ts: the times of the record at hand: its own, by `map.time`, and when its position was taken.

import type { EpochMs } from '../../std/clock.ts'
import { shown } from '../fields/gps.ts'
import { withoutResult } from '../path/no-result.ts'
import { isNoTime, isOfAnyUnit, unitHint } from '../times/time-mistakes.ts'
import { zoneFor } from '../times/times.ts'
import { noZone, zoneAdvice, type Zone } from '../times/zones.ts'
import type { RecordContext } from '../types.ts'
import type { CompiledSource, Fix } from './compiled-source.ts'

/** NaN where the arrival time is used instead; null where the record was refused. */
export function timeOfRecord(
  { read, raw, orArrival, format, zone }: NonNullable<CompiledSource['time']>,
  context: RecordContext,
  ofDevice: Zone | null,
): EpochMs | null {
  const { record, root, up, captures } = context
  noZone.asked = false
  const moment = read(record, root, up, zoneFor(zone, ofDevice), captures)
  if (isOfAnyUnit(moment)) return moment
  if (Number.isNaN(moment)) return orArrival ? moment : context.refuse('NO_TIME', 'The message has no time.')
  const value = raw(record, root, up, captures)
  const found = shown(value)
  const hint = unitHint(value, format)
  if (moment < Number.POSITIVE_INFINITY && hint === '') return moment
  if (noZone.asked) {
    if (orArrival) return Number.NaN
    return context.refuse(
      'NO_ZONE',
      `The time ${found} has no zone, and neither has the device: ${zoneAdvice}`,
    )
  }
  if (hint === '' && isNoTime(value))
    return orArrival ? Number.NaN : context.refuse('NO_TIME', `The time ${found} stands for no time.`)
  const wrong = withoutResult('time', value) ?? `The time ${found} is not in the format "${format}".${hint}`
  return context.refuse('BAD_TIME', wrong)
}

/** `fixTime` is NaN where the message does not say it. */
export function timesOf(
  { time: readFixTime }: Fix,
  ownTime: EpochMs,
  { record, root, up, arrivedAt, stored }: RecordContext,
  ofDevice: Zone | null,
): { messageTime: EpochMs; fixTime: EpochMs } {
  const messageTime = Number.isNaN(ownTime) ? (stored?.at ?? arrivedAt) : ownTime
  const fixTime = readFixTime ? readFixTime(record, root, up, messageTime, ofDevice) : Number.NaN
  return { messageTime, fixTime }
}

/** An age before the arrival is no time of the device: a resend arrives at another time. */
export function isByAge(
  { ownTime: readOwnTime }: Fix,
  { record, root, up }: RecordContext,
  ofDevice: Zone | null,
): boolean {
  return readOwnTime === null || Number.isNaN(readOwnTime(record, root, up, Number.NaN, ofDevice))
}
