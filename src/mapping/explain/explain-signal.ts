// explain-signal.ts: explains one signal of `map` alone, for a device of one family.

import { compileSignals } from '../fields/signals.ts'
import { signalOf } from '../compile/compile-signals.ts'
import type { SignalConfig, SourceConfig } from '../config.ts'
import { isRecord } from '../path/path-eval.ts'
import { both, head, newAttempt, withRaw, withValue, type ExplainedField } from './explained-field.ts'
import { compileFinder, type PlacedRecord } from './path-finder.ts'

/** `family` is that of the device's model, null where it belongs to none. */
export function explainSignal(
  source: SourceConfig,
  config: SignalConfig,
  index: number,
  captureNames: readonly string[],
): (place: PlacedRecord, family: string | null) => ExplainedField {
  const { origins } = source
  const { type, part, families, origin } = config
  const field = signalOf(source, config, captureNames)
  const finder = compileFinder(config, captureNames)
  const write = compileSignals([field])
  return (place, family) => {
    const { record, root, up, captures } = place
    const { path, raw, note } = finder.find(place)
    const signalName = part === undefined ? type : `${type} (${part})`
    const base = withRaw(
      {
        ...head(`signals[${index}]`, signalName, finder.paths),
        path,
        unit: config.unit ?? null,
        sentUnit: field.valueUnit ?? null,
      },
      raw,
    )
    if (origin !== undefined && !origins.includes(origin))
      return { ...base, note: `its origin ${origin} is not in \`origins\` of the source` }
    if (families !== undefined && (family === null || !families.includes(family))) {
      const own =
        family === null
          ? 'the model of the device is in no family'
          : `the model of the device is in the family ${family}`
      return { ...base, note: `only for ${families.join(', ')}; ${own}` }
    }
    const { context, why } = newAttempt(captures)
    const [text] = write(record, root, up, context)
    const value = text === undefined ? undefined : signalIn(text)
    return withValue(base, value, both(why(), note))
  }
}

function signalIn(text: string): unknown {
  const signal: unknown = JSON.parse(`{"id":"${text}`)
  return isRecord(signal) ? signal['value'] : undefined
}
