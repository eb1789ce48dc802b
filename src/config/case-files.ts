// case-files.ts: reads a file of mapping cases (mapping/cases/cases.ts says what they are) and what they try: the preset beside
// it, as one source that says nothing else, or a config that the caller has.

import { basename, dirname, join, resolve } from 'node:path'
import type { ConfigProblem } from '../domain/config-problem.ts'
import { casesSchema, type CasesFile, type MappingConfig } from '../mapping/config.ts'
import { ConfigError } from './config-error.ts'
import { createPresets, type Presets } from './preset-files.ts'
import { readText } from './config-reader.ts'
import { checkSources, mappingSchema } from './sources-section.ts'
import type { SubstituteDeps } from './substitute.ts'

const casesEnd = '.cases.yaml'

export type LoadCasesDeps = {
  env: SubstituteDeps['env']
  readText: (path: string) => Promise<string>
}

/** Reads cases that try a config. Rejects with ConfigError, or with what `readText` rejects with. */
export async function loadCases(path: string, deps: LoadCasesDeps): Promise<CasesFile> {
  const result = await readText(await deps.readText(path), casesSchema, depsIn(dirname(path), deps), {
    check: forbidSource,
  })
  if (result.kind === 'problems') throw new ConfigError(path, result.problems)
  return result.config
}

/** Reads the cases at `path` and the preset beside them. Rejects as loadCases does. */
export async function loadPresetCases(
  path: string,
  deps: LoadCasesDeps,
): Promise<{ cases: CasesFile; mapping: MappingConfig }> {
  const folder = dirname(resolve(path))
  const inFolder = depsIn(folder, deps)
  const result = await readText(await deps.readText(path), casesSchema, inFolder)
  if (result.kind === 'problems') throw new ConfigError(path, result.problems)
  const { config: cases, written, positionOf } = result
  const name = basename(path, casesEnd)
  const { source: own } = written as { source?: Readonly<Record<string, unknown>> }
  const preset = join(folder, `${name}.yaml`)
  const { expand } = createPresets(inFolder, { folder })
  const mapping = await readMapping({ ...own, name, preset }, inFolder, expand)
  if (mapping.kind === 'problems') {
    const place = positionOf(['source'])
    throw new ConfigError(
      path,
      mapping.problems.map((one) => ({ ...one, message: asPreset(one.message), ...place })),
    )
  }
  return { cases, mapping: mapping.config }
}

/** The mapping of one source that is a preset of the package, with what `own` says over it. */
export async function loadPresetMapping(
  preset: string,
  deps: LoadCasesDeps,
  own: Readonly<Record<string, unknown>> = {},
): Promise<MappingConfig> {
  const result = await createMappingReader(deps)({ name: preset, ...own, preset })
  if (result.kind === 'problems') throw new ConfigError(preset, result.problems)
  return result.config
}

/** Reads sources that nobody wrote to a file, one after the other; a preset that several name is read once. */
export function createMappingReader(deps: LoadCasesDeps) {
  const { expand } = createPresets(deps, { folder: process.cwd() })
  return (source: Readonly<Record<string, unknown>>) => readMapping(source, deps, expand)
}

/** Relative paths in a file start at its folder. */
function depsIn(folder: string, { env, readText: read }: LoadCasesDeps): SubstituteDeps {
  return { env, readText: (file) => read(resolve(folder, file)) }
}

/** A source that nobody wrote to a file goes the way of those that stand in one. */
function readMapping(
  source: Readonly<Record<string, unknown>>,
  deps: SubstituteDeps,
  expand: Presets['expand'],
) {
  const text = JSON.stringify({ sources: [source] })
  return readText(text, mappingSchema, deps, { expand, check: checkSources })
}

function forbidSource(written: unknown): readonly ConfigProblem[] {
  if (typeof written !== 'object' || written === null || !('source' in written)) return []
  return [{ path: ['source'], message: 'is for the cases of a preset; those of a config try its sources.' }]
}

/** A cases file knows no list of sources. */
function asPreset(message: string): string {
  return message.replace(/^sources\[0\]\.(preset )?/, (_, preset) => (preset ? 'the preset ' : ''))
}
