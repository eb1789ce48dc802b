// case-files.ts: reads a file of mapping cases (see mapping/cases/cases.ts) and the mapping that they test:
// the preset with the same name in the same folder, as the only source, or a config that the caller has
// loaded.
//
//   chirpstack.cases.yaml             tests chirpstack.yaml
//   chirpstack.trackers.cases.yaml    tests chirpstack.yaml, too, if there is no chirpstack.trackers.yaml

import { existsSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { Secret } from '../std/secret.ts'
import type { ConfigProblem } from '../std/config-problem.ts'
import type { MappingConfig } from '../mapping/config.ts'
import { casesSchema, type CasesFile } from '../mapping/mapping.ts'
import { ConfigError, requireConfig } from './config-error.ts'
import { createPresets, type Presets } from './preset-files.ts'
import { readText } from './config-reader.ts'
import { checkNames, checkSources, mappingSchema } from './sources-section.ts'
import type { SubstituteDeps } from './substitute.ts'

const casesEnd = '.cases.yaml'

export type LoadCasesDeps = {
  env: SubstituteDeps['env']
  readText: (path: string) => Promise<string>
}

/** The preset or config in the same folder that the cases at `path` test; undefined if there is none. */
export function testedBy(path: string): string | undefined {
  const name = basename(path, casesEnd)
  const files = [name, name.replace(/\.[^.]+$/, '')].map((one) => join(dirname(resolve(path)), `${one}.yaml`))
  return files.find((file) => existsSync(file))
}

/** Reads cases that test a config. Rejects with ConfigError, or with what `readText` rejects with. */
export async function loadCases(path: string, deps: LoadCasesDeps): Promise<CasesFile> {
  const result = await readText(await deps.readText(path), casesSchema, depsIn(dirname(path), deps), {
    check: forbidSource,
  })
  return requireConfig(path, result).config
}

/** Reads the cases at `path` and the preset in the same folder. Rejects as loadCases does. */
export async function loadPresetCases(
  path: string,
  deps: LoadCasesDeps,
): Promise<{ cases: CasesFile; mapping: MappingConfig }> {
  const folder = dirname(resolve(path))
  const inFolder = depsIn(folder, deps)
  const result = await readText(await deps.readText(path), casesSchema, inFolder)
  const { config: cases, written, positionOf } = requireConfig(path, result)
  const { source: own } = written as { source?: Readonly<Record<string, unknown>> }
  const preset = testedBy(path) ?? join(folder, `${basename(path, casesEnd)}.yaml`)
  const name = basename(preset, '.yaml')
  const { expand } = createPresets(inFolder, { folder })
  const mapping = await readMapping({ ...own, name, preset }, inFolder, expand)
  if (mapping.kind === 'problems') {
    const place = positionOf(['source'])
    throw new ConfigError(
      path,
      mapping.problems.map((one) => ({ ...one, message: asPreset(one.message), ...place })),
    )
  }
  return { cases, mapping: withKeys(mapping.config, cases.keys) }
}

/** Keys that stand in a file of cases are no secrets, so they are added after the secrets were checked. */
function withKeys(mapping: MappingConfig, keys: CasesFile['keys']): MappingConfig {
  const quoted = (text: string) => `"${text.replaceAll('"', '""')}"`
  const rows = Object.entries(keys).map(([device, key]) => `${quoted(device)},${quoted(key)}`)
  if (rows.length === 0) return mapping
  const devices = new Secret(['device,key', ...rows].join('\n'))
  return {
    ...mapping,
    sources: mapping.sources.map((source) => ({ ...source, keys: { shared: [], devices } })),
  }
}

/** Reads sources that are in no file, one at a time. A preset that several sources name is read once. */
export function createMappingReader(deps: LoadCasesDeps) {
  const { expand } = createPresets(deps, { folder: process.cwd() })
  return (source: Readonly<Record<string, unknown>>) => readMapping(source, deps, expand)
}

/** Relative paths in a file start at its folder. */
function depsIn(folder: string, { env, readText: read }: LoadCasesDeps): SubstituteDeps {
  return { env, readText: (file) => read(resolve(folder, file)) }
}

/** A source that is in no file is read in the same way as those in one. */
function readMapping(
  source: Readonly<Record<string, unknown>>,
  deps: SubstituteDeps,
  expand: Presets['expand'],
) {
  const text = JSON.stringify({ sources: [source] })
  return readText(text, mappingSchema, deps, { expand, check: checkNames, checkSound: checkSources })
}

function forbidSource(written: unknown): readonly ConfigProblem[] {
  if (typeof written !== 'object' || written === null || !('source' in written)) return []
  const message = 'is only for cases of a preset. Cases of a config test the sources of the config.'
  return [{ path: ['source'], message }]
}

/** A cases file has no list of sources, so a message about one is about the preset. */
function asPreset(message: string): string {
  return message.replace(/^sources\[0\]\.(preset )?/, (_, preset) => (preset ? 'the preset ' : ''))
}
