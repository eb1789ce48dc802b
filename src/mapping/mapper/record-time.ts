// record-time.ts: the time of the record at hand, by `map.time`.

import type { EpochMs } from '../../std/clock.ts'
import { shown } from '../fields/gps.ts'
import { zoneFor } from '../times/times.ts'
import { utc, type Zone } from '../times/zones.ts'
import type { RecordContext } from '../types.ts'
import type { CompiledSource } from './compiled-source.ts'

/** NaN where the arrival time is used instead; null where the record was refused. */
export function timeOfRecord(
  { read, raw, orArrival, format, zone }: NonNullable<CompiledSource['time']>,
  context: RecordContext,
  ofDevice: Zone | null,
): EpochMs | null {
  const { record, root, up, captures } = context
  const moment = read(record, root, up, zoneFor(zone, ofDevice), captures)
  if (moment < Number.POSITIVE_INFINITY) return moment
  if (Number.isNaN(moment)) return orArrival ? moment : context.refuse('NO_TIME', 'The message has no time.')
  const found = shown(raw(record, root, up, captures))
  const isZoneMissing = zone === 'device' && ofDevice === null
  if (isZoneMissing && read(record, root, up, utc, captures) < Number.POSITIVE_INFINITY) {
    if (orArrival) return Number.NaN
    return context.refuse(
      'NO_ZONE',
      `The time ${found} has no zone, and neither has the device: fill the column "zone" of the device ` +
        'table, or set `defaults.zone`.',
    )
  }
  return context.refuse('BAD_TIME', `The time ${found} is not in the format "${format}".`)
}
