// compile-extra-fields.ts: `map.fields` as closures: those in `gps`, and those on the top level
// of the payload.

import type { ExtraFieldConfig, SourceConfig } from '../config.ts'
import { ratioOf } from '../fields/decimal.ts'
import { compileExtraFields, type ExtraField, type WriteExtraFields } from '../fields/extra-fields.ts'
import { createConvert, speedUnits as speedRatios, unitRatios } from '../fields/units.ts'
import { compileCondition } from '../expression/expression.ts'
import type { FieldBits } from '../lost-fields/watched-fields.ts'
import { readsPrevious } from '../path/paths-used.ts'
import { Malformed } from '../path/text-cursor.ts'
import { compileBounds } from '../plausibility/plausibility.ts'
import type { Scope } from './compile-scope.ts'
import { checkBooleans, checkNumbers, coordinatePlaces, rawOf } from './compile-values.ts'

type ExtraFields = {
  inGps: WriteExtraFields | null
  onTop: WriteExtraFields | null
  /** Those that read previous values. */
  later: WriteExtraFields | null
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
  const inGps: ExtraField[] = []
  const onTop: ExtraField[] = []
  const later: ExtraField[] = []
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
    const compiled = compile(at, () => extraFieldOf(config, { name: key, keys: own, field }, captures))
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
  if (!sound) return { inGps: null, onTop: null, later: null }
  return {
    inGps: compileExtraFields(inGps),
    onTop: compileExtraFields(onTop),
    later: compileExtraFields(later),
  }
}

function extraFieldOf(
  { name: source, plausibility }: SourceConfig,
  { name, keys, field }: { name: string; keys: readonly string[]; field: ExtraFieldConfig },
  captures: readonly string[],
): ExtraField {
  const { type: kind, unit, scale, offset, quantity } = field
  if (kind !== 'number' && (unit !== undefined || scale !== 1 || offset !== 0 || quantity !== undefined))
    throw new Malformed(`has a unit, scale, offset or quantity, which need the type number, not ${kind}`)
  if (kind === 'number') checkNumbers(field)
  if (kind === 'boolean') checkBooleans(field)
  const ratio = unit === undefined ? undefined : unitRatios[unit]
  const convert = createConvert(ratio ?? ratioOf('1'), scale, offset, coordinatePlaces)
  const sentUnit = unit && (unit in speedRatios ? 'KILOMETERS_PER_HOUR' : 'DEGREES')
  const bounds =
    kind === 'number' ? compileBounds({ source, field: name, unit: sentUnit, quantity }, plausibility) : null
  const when = field.when === undefined ? null : compileCondition(field.when, captures)
  return { source, name, keys, kind, read: rawOf(field, captures), convert, bounds, when, bit: 0 }
}
