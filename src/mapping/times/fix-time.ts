// fix-time.ts: when a position was taken: the option `fix.time`. A device says it as a time, or as an age,
// which is counted back from the time of the message.
//
// A value that cannot be read, and an age below zero, say nothing: the position is then of the time of its
// message.

import type { EpochMs } from '../../std/clock.ts'
import { Malformed } from '../path/text-cursor.ts'
import { numberFrom } from '../path/value.ts'
import type { Read } from '../path/path.ts'
import type { Place } from '../types.ts'
import { noteOf, type Notable } from '../fields/field-notes.ts'
import { compileReading, type ReadOptions } from '../fields/fields.ts'
import { compileDated, compileTime, compileZone, zoneFor, type TimeFormat } from './times.ts'
import type { Zone } from './zones.ts'

/** NaN where the message does not say it. */
export type ReadFixTime = (place: Place, messageTime: EpochMs, ofDevice: Zone | null) => EpochMs

const ageUnits = { ms: 1, s: 1000, min: 60_000, h: 3_600_000 } as const

type AgeUnit = keyof typeof ageUnits

export const ageUnitNames = Object.keys(ageUnits) as [AgeUnit, ...AgeUnit[]]

type Absent = readonly (number | string)[] | undefined
type Paths = string | readonly string[]

export type FixTimeConfig =
  | {
      path: Paths
      date?: { path: Paths } | undefined
      format: TimeFormat | readonly TimeFormat[]
      zone?: string | undefined
      absent?: Absent
    }
  | { age: Paths; unit: AgeUnit; absent?: Absent }

/** Of several the earliest: none of them makes a position fresher than it is. Throws Malformed. */
export function compileFixTime(configs: readonly FixTimeConfig[]): ReadFixTime {
  const reads = configs.map(compileOne)
  const [only] = reads
  if (only && reads.length === 1) return only
  return (place, messageTime, ofDevice) => {
    let earliest = Number.NaN
    for (const read of reads) {
      const time = read(place, messageTime, ofDevice)
      if (!(time >= earliest)) earliest = Number.isNaN(time) ? earliest : time
    }
    return earliest
  }
}

function compileOne(config: FixTimeConfig): ReadFixTime {
  const { absent } = config
  if ('age' in config) {
    const read = compileReading({ path: config.age, absent })
    const unitMs = ageUnits[config.unit]
    return (place, messageTime) => {
      const age = numberFrom(read(place))
      return age >= 0 && age < Number.POSITIVE_INFINITY ? messageTime - Math.round(age * unitMs) : Number.NaN
    }
  }
  const { format } = config
  if (format.includes('arrival'))
    throw new Malformed('has a time with the format arrival, which reads nothing')
  const rule = compileZone(format, config.zone)
  const read = compileTime(format, compileTimeReading(config))
  return (place, _messageTime, ofDevice) => {
    const time = read(place, zoneFor(rule, ofDevice))
    return Number.isFinite(time) ? time : Number.NaN
  }
}

type TimeReading = Pick<ReadOptions, 'path' | 'expr' | 'absent'> &
  Notable & {
    date?: { path: Paths } | undefined
    format: TimeFormat | readonly TimeFormat[]
  }

/**
 * The value of a time: one, or a date and a time of day. `captures`: names of those of the topic. Throws
 * Malformed.
 */
export function compileTimeReading(
  { path, expr, date, format, absent, ...more }: TimeReading,
  captures: readonly string[] = [],
): Read {
  const clock = compileReading({ path, expr, absent, ...noteOf(more) }, captures)
  return date === undefined ? clock : compileDated(format, compileReading({ ...date, absent }), clock)
}
