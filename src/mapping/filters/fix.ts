// fix.ts: the position of a record by `fix`: whether it is valid, how old it is, and with which time it is
// sent.
//
// A position that only what is remembered makes valid or invalid is named and perhaps not sent
// (remembered-values.ts).

import type { Fix, SourcePlan } from '../compile/source-plan.ts'
import { isUnset } from '../devices/device-clocks.ts'
import type { Reading } from '../read/reading.ts'
import type { ReadFixTime } from '../times/fix-time.ts'
import type { Zone } from '../times/zones.ts'
import { isValidByMemory, mayChangeFix } from './remembered-values.ts'

/** False where the position cannot be used. `zone`: of the device. */
export function readPosition(reading: Reading, source: SourcePlan, zone: Zone | null): boolean {
  if (source.fix === null) return isWritten(reading, source, true)
  const { fix } = source
  const { ownTime, stored, arrivedAt, present } = reading
  // Both are times of the device's own clock, whatever was made of them.
  const messageTime = Number.isNaN(ownTime) ? (stored?.at ?? arrivedAt) : ownTime
  const fixTime = fix.time === null ? Number.NaN : fix.time(reading, messageTime, zone)
  const isOld = fixTime < messageTime - fix.maxAgeMs
  const isValid = fix.valid === null || fix.valid(reading)
  const isValidNow = isValidByMemory(reading, fix, isValid)
  const isNamedValid = isValid || mayChangeFix(reading, source)
  // An old position whose time is unknown cannot be kept under any time.
  const isTimely = !isOld || (fix.keepOld && !isUnset(fixTime))
  const isNamed = isTimely && (isNamedValid || fix.keep)
  reading.fixTime = fixTime
  if (fix.valid !== null) reading.isValid = isValid
  reading.isCurrentFix = isValidNow && !isOld
  // A position that is only named cannot refuse the record.
  if (isNamed && !isWritten(reading, source, isNamedValid) && (isValid || isValidNow || fix.keep))
    return false
  const isThere = (reading.gps ?? '') !== ''
  reading.isGpsWithheld = isThere && !isValidNow && !fix.keep
  if (reading.isGpsWithheld) reading.present = present
  if (isOld && isNamed) {
    if (Number.isNaN(ownTime) && isByAge(reading, fix.ownTime, zone)) reading.oldAgeMs = messageTime - fixTime
    else reading.oldTime = fixTime
    reading.isLastFix = true
  }
  return true
}

function isWritten(reading: Reading, { gps, gpsLastKnown }: SourcePlan, isFixed: boolean): boolean {
  reading.isLastKnown = !isFixed
  reading.gps = (isFixed ? gps : gpsLastKnown)(reading)
  if (reading.gps !== null) return true
  reading.positionFault = reading.rejection
  return false
}

/** An age before the arrival is no time of the device: a resend arrives at another time. */
function isByAge(reading: Reading, readOwnTime: ReadFixTime | null, zone: Zone | null): boolean {
  return readOwnTime === null || Number.isNaN(readOwnTime(reading, Number.NaN, zone))
}

/** An old position has its own time; other values of the message have that of the message. */
export function takeTimeOfOldFix(reading: Reading, oldTimeIs: Fix['oldTime']): void {
  if (!reading.isLastFix) return
  const { signals, fields, oldTime, oldAgeMs } = reading
  const hasMore = signals.length > 0 || (fields ?? '') !== ''
  reading.isLastFix = oldTimeIs === 'fix' || (oldTimeIs === 'fix of a position alone' && !hasMore)
  if (!reading.isLastFix) return
  if (reading.isStoredTime) reading.time -= oldAgeMs
  else reading.agedMs = oldAgeMs
  if (oldTime !== null) reading.time = oldTime
}
