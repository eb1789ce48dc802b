// compile-signals.ts: the signals of a source as closures, one set for each family of models: what a number
// means depends on the model on many trackers, and is decided once for a device, not for every message.

import { meantText } from '../../std/nearest-word.ts'
import { quote } from '../../std/quote.ts'
import { checkConstants, rawOf } from './compile-values.ts'
import type { SignalConfig, SourceConfig } from '../config.ts'
import { Malformed } from '../path/text-cursor.ts'
import { createScale, product, ratioOf } from '../fields/decimal.ts'
import { noteKey, noteOf } from '../fields/field-notes.ts'
import { compileSignals, type SignalField } from '../fields/signals.ts'
import { signalUnits, valueUnitOf } from '../fields/units.ts'
import { compilePath, type Read } from '../path/path.ts'
import { pathsReadBy, readsPrevious } from '../path/paths-used.ts'
import { decimalFault, decimalFrom } from '../path/value.ts'
import { compileBounds } from '../plausibility/plausibility.ts'
import type { FieldBits } from '../lost-fields/watched-fields.ts'
import type { CompiledPrevious, SourcePlan } from './source-plan.ts'
import { judgedCounter, type JudgedCounter } from '../filters/judged-counters.ts'
import type { Scope } from './compile-scope.ts'

/** The known signal types of the interface and their units (ingestion-api.md 2.5). */
export const knownTypes = new Map([
  ['OBD_LIFETIME_ODOMETER', 'KILOMETERS'],
  ['OBD_TOTAL_ENGINE_TIME', 'HOURS'],
])

/** The signals of one family. */
type SignalFields = readonly { readonly config: SignalConfig; readonly field: SignalField }[]

type AllSignals = Pick<SourcePlan, 'signals' | 'counters'> & {
  /** Those that read previous values. */
  later: Pick<CompiledPrevious, 'signals' | 'hasSignals'>
}

/** The signals of devices without a family, then of each family. Undefined where a problem was reported. */
export function compileAllSignals(
  source: SourceConfig,
  { captures, compile, report }: Scope,
  bits: FieldBits,
): AllSignals | undefined {
  const { map, families, origins } = source
  const counters: JudgedCounter[] = []
  const known = Object.keys(families)
  const signals: { config: SignalConfig; field: SignalField }[] = []
  const later: typeof signals = []
  let sound = true
  for (const [index, config] of map.signals.entries()) {
    const foreign = config.families?.find((family) => !known.includes(family))
    if (foreign !== undefined) {
      const list = known.length === 0 ? 'the source has no `families`' : `known are ${known.join(', ')}`
      report([index, 'families'], `names the family ${foreign}; ${list}.${meantText(foreign, known)}`)
    }
    const made = compile([index], () => signalOf(source, config, captures))
    sound &&= made !== undefined && foreign === undefined
    // Decided once: costs nothing for each message.
    if (config.origin !== undefined && !origins.includes(config.origin)) continue
    if (made === undefined) continue
    const { field, step } = made
    const isLater = readsPrevious(config)
    if ((isLater ? signals : later).some((other) => isOneKind(other.config, config)))
      report(
        [index],
        `is one of several fields of ${config.type}, of which some read previous values. Only all or none can: ` +
          'a signal that reads it has no part in the payloadId.',
      )
    const bit = bits.of({ name: signalName(config), role: isLater ? 'beside' : 'alone', config })
    // What follows from the record before is no reading of a counter.
    if (isLater) later.push({ config, field: { ...field, bit } })
    else {
      const slot = counterSlotOf(source, { config, field, step }, counters)
      const written = slot === -1 ? [] : writtenOf(config, field)
      signals.push({ config, field: { ...field, slot, written, bit } })
    }
  }
  if (!sound) return undefined
  const byFamily = (all: SignalFields) =>
    [null, ...known].map((family) =>
      all.filter(({ config: { families: own } }) => own === undefined || own.includes(family ?? '')),
    )
  const compiled = (all: readonly SignalFields[]) =>
    all.map((fields) => compileSignals(fields.map(({ field }) => field)))
  return {
    signals: compiled(byFamily(signals)),
    counters: counters.length === 0 ? null : counters,
    later: { signals: compiled(byFamily(later)), hasSignals: later.length > 0 },
  }
}

/** -1 for a signal that is not judged; a new counter is added to `counters`. */
function counterSlotOf(
  { name: source, plausibility }: SourceConfig,
  { config, field, step }: { config: SignalConfig; field: SignalField; step: number },
  counters: JudgedCounter[],
): number {
  const { type, part, valueUnit } = field
  const judged = { source, type, part, valueUnit, quantity: config.quantity, ratio: step }
  const counter = judgedCounter(judged, plausibility)
  if (counter === null) return -1
  const slot = counters.findIndex(({ name }) => name === counter.name)
  const known = counters[slot]
  if (known === undefined) return counters.push(counter) - 1
  // Of several fields of one signal the finest one tells how far a reading may fall.
  if (counter.rule.step < known.rule.step) counters[slot] = counter
  return slot
}

function writtenOf({ expr }: SignalConfig, { read }: SignalField): readonly Read[] {
  return expr === undefined ? [read] : pathsReadBy({ expr }).map(({ path }) => compilePath(path))
}

function signalName({ type, part }: SignalConfig): string {
  return part === undefined ? `signal ${type}` : `signal ${type} of ${part}`
}

function isOneKind(one: SignalConfig, other: SignalConfig): boolean {
  return one.type === other.type && one.part === other.part
}

/** A word that no signal has as its origin would change nothing. */
export function checkOrigins({ origins, map }: SourceConfig, { report }: Scope): void {
  const known = [...new Set(map.signals.map(({ origin }) => origin).filter((origin) => origin !== undefined))]
  for (const [index, word] of origins.entries()) {
    if (known.includes(word)) continue
    const list =
      known.length === 0 ? 'no signal of the source has an `origin`' : `known are ${known.join(', ')}`
    report(['origins', index], `names the origin ${quote(word, 64)}; ${list}.${meantText(word, known)}`)
  }
}

function signalOf(
  { name: source, plausibility }: SourceConfig,
  field: SignalConfig,
  captures: readonly string[],
): { field: SignalField; step: number } {
  const { type, unit, part, value_unit: named } = field
  const read = rawOf(field, captures)
  checkConstants(field, isDecimalOrAbsent, 'a decimal number')
  const known = knownTypes.get(type)
  const converted = unit === undefined ? undefined : valueUnitOf(unit)
  if (known !== undefined && converted !== undefined && known !== converted)
    throw new Malformed(`has the unit ${unit}, but ${type} is in ${known}`)
  if (named !== undefined && converted !== undefined && named !== converted)
    throw new Malformed(`has the unit ${unit}, which becomes ${converted}, but value_unit is ${named}`)
  const ratio = product(unit === undefined ? ratioOf('1') : signalUnits[unit], ratioOf(String(field.scale)))
  const valueUnit = named ?? converted ?? known
  const signal: SignalField = {
    source,
    type,
    valueUnit,
    part,
    read,
    scale: createScale(ratio, field.offset),
    neverNegative: known !== undefined,
    bounds: compileBounds({ source, field: type, unit: valueUnit, quantity: field.quantity }, plausibility),
    slot: -1,
    written: [],
    bit: 0,
    ...noteOf(field),
  }
  const { [noteKey]: note } = signal
  if (note) note.sentUnit = valueUnit ?? null
  return { field: signal, step: Math.abs(Number(ratio.numerator) / Number(ratio.denominator)) }
}

/** A table says "no value" with an empty text. */
function isDecimalOrAbsent(value: unknown): boolean {
  return decimalFrom(value) !== undefined || decimalFault(value) === 'absent'
}

/** The family of a model, counted from 1; 0 for none. Ignores case. */
export function compileFamilies(families: SourceConfig['families']): (model: string | undefined) => number {
  const patterns = Object.values(families).map((family) => family.map((pattern) => pattern.toUpperCase()))
  return (model) => {
    if (model === undefined) return 0
    const name = model.toUpperCase()
    const matches = (pattern: string) =>
      pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern
    return patterns.findIndex((family) => family.some(matches)) + 1
  }
}
