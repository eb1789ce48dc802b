// preset-files.ts: finds and reads the preset files that sources name, and reports their problems.
//
// A name is a file of config/presets in the package. A name that ends in .yaml is a path, relative to the
// config file. Each file is read once per config, however many sources name it, and checked by itself, so
// that its problems have its own lines. A problem that shows only after the merge (a capture that the topic
// does not have) is reported at the `preset` of the source, with the position in the preset file.
//
// A preset may name another one, which gives what is missing in it, as a preset does for a source.

import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { parse } from 'yaml'
import { codeOf, messageOf } from '../std/gateway-error.ts'
import { bounded, quote } from '../std/quote.ts'
import type { ConfigProblem } from '../std/config-problem.ts'
import { expandPresets, presetNameOf, presetSchema } from '../mapping/config.ts'
import { pathText } from './schema-errors.ts'
import { readText, type Expansion } from './config-reader.ts'
import type { Keys, Position } from './yaml-source.ts'
import type { SubstituteDeps } from './substitute.ts'
import { nearest } from '../std/nearest-word.ts'

type Written = Readonly<Record<string, unknown>>

/** Presets that name each other in a row. */
const depthMax = 4

export type Preset = {
  /** With what the presets below it give. */
  written: Written
  /** The file, line and column of an option, in the preset that gives it. */
  placeOf(keys: Keys): string
}

/** `problems` continue a sentence that begins with "sources[0].preset". */
type PresetResult = { kind: 'preset'; preset: Preset } | { kind: 'problems'; problems: readonly string[] }

export type Presets = {
  /** For readText: merges the presets into the section `sources`. */
  expand(written: unknown): Promise<Expansion>
  /** The files that were read. */
  files(): string[]
}

/** Presets for a config in `folder`. */
export function createPresets(deps: SubstituteDeps, { folder }: { folder: string }): Presets {
  const known = new Map<string, Promise<PresetResult>>()
  const files = new Set<string>()
  return { expand, files: () => [...files] }

  async function expand(written: unknown): Promise<Expansion> {
    const sources = sourcesIn(written)
    const found = new Map<string, Preset>()
    const problems: ConfigProblem[] = []
    for (const [index, source] of sources.entries()) {
      const name = presetNameOf(source)
      if (name === undefined) continue
      const result = await read(name)
      if (result.kind === 'preset') found.set(name, result.preset)
      else
        for (const message of result.problems) problems.push({ path: ['sources', index, 'preset'], message })
    }
    if (found.size === 0 && problems.length === 0) return { written, problems, relocate: (same) => same }
    const expanded = expandPresets(sources, (name) => found.get(name)?.written)
    return {
      written: { ...(written as Written), sources: expanded },
      problems,
      relocate: (problem) => relocate(problem, { sources, expanded, found }),
    }
  }

  /** `above`: the presets that name it. */
  async function read(name: string, above: readonly string[] = []): Promise<PresetResult> {
    const chain = [...above, name]
    if (above.includes(name) || chain.length > depthMax)
      return {
        kind: 'problems',
        problems: [`must end after at most ${depthMax} presets: ${chain.join(' > ')}.`],
      }
    const result = known.get(name) ?? readPreset(name)
    known.set(name, result)
    const own = await result
    const below = own.kind === 'preset' ? presetNameOf(own.preset.written) : undefined
    return own.kind === 'problems' || below === undefined ? own : over(own.preset, await read(below, chain))
  }

  async function readPreset(name: string): Promise<PresetResult> {
    const isPath = name.endsWith('.yaml')
    let file: string | undefined
    let text: string
    try {
      file = isPath ? resolve(folder, name) : packagedFile(name)
      if (file === undefined) return { kind: 'problems', problems: [unknownPreset(name)] }
      files.add(file)
      text = await deps.readText(file)
    } catch (error) {
      const why = codeOf(error) === 'ENOENT' ? 'there is no such file' : messageOf(error)
      return { kind: 'problems', problems: [`names ${quote(file ?? name)}, which cannot be read: ${why}.`] }
    }
    const result = await readText(text, presetSchema, deps)
    if (result.kind === 'problems') {
      const problems = result.problems.map(
        (one) => `has a problem at ${placeText(file, one)}: ${one.message}`,
      )
      return { kind: 'problems', problems }
    }
    const { written, positionOf } = result
    const placeOf = (keys: Keys) => placeText(file, positionOf(keys))
    return { kind: 'preset', preset: { written: written as Written, placeOf } }
  }
}

/** A preset with what the one below it gives. */
function over(own: Preset, below: PresetResult): PresetResult {
  if (below.kind === 'problems')
    return {
      kind: 'problems',
      problems: below.problems.map((one) => `has a problem at ${own.placeOf(['preset'])}: preset ${one}`),
    }
  const { preset } = below
  const [written] = expandPresets([own.written], () => preset.written)
  const placeOf = (keys: Keys) =>
    depthIn(written, keys) === depthIn(own.written, keys) ? own.placeOf(keys) : preset.placeOf(keys)
  return { kind: 'preset', preset: { written: written as Written, placeOf } }
}

function placeText(file: string, { line, column }: Position): string {
  return `${file}:${line}:${column}`
}

/** The sources of the config, the same after the merge, and the presets that were merged in. */
type Merge = { sources: readonly unknown[]; expanded: readonly unknown[]; found: ReadonlyMap<string, Preset> }

function relocate(problem: ConfigProblem, { sources, expanded, found }: Merge): ConfigProblem | null {
  const { path, message } = problem
  const [section, index, ...inside] = path
  if (section !== 'sources' || typeof index !== 'number') return problem
  const name = presetNameOf(sources[index])
  if (name === undefined) return problem
  const preset = found.get(name)
  // A preset that cannot be read is reported already; what is missing without it follows from that.
  if (!preset) return depthIn(sources[index], inside) === 0 ? null : problem
  const depth = depthIn(expanded[index], inside)
  if (depth === depthIn(sources[index], inside)) return problem
  return {
    path: ['sources', index, 'preset'],
    message: `has a problem at ${preset.placeOf(inside)}: ${pathText(inside)} ${message}`,
  }
}

/** How many keys of a path there are, from its start. */
function depthIn(value: unknown, keys: Keys): number {
  let inner = value
  let depth = 0
  for (const key of keys) {
    if (typeof inner !== 'object' || inner === null || !Object.hasOwn(inner, key)) return depth
    inner = (inner as Record<string | number, unknown>)[key]
    depth += 1
  }
  return depth
}

function sourcesIn(written: unknown): readonly unknown[] {
  if (typeof written !== 'object' || written === null || !('sources' in written)) return []
  return Array.isArray(written.sources) ? written.sources : []
}

function unknownPreset(name: string): string {
  const names = packagedNames()
  return `must be ${names.join(', ')}, or a file ending in .yaml, found ${quote(name, 80)}.${meantText(name, names)}`
}

/** Several presets may be meant: their first lines say which one. */
function meantText(name: string, names: readonly string[]): string {
  const meant = presetsMeant(name, names)
  const [only, ...others] = meant
  if (only === undefined) return ''
  if (others.length === 0) return ` Did you mean "${only}"?`
  return ` Did you mean ${meant.map((one) => `"${one}" (${titleOf(one)})`).join(' or ')}?`
}

/** Names of systems and formats that are in no name of a preset. */
const otherNames: Readonly<Record<string, readonly string[]>> = {
  lorawan: ['the-things-stack', 'chirpstack'],
  lora: ['the-things-stack', 'chirpstack'],
  ttn: ['the-things-stack'],
  tts: ['the-things-stack'],
  covesa: ['vss'],
  kuksa: ['vss'],
  c8y: ['cumulocity-json', 'cumulocity-smartrest'],
  thinedge: ['cumulocity-json'],
  fms: ['rfms'],
  obd: ['wican', 'torque'],
  elm327: ['wican', 'torque'],
  tesla: ['teslamate'],
  nmea0183: ['nmea'],
  gprmc: ['nmea'],
  codec8e: ['teltonika-codec8'],
  avl: ['teltonika-codec8'],
  mdm: ['digital-matter'],
  venus: ['victron-gps'],
}

const meantMax = 4

function presetsMeant(name: string, names: readonly string[]): readonly string[] {
  const plain = (text: string) => text.toLowerCase().replace(/[^a-z0-9]/g, '')
  const word = plain(name)
  const others = Object.hasOwn(otherNames, word) ? (otherNames[word] ?? []) : []
  if (others.length > 0) return others.filter((one) => names.includes(one))
  const containing = names.filter((one) => word.length >= 3 && plain(one).includes(word))
  if (containing.length > 0) return containing.slice(0, meantMax)
  const near = nearest(name, names)
  if (near !== undefined) return [near]
  // `teltonika-fmb920`, or the first word misspelt: `teltonica`.
  const [first = ''] = name.toLowerCase().split(/[^a-z0-9]/)
  const firstOf = (one: string) => one.split('-')[0] ?? one
  const start = nearest(first, names.map(firstOf))
  return first.length < 4 ? [] : names.filter((one) => firstOf(one) === start).slice(0, meantMax)
}

/** The first sentence of the comment that a preset begins with. */
function titleOf(name: string): string {
  const file = packagedFile(name)
  const lines = file === undefined ? [] : readFileSync(file, 'utf8').split('\n', 3)
  const text = lines
    .filter((line) => line.startsWith('# '))
    .map((line) => line.slice(2))
    .join(' ')
  return bounded(/^.*?(?=[:.;](\s|$))/.exec(text)?.[0] ?? text, 140)
}

/** The names of the presets that come with the package. */
export function packagedNames(): string[] {
  const folder = packagedFolder()
  if (folder === undefined) return []
  return readdirSync(folder)
    .filter((file) => file.endsWith('.yaml') && !file.endsWith('.cases.yaml'))
    .map((file) => basename(file, '.yaml'))
    .sort()
}

/** A preset of the package as it is written. */
export function packagedPreset(name: string): {
  topic?: string | string[]
  device?: unknown
  identity?: string
} {
  const file = packagedFile(name)
  return file === undefined ? {} : (parse(readFileSync(file, 'utf8')) as object)
}

function packagedFile(name: string): string | undefined {
  const folder = packagedFolder()
  return folder !== undefined && packagedNames().includes(name) ? join(folder, `${name}.yaml`) : undefined
}

/** config/presets beside package.json. The compiled code may be in a deeper folder than the source. */
export function packagedFolder(): string | undefined {
  let folder = import.meta.dirname
  for (;;) {
    const presets = join(folder, 'config', 'presets')
    if (existsSync(join(folder, 'package.json')) && existsSync(presets)) return presets
    const above = dirname(folder)
    if (above === folder) return undefined
    folder = above
  }
}
