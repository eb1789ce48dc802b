// compile-extra-fields.ts: `map.fields` as closures: those in `gps`, and those on the top level
// of the payload.

import type { SourceConfig } from '../config.ts'
import { compileMembers, type MemberField, type WriteMembers } from '../fields/member-fields.ts'
import type { FieldBits } from '../lost-fields/watched-fields.ts'
import { readsPrevious } from '../path/paths-used.ts'
import { Malformed } from '../path/text-cursor.ts'
import type { Scope } from './compile-scope.ts'
import { memberOf } from './compile-values.ts'

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

export function extraFieldsOf(
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
