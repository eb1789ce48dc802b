// compile-counters.ts: gives each counter of a source its place among those whose jumps and falls are judged.

import type { SignalConfig, SourceConfig } from '../config.ts'
import { product, ratioOf } from '../fields/decimal.ts'
import type { SignalField } from '../fields/signals.ts'
import { signalUnits } from '../fields/units.ts'
import { judgedCounter, type JudgedCounter } from '../filters/judged-counters.ts'

/** -1 for a signal that is not judged; a new counter is added to `counters`. */
export function counterSlotOf(
  source: SourceConfig,
  { config, field }: { config: SignalConfig; field: SignalField },
  counters: JudgedCounter[],
): number {
  const { unit, quantity, scale } = config
  const { type, part, valueUnit } = field
  const steps = product(unit === undefined ? ratioOf('1') : signalUnits[unit], ratioOf(String(scale)))
  const ratio = Math.abs(Number(steps.numerator) / Number(steps.denominator))
  const counter = judgedCounter(
    { source: source.name, type, part, valueUnit, quantity, ratio },
    source.plausibility,
  )
  if (counter === null) return -1
  const slot = counters.findIndex(({ name }) => name === counter.name)
  const known = counters[slot]
  if (known === undefined) return counters.push(counter) - 1
  // Of several fields of one signal the finest one tells how far a reading may fall.
  if (counter.rule.step < known.rule.step) counters[slot] = counter
  return slot
}
