// preset-merge.ts: merges a preset into the source that names it. An option of the source overrides that of
// the preset. It works on the plain values before the schema, so a default never overrides an option of the
// preset.
//
//   map                    field by field: `map.speed` of the source replaces that of the preset as a whole
//   map.fields             name by name
//   defaults, families     key by key; likewise plausibility
//   everything else        as a whole: a `topic`, `when` or list of `signals` of the source is the only one

import { z } from 'zod'
import { presetOption, presetShape } from './source-config.ts'
import { isRecord } from '../path/path-eval.ts'

/** A preset file: the options of a source without a name, none of them required. */
export const presetSchema = z.strictObject({ preset: presetOption, ...presetShape }).partial()

type Written = Readonly<Record<string, unknown>>

/** The sources with their presets merged in; `presetOf` gives undefined for an unknown preset. */
export function expandPresets(
  sources: readonly unknown[],
  presetOf: (name: string) => Written | undefined,
): unknown[] {
  return sources.map((source) => {
    const name = presetNameOf(source)
    const preset = name === undefined ? undefined : presetOf(name)
    return preset && isRecord(source) ? merged(source, preset) : source
  })
}

/** The preset that a source names. */
export function presetNameOf(source: unknown): string | undefined {
  if (!isRecord(source)) return undefined
  const { preset } = source as Written
  return typeof preset === 'string' ? preset : undefined
}

function merged(source: Written, preset: Written): Written {
  return {
    ...preset,
    ...source,
    ...mergedKeys(source, preset, ['map', 'defaults', 'families', 'plausibility']),
  }
}

/** Those of `keys` that are maps in both, each with the entries of both. */
function mergedKeys(own: Written, preset: Written, keys: readonly string[]): Written {
  const both: Record<string, unknown> = {}
  for (const key of keys) {
    const [mine, theirs] = [own[key], preset[key]]
    if (!isRecord(mine) || !isRecord(theirs)) continue
    const nested = key === 'map' ? mergedKeys(mine, theirs, ['fields']) : {}
    both[key] = { ...theirs, ...mine, ...nested }
  }
  return both
}
