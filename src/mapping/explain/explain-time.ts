// explain-time.ts: explains the time of a record: its path, its format, its zone, and the rule for a local
// time that a change of the clock skips or repeats.

import type { SourcePlan } from '../compile/source-plan.ts'
import type { SourceConfig } from '../config.ts'
import { withinLimit } from '../expression/expression.ts'
import { isArrivalSent, timeFault } from '../filters/record-time.ts'
import { zoneFor, type ZoneRule } from '../times/times.ts'
import type { ClockChange, Zone } from '../times/zones.ts'
import type { ExplainedField, RecordToExplain } from './explain-effects.ts'

/** What is read of the time is read once more, to see by which rule of its zone. */
export function explainTime(
  { map: { time: field } }: SourceConfig,
  { time, notes }: SourcePlan,
  { reading, zone: ofDevice }: RecordToExplain,
): ExplainedField {
  const base = { option: 'time', field: 'signalTimestamp', sentUnit: 'ms' }
  if (time === null)
    return {
      ...base,
      path: null,
      paths: [],
      unit: 'arrival',
      note: 'the source has no time: the arrival time is sent',
    }
  const observed = observe(zoneFor(time.zone, ofDevice))
  const read = () => time.read(reading, observed.zone)
  const moment = withinLimit(read) ?? Number.NaN
  const written = withinLimit(() => time.raw(reading))
  const [date, clock] = ['time.date', 'time'].map((option) => notes?.fields.get(option))
  const own = field === undefined ? '$time' : (clock?.found?.path ?? null)
  const raw = clock?.found === undefined || date !== undefined ? written : clock.found.raw
  const place = {
    ...base,
    path: date?.found?.path && own !== null ? `${date.found.path} and ${own}` : own,
    paths: field === undefined ? ['$time'] : [...(date?.paths ?? []), ...(clock?.paths ?? [])],
    unit: formatText(time.format, time.zone, ofDevice),
    ...(raw !== undefined && { raw }),
  }
  const fault = timeFault(time, moment, reading)
  if (fault === null) return { ...place, value: moment, note: ruleText(observed.change()) }
  const { reason, detail } = fault
  const isSent = isArrivalSent(time, fault)
  return { ...place, note: isSent ? `${detail} The arrival time is sent.` : `${reason}: ${detail}` }
}

function formatText(format: string, rule: ZoneRule, ofDevice: Zone | null): string {
  if (rule === null) return format
  if (rule !== 'device') return `${format} in ${rule.name}`
  return ofDevice === null ? `${format}, no zone` : `${format} in ${ofDevice.name}, zone of the device`
}

/** The same zone, which notes the last local time that was read in it. */
function observe(zone: Zone | null) {
  let local = Number.NaN
  const change = (): ClockChange | null =>
    zone === null || Number.isNaN(local) ? null : zone.changeAt(local)
  const observed = zone && {
    ...zone,
    momentAt(time: number) {
      local = time
      return zone.momentAt(time)
    },
  }
  return { zone: observed, change }
}

const rules = {
  repeated: 'the clock goes back and repeats this time: the first of the two moments',
  skipped: 'the clock goes forward and skips this time: moved forward by what is skipped',
} as const satisfies Record<ClockChange, string>

function ruleText(change: ClockChange | null): string | null {
  return change === null ? null : rules[change]
}
