// coalesced-value.ts: reads a record of a source that coalesces as one named value.

import type { EpochMs } from '../../std/clock.ts'
import type { Read } from '../path/path.ts'
import type { CoalesceRules } from './coalesce.ts'
import { storedFormOf, type Value } from './open-record.ts'
import type { UnmappableReason } from '../reasons.ts'
import type { Place, Rejection } from '../types.ts'
import type { ReadTime } from '../times/times.ts'
import { zoneAdvice, zoneMissing, type Zone } from '../times/zones.ts'

/** The `coalesce` of a source, compiled. */
export type CompiledCoalesce = {
  rules: CoalesceRules
  /** The name of the value; '' where there is none. */
  name(place: Place): string
  /** The same where the topic alone names it, so that unused values are ignored before decoding. */
  nameOfTopic: ((captures: readonly string[]) => string) | null
  names: ReadonlySet<string>
  value: Read
  /** Null where values have no time. */
  time: ReadTime | null
}

/** A record as a value, or why it is none. `zone`: of its device. */
export function valueIn(
  { name: nameOf, names, value: read, time: readTime }: CompiledCoalesce,
  place: Place & { readonly arrivedAt: EpochMs },
  zone: Zone | null,
): Value | Exclude<Rejection, { kind: 'quarantined' }> {
  const name = nameOf(place)
  if (name === '') return refused('NO_NAME', 'The name of the value is missing or empty.')
  if (!names.has(name)) return { kind: 'ignored', reason: 'not wanted' }
  const found = read(place)
  if (found === undefined) return { kind: 'ignored', reason: 'no value' }
  const time = readTime === null ? Number.NaN : readTime(place, zone)
  if (time === zoneMissing)
    return refused('NO_ZONE', `The time of the value has no zone, and neither has the device: ${zoneAdvice}`)
  if (time === Number.POSITIVE_INFINITY)
    return refused('BAD_TIME', 'The time of the value is not in the format of the source.')
  const stored = storedFormOf(name, found)
  if (stored === null) return refused('TOO_LARGE', 'The value cannot be stored until its record closes.')
  return { name, ...stored, time, arrivedAt: place.arrivedAt, messages: 0 }
}

function refused(reason: UnmappableReason, detail: string): Extract<Rejection, { kind: 'refused' }> {
  return { kind: 'refused', reason, detail }
}
