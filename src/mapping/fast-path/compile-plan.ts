// compile-plan.ts: makes the fast plan of a source; null where the source has an option that the fast path
// does not know. The messages of such a source are parsed.

import { extraFieldOf } from '../compile/compile-extra-fields.ts'
import { headingBoundsOf, speedBoundsOf } from '../compile/compile-fields.ts'
import { coordinateConvertOf, headingConvertOf, speedConvertOf } from '../compile/compile-values.ts'
import type { SignalFields } from '../compile/compile-signals.ts'
import type { CoordinateConfig, ExtraFieldConfig, SignalConfig, SourceConfig } from '../config.ts'
import type { DeviceRule } from '../devices/device-rule.ts'
import type { CompiledSource } from '../mapper/compiled-source.ts'
import type { Condition } from '../path/condition.ts'
import { pathsOf, type FieldPaths } from '../fields/fields.ts'
import { angleUnits } from '../fields/units.ts'
import { jsonString } from '../fields/json-string.ts'
import { signalFrame, type SignalField } from '../fields/signals.ts'
import { compileZone } from '../times/times.ts'
import type { Bounds } from '../plausibility/plausibility.ts'
import type { FastPlan, PlainField, PlainPosition, PlainSignal, Slots, UsualCondition } from './fast-plan.ts'
import { usualCondition } from './usual-conditions.ts'
import { hasUsualOptions, isUsualField } from './usual-options.ts'
import { NotUsual, createWantedKeys, type WantedKeys } from './wanted-keys.ts'
import { isAscii, pieceOf } from './written-bytes.ts'

export function fastPlanOf(
  config: SourceConfig,
  device: DeviceRule,
  signals: readonly SignalFields[],
  { when, fix }: Pick<CompiledSource, 'when' | 'fix'>,
): FastPlan | null {
  if (!hasUsualOptions(config)) return null
  try {
    return planOf(config, device, signals, {
      when: [config.when, when?.holds],
      valid: [config.fix?.valid, fix?.valid],
    })
  } catch (error) {
    if (error instanceof NotUsual) return null
    throw error
  }
}

/** As it is written, and compiled. */
type WrittenCondition = readonly [string | undefined, Condition | null | undefined]

function planOf(
  config: SourceConfig,
  device: DeviceRule,
  signals: readonly SignalFields[],
  conditions: { when: WrittenCondition; valid: WrittenCondition },
): FastPlan {
  const { map } = config
  const keys = createWantedKeys()
  const deviceSlots = deviceOf(config, device, keys)
  const { inGps, onTop } = fieldsOf(config, keys)
  const when = conditionOf(conditions.when, keys)
  const valid = conditionOf(conditions.valid, keys)
  return {
    conditions: [when, valid].filter((condition) => condition !== null),
    when,
    device: deviceSlots,
    time: timeOf(config, keys),
    position: map.latitude === undefined ? null : positionOf(config, inGps, keys),
    signals: signals.map((fields) => kindsOf(fields, keys)),
    fields: onTop,
    ...keys.tree(),
  }
}

function conditionOf([text, holds]: WrittenCondition, keys: WantedKeys): UsualCondition | null {
  return text === undefined || !holds ? null : usualCondition(text, holds, keys)
}

function deviceOf({ device: rule }: SourceConfig, { kind }: DeviceRule, keys: WantedKeys): Slots | null {
  if (kind === 'topic') return null
  if (typeof rule !== 'object' || Array.isArray(rule)) throw new NotUsual()
  return keys.slotsOf(rule.path)
}

function timeOf({ map: { time } }: SourceConfig, keys: WantedKeys): FastPlan['time'] {
  if (time === undefined || time.format === 'arrival') return null
  return {
    slots: slotsOf(time, keys),
    format: time.format,
    zone: compileZone(time.format, time.zone),
    orArrival: time.missing === 'arrival',
  }
}

type Readable = Readonly<Record<string, unknown>> & { path?: FieldPaths | undefined }

/** Throws NotUsual for a constant, and for a value that is changed before it is read as a number. */
function slotsOf(field: Readable, keys: WantedKeys): Slots {
  if (field.path === undefined || !isUsualField(field)) throw new NotUsual()
  return keys.slotsOf(
    pathsOf(field.path).map((path) => {
      if (typeof path !== 'string') throw new NotUsual()
      return path
    }),
  )
}

function positionOf(config: SourceConfig, fields: readonly PlainField[], keys: WantedKeys): PlainPosition {
  const { latitude, longitude, speed, heading, in_motion: inMotion, speed_units: units } = config.map
  if (latitude === undefined || longitude === undefined) throw new NotUsual()
  if (![latitude, longitude].every(({ unit }) => unit in angleUnits)) throw new NotUsual()
  const speedLimits = limitsOf(speedBoundsOf(config))
  const coordinateOf = (field: CoordinateConfig) => ({
    slots: slotsOf(field, keys),
    convert: coordinateConvertOf(field),
  })
  return {
    latitude: coordinateOf(latitude),
    longitude: coordinateOf(longitude),
    speed: speed
      ? {
          slots: slotsOf(speed, keys),
          convert: speedConvertOf(speed),
          low: Math.max(0, speedLimits.low),
          high: speedLimits.high,
        }
      : null,
    speedTail: asciiPiece(`,"speedUnits":${jsonString(units)}`),
    heading: heading
      ? {
          slots: slotsOf(heading, keys),
          convert: headingConvertOf(heading),
          ...limitsOf(headingBoundsOf(config)),
        }
      : null,
    inMotion: inMotion
      ? {
          slots: inMotion.path === undefined && inMotion.from ? [] : slotsOf(inMotion, keys),
          fromSpeed: inMotion.from !== undefined,
        }
      : null,
    fields,
  }
}

/** A value beyond them is unusual. Without bounds every number is usual. */
function limitsOf(bounds: Bounds | null): { low: number; high: number } {
  return { low: bounds?.min ?? -Number.MAX_VALUE, high: bounds?.max ?? Number.MAX_VALUE }
}

function kindsOf(fields: SignalFields, keys: WantedKeys): readonly (readonly PlainSignal[])[] {
  const kinds = Map.groupBy(fields, ({ field: { type, part } }) => `${part ?? ''}|${type}`)
  return [...kinds.values()].map((kind) => kind.map(({ config, field }) => signalOf(config, field, keys)))
}

function signalOf(config: SignalConfig, field: SignalField, keys: WantedKeys): PlainSignal {
  const { scale, neverNegative, bounds, slot, when } = field
  if (when !== null || config.unit === 'duration') throw new NotUsual()
  const { head, tail } = signalFrame(field)
  return {
    slots: slotsOf(config, keys),
    head: asciiPiece(head),
    tail: asciiPiece(tail),
    scale,
    neverNegative,
    bounds,
    counter: slot,
  }
}

function fieldsOf(
  config: SourceConfig,
  keys: WantedKeys,
): { inGps: readonly PlainField[]; onTop: readonly PlainField[] } {
  const inGps: PlainField[] = []
  const onTop: PlainField[] = []
  for (const [name, field] of Object.entries(config.map.fields)) {
    const path = name.split('.')
    const isInGps = path[0] === 'gps'
    const [key, ...nested] = isInGps ? path.slice(1) : path
    if (key === undefined || nested.length > 0) throw new NotUsual()
    ;(isInGps ? inGps : onTop).push(plainField(config, name, key, field, keys))
  }
  return { inGps, onTop }
}

function plainField(
  config: SourceConfig,
  name: string,
  key: string,
  field: ExtraFieldConfig,
  keys: WantedKeys,
): PlainField {
  // First of all, since it refuses what the fast path does not know.
  const slots = slotsOf(field, keys)
  const { kind, convert, bounds } = extraFieldOf(config, { name, keys: [key], field }, [])
  return {
    kind,
    head: asciiPiece(`,${jsonString(key)}:`),
    number: { slots, convert, ...limitsOf(bounds) },
  }
}

/** Throws NotUsual for other characters than ASCII: what is written is read as Latin-1. */
function asciiPiece(text: string): Uint8Array {
  if (!isAscii(text)) throw new NotUsual()
  return pieceOf(text)
}
