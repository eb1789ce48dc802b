// preset-merge.ts: a source that names a preset, put together: what the source says itself goes before what the preset
// says. It works on what was written, before any schema: what nobody wrote has no say, defaults least of all.
//
//   map                    field by field: `map.speed` of the source takes the place of the preset's, as a whole
//   map.fields             name by name
//   defaults, families     key by key
//   everything else        as a whole: a `topic`, `when` or list of `signals` of the source is the only one

import { z } from 'zod'
import { presetShape } from './source-config.ts'
import { isRecord } from '../path/path-eval.ts'

/** A preset file: as a source without a name, of which nothing is required. */
export const presetSchema = z.strictObject(presetShape).partial()

type Written = Readonly<Record<string, unknown>>

/** The sources with what their presets say; `presetOf` gives nothing for a preset that is not known. */
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
  return { ...preset, ...source, ...mergedKeys(source, preset, ['map', 'defaults', 'families']) }
}

/** Those of `keys` that both have as maps, each with the entries of both. */
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
