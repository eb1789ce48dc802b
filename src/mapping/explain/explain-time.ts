// explain-time.ts: explains the time of a record: its path, its format, its zone, and the rule for a local
// time that a change of the clock skips or repeats.

import type { SourcePlan } from '../compile/source-plan.ts'
import type { SourceConfig } from '../config.ts'
import { withinLimit } from '../expression/expression.ts'
import { isArrivalSent, timeFault } from '../filters/record-time.ts'
import { zoneFor, type ZoneRule } from '../times/times.ts'
import type { ClockChange, Zone } from '../times/zones.ts'
import type { ExplainedField } from './explain-effects.ts'
import { compileFinder, type PlacedRecord } from './path-finder.ts'

/** `ofDevice`: the zone of the device. */
export type ExplainTime = (place: PlacedRecord, ofDevice: Zone | null) => ExplainedField

export function explainTime(
  { map: { time: field } }: SourceConfig,
  time: SourcePlan['time'],
  captureNames: readonly string[],
): ExplainTime {
  const { path: own, expr, absent, when } = field ?? {}
  const paths = own ?? (time && expr === undefined ? '$time' : undefined)
  const finder = compileFinder({ path: paths, expr, absent, when }, captureNames)
  const date = field?.date && compileFinder({ ...field.date, absent: field.absent }, captureNames)
  return (place, ofDevice) => {
    const { record, root, up, captures } = place
    const { path, raw } = finder.find(place)
    const dated = date?.find(place)
    const base = {
      option: 'time',
      field: 'signalTimestamp',
      paths: [...(date?.paths ?? []), ...finder.paths],
      path: dated?.path && path !== null ? `${dated.path} and ${path}` : path,
      unit: time === null ? 'arrival' : formatText(time.format, time.zone, ofDevice),
      sentUnit: 'ms',
    }
    if (time === null) return { ...base, note: 'the source has no time: the arrival time is sent' }
    const written = dated === undefined ? raw : withinLimit(() => time.raw(record, root, up, captures))
    const found = { ...base, ...(written !== undefined && { raw: written }) }
    const observed = observe(zoneFor(time.zone, ofDevice))
    const read = () => time.read(record, root, up, observed.zone, captures)
    const moment = withinLimit(read) ?? Number.NaN
    const fault = timeFault(time, moment, place)
    if (fault === null) return { ...found, value: moment, note: ruleText(observed.change()) }
    const { reason, detail } = fault
    const isSent = isArrivalSent(time, fault)
    return { ...found, note: isSent ? `${detail} The arrival time is sent.` : `${reason}: ${detail}` }
  }
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
