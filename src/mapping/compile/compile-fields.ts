// compile-fields.ts: the `map` of a source as closures: time, position, extra fields. Signals:
// compile-signals.ts.

import { parseDuration } from '../../std/quantity.ts'
import type { MapConfig, SourceConfig } from '../config.ts'
import { compileGps, type GpsFields } from '../fields/gps.ts'
import { compileMembers, type MemberField, type WriteMembers } from '../fields/member-fields.ts'
import { position, type FieldBits } from '../lost-fields/watched-fields.ts'
import type { Fix, SourcePlan } from './source-plan.ts'
import { compileCondition } from '../expression/expression.ts'
import type { Read } from '../path/path.ts'
import { Malformed } from '../path/text-cursor.ts'
import type { MotionOptions } from '../filters/motion.ts'
import { compileFixTime, compileTimeReading } from '../times/fix-time.ts'
import { compileTime, compileZone, isLocalFormat, type ReadTime } from '../times/times.ts'
import type { Scope } from './compile-scope.ts'
import { coordinateOf, memberOf, membersOfGps, where, type MemberRow } from './compile-values.ts'
import { readsPrevious } from '../path/paths-used.ts'

type Fields = Pick<
  SourcePlan,
  'time' | 'timeBit' | 'fix' | 'gps' | 'gpsLastKnown' | 'extraFields' | 'motion'
> & {
  laterFields: WriteMembers | null
}

/** Undefined where a problem was reported. */
export function compileFields(config: SourceConfig, scope: Scope, bits: FieldBits): Fields | undefined {
  const { map } = config
  const inMap = scope.at('map')
  if (!map.latitude && !map.longitude && map.signals.length === 0)
    inMap.report([], 'must have latitude and longitude, or signals. Otherwise there is nothing to send.')
  const motion = inMap.compile(['in_motion'], () => motionOf(map))
  const rows = membersOfGps(map).filter(({ name }) => name !== 'in_motion' || motion !== undefined)
  const position = compilePosition(config, rows, inMap, bits)
  const extraFields = extraFieldsOf(config, inMap, bits)
  const time = inMap.compile(['time'], () => timeOf(config, scope.captures))
  const fix = config.fix === undefined ? null : scope.compile(['fix'], () => fixOf(config, scope.captures))
  if (!position || time === undefined || fix === undefined || motion === undefined) return undefined
  const { members, ...gps } = position
  const withMembers = (own: readonly MemberField[]) =>
    compileGps({ ...gps, members: compileMembers([...own, ...extraFields.inGps]) })
  const timeBit =
    time?.orArrival === true && map.time ? bits.of({ name: 'time', role: 'beside', config: map.time }) : 0
  return {
    time,
    timeBit,
    fix,
    gps: withMembers(members),
    gpsLastKnown: withMembers(members.filter(({ name }) => name !== 'heading')),
    extraFields: extraFields.onTop,
    laterFields: extraFields.later,
    motion,
  }
}

function compilePosition(
  config: SourceConfig,
  rows: readonly MemberRow[],
  { captures, compile, report }: Scope,
  bits: FieldBits,
): (Omit<GpsFields, 'members'> & { members: readonly MemberField[] }) | undefined {
  const { latitude: north, longitude: east } = config.map
  if (north && !east) report(['latitude'], 'needs longitude too.')
  if (east && !north) report(['longitude'], 'needs latitude too.')
  if (!north)
    for (const key of ['speed', 'heading', 'in_motion'] as const)
      if (config.map[key]) report([key], 'needs latitude and longitude: it is sent with a position only.')
  const bit = north === undefined ? 0 : bits.of({ name: position, role: 'alone', config: [north, east] })
  const latitude = compile(['latitude'], () => coordinateOf(north, captures, 'latitude'))
  const longitude = compile(['longitude'], () => coordinateOf(east, captures, 'longitude'))
  const members = rows.map((row) => {
    const { name, field } = row
    const member = compile([name], () => memberOf(config, row, captures))
    return member && { ...member, bit: bits.of({ name, role: 'part', config: field }) }
  })
  const sound = members.filter((member) => member !== undefined)
  return latitude && longitude && sound.length === members.length
    ? { latitude, longitude, bit, members: sound }
    : undefined
}

function motionOf({ in_motion: field, speed }: MapConfig): MotionOptions | null {
  if (!field) return null
  const { from, value, above, below = above } = field
  if (from === undefined && (above !== undefined || below !== undefined))
    throw new Malformed('has "above" or "below" without "from: speed"')
  if (from === undefined) return null
  if (value !== undefined)
    throw new Malformed(
      'is derived from the speed where its path has no value, so it cannot have another value',
    )
  if (!speed) throw new Malformed('is derived from the speed, so `map` needs speed too')
  if (above === undefined || below === undefined)
    throw new Malformed('needs "above", the speed above which the asset moves')
  if (below > above) throw new Malformed('must have "below" less than or equal to "above"')
  return { above, below }
}

/** `shift`: a duration with a sign. */
function shifted(read: ReadTime, shift: string | undefined): ReadTime {
  if (shift === undefined) return read
  const sizeMs = parseDuration(shift.replace('-', '')) ?? 0
  const byMs = shift.startsWith('-') ? -sizeMs : sizeMs
  return (place, zone) => read(place, zone) + byMs
}

function timeOf(
  { map: { time: field }, coalesce }: SourceConfig,
  captures: readonly string[],
): SourcePlan['time'] {
  if (!field) {
    if (coalesce === undefined) return null
    // The newest of the own times of the collected values (state/open-record.ts).
    const raw: Read = ({ record }) => (record as Record<string, unknown>)['$time']
    return { read: compileTime('ms', raw), raw, orArrival: true, format: 'ms', zone: null }
  }
  const { path, expr, format, zone, missing, date, shift } = field
  const formats = typeof format === 'string' ? [format] : format
  if (zone !== undefined && !formats.some(isLocalFormat))
    throw new Malformed(`has a zone, which the format ${formats.join(', ')} does not read`)
  if (formats.length > 1 && formats.includes('arrival'))
    throw new Malformed('has arrival beside other formats; use `missing: arrival` instead')
  if (format === 'arrival') {
    if (path !== undefined || expr !== undefined || date !== undefined || shift !== undefined)
      throw new Malformed('has a path, an expression or a shift, which the format arrival does not read')
    return null
  }
  if (path === undefined && expr === undefined) throw new Malformed('needs a path or an expression')
  const raw = where(field, compileTimeReading(field, captures), captures)
  return {
    read: shifted(compileTime(format, raw), shift),
    raw,
    orArrival: missing === 'arrival',
    format: formats.join(', '),
    zone: compileZone(format, zone),
  }
}

function fixOf({ fix, no_fix: noFix }: SourceConfig, captures: readonly string[]): Fix | null {
  if (!fix) return null
  const times = [fix.time ?? []].flat()
  const own = times.filter((one) => 'path' in one)
  return {
    valid: fix.valid === undefined ? null : compileCondition(fix.valid, captures),
    time: times.length === 0 ? null : compileFixTime(times),
    ownTime: own.length === 0 ? null : compileFixTime(own),
    maxAgeMs: fix.max_age,
    keep: noFix === 'keep',
    keepOld: fix.old === undefined ? noFix === 'keep' : fix.old === 'keep',
    oldTime: fix.old_time === 'message' || fix.old === 'keep' ? fix.old_time : 'fix of a position alone',
  }
}

// `map.fields` as closures: those in `gps`, and those on the top level
// of the payload.

type ExtraFields = {
  inGps: readonly MemberField[]
  onTop: WriteMembers | null
  /** Those that read previous values. */
  later: WriteMembers | null
}

/** Keys of the interface itself; an extra field of that name would write the key twice. */
const taken = {
  payload: ['payloadId', 'carrier', 'signalTimestamp', 'assetIdentifier', 'deviceIdentifier', 'signals'],
  gps: ['latitude', 'longitude', 'speed', 'speedUnits', 'heading', 'inMotion'],
}

function extraFieldsOf(
  config: SourceConfig,
  { captures, compile, report }: Scope,
  bits: FieldBits,
): ExtraFields {
  const { map } = config
  const inGps: MemberField[] = []
  const onTop: MemberField[] = []
  const later: MemberField[] = []
  let sound = true
  for (const [key, field] of Object.entries(map.fields)) {
    const at = ['fields', key]
    const keys = key.split('.')
    const inside = keys[0] === 'gps'
    const own = inside ? keys.slice(1) : keys
    const [first] = own
    const reserved = inside ? taken.gps : taken.payload
    const isTaken = first === undefined || reserved.includes(first)
    if (isTaken) report(at, 'is reserved: `map` has an option for it, or the gateway sets it.')
    const longer = Object.keys(map.fields).find((other) => other.startsWith(`${key}.`))
    if (longer !== undefined) report(at, `cannot be a value: ${longer} makes it an object.`)
    sound &&= !isTaken && longer === undefined
    if (inside && !map.latitude) report(at, 'needs latitude and longitude: it is sent with a position only.')
    const compiled = compile(at, () => extraFieldOf(config, key, own, captures))
    if (!compiled) continue
    const isLater = !inside && readsPrevious(field)
    const others = isLater ? onTop : later
    if (!inside && others.some((other) => other.keys[0] === first)) {
      report(
        at,
        `is in the object ${first ?? ''} with fields of which some read previous values. Only all or none of an object ` +
          'can: those that read it have no part in the payloadId.',
      )
      sound = false
    }
    const bit = bits.of({ name: key, role: 'part', config: field })
    ;(inside ? inGps : isLater ? later : onTop).push({ ...compiled, bit })
  }
  // Names that exclude each other cannot be nested.
  if (!sound) return { inGps: [], onTop: null, later: null }
  return { inGps, onTop: compileMembers(onTop), later: compileMembers(later) }
}

function extraFieldOf(
  config: SourceConfig,
  name: string,
  keys: readonly string[],
  captures: readonly string[],
): Omit<MemberField, 'bit'> {
  const { type: kind, ...field } = config.map.fields[name]!
  const { unit, scale, offset, quantity } = field
  if (kind !== 'number' && (unit !== undefined || scale !== 1 || offset !== 0 || quantity !== undefined))
    throw new Malformed(`has a unit, scale, offset or quantity, which need the type number, not ${kind}`)
  return memberOf(config, { name, keys, kind, field, isExact: true }, captures)
}
