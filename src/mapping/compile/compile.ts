// compile.ts: the sources of the config become closures, once. Everything that a schema cannot see is found
// here (a path that is none, a capture that the topic does not have, a source that is never reached) and
// reported with its place, all at once.

import type { ConfigProblem } from '../../domain/config-problem.ts'
import { quote } from '../../std/quote.ts'
import { compileFields } from './compile-fields.ts'
import { compileAllSignals, compileFamilies } from './compile-signals.ts'
import { compileMemory, compileProfiles } from './compile-state.ts'
import type { MappingConfig, SourceConfig } from '../config.ts'
import { Malformed } from '../path/text-cursor.ts'
import { decodeIotm } from '../encodings/iotm.ts'
import { decodeTeltonika } from '../encodings/teltonika.ts'
import {
  compileDevicePath,
  compileDeviceTemplate,
  firstDeviceRule,
  type DeviceRule,
} from '../devices/device-rule.ts'
import { compileEach, type Each } from '../path/record-selection.ts'
import { decodeCsv, decodeScalar, decodeText } from '../encodings/encodings.ts'
import { compileExtract, compileExtractor, type Extract } from '../extract/extract.ts'
import { decodeJson, type Decode } from '../encodings/lenient-json.ts'
import { compilePaths, type Path, type Read } from '../path/path.ts'
import { pathIn, pathsReadBy } from '../path/paths-used.ts'
import type { CompiledSource } from '../mapper/record-mapper.ts'
import { checkExpression } from '../jsonata/expression.ts'
import type { Withhold } from '../privacy/privacy.ts'
import { covers, parseTopic, type TopicPattern } from '../path/topic-pattern.ts'
import { compileCondition, type Condition } from '../path/condition.ts'

type Keys = ConfigProblem['path']

/** Runs `compile`; what it finds malformed becomes a problem at `path`, and undefined the result. */
export type Compile = <Result>(path: Keys, compile: () => Result) => Result | undefined

export type Report = (path: Keys, message: string) => void

export type CompiledSources = {
  /** Those without a problem; all of them where `problems` is empty. */
  sources: readonly CompiledSource[]
  problems: readonly ConfigProblem[]
}

export function compileSources(config: MappingConfig): CompiledSources {
  const problems: ConfigProblem[] = []
  const report: Report = (path, message) => problems.push({ path, message })
  const sources: CompiledSource[] = []
  const earlier: { name: string; pattern: TopicPattern }[] = []
  const profiles = compileProfiles(config.privacy, attempting(report))
  for (const [index, source] of config.sources.entries()) {
    const path = ['sources', index]
    const before = problems.length
    if (config.sources.findIndex(({ name }) => name === source.name) !== index)
      report([...path, 'name'], `must be unique: ${quote(source.name)} is the name of another source too.`)
    const patterns = compileTopics(source, [...path, 'topic'], earlier, report)
    if (!patterns) continue
    const compiled = compileSource(source, patterns, path, { config, profiles }, report)
    if (problems.length === before && compiled) sources.push(compiled)
  }
  return { sources, problems }
}

function compileTopics(
  { name, topic }: SourceConfig,
  path: Keys,
  earlier: { name: string; pattern: TopicPattern }[],
  report: Report,
): readonly TopicPattern[] | undefined {
  const patterns: TopicPattern[] = []
  const texts = typeof topic === 'string' ? [topic] : topic
  for (const [index, text] of texts.entries()) {
    const at = typeof topic === 'string' ? path : [...path, index]
    const pattern = attempting(report)(at, () => parseTopic(text))
    if (!pattern) continue
    const above = earlier.find((other) => covers(other.pattern, pattern))
    if (above)
      report(at, `is never reached: the source ${quote(above.name)} above takes every topic that it matches.`)
    patterns.push(pattern)
  }
  earlier.push(...patterns.map((pattern) => ({ name, pattern })))
  return patterns.length === texts.length ? patterns : undefined
}

const decoders: Record<Exclude<SourceConfig['encoding'], 'sparkplug'>, Decode> = {
  json: decodeJson,
  text: decodeText,
  scalar: decodeScalar,
  csv: decodeCsv,
  teltonika: decodeTeltonika,
  iotm: decodeIotm,
}

type Beside = { config: MappingConfig; profiles: ReadonlyMap<string, Withhold> }

function compileSource(
  source: SourceConfig,
  patterns: readonly TopicPattern[],
  path: Keys,
  { config, profiles }: Beside,
  report: Report,
): CompiledSource | undefined {
  const compile = attempting(report)
  const captures = [...new Set(patterns.flatMap((pattern) => pattern.captures))]
  const exclude = source.exclude.map((text, index) =>
    compile([...path, 'exclude', index], () => parseTopic(text)),
  )
  const each = compile([...path, 'each'], () => compileEachOf(source))
  const when = compileWhen(source.when, captures, [...path, 'when'], compile)
  const refuse = source.refuse.map(({ when: text, reason, detail }, index) => {
    const holds = compile([...path, 'refuse', index, 'when'], () => compileCondition(text, captures))
    return holds && { holds, reason, detail }
  })
  checkLevels(source, path, report)
  const extract = compileExtracts(source, captures, path, compile)
  const device = compile([...path, 'device'], () => compileDevice(source.device, captures))
  const provider = compile([...path, 'provider'], () => compileProvider(source.provider, captures))
  const fields = compileFields(source, captures, path, compile, report)
  const signals = compileAllSignals(source, captures, [...path, 'map', 'signals'], compile, report)
  const memory = compileMemory(source, captures, path, compile, report)
  if (source.jsonata !== undefined)
    compile([...path, 'jsonata'], () => (checkExpression(source.jsonata ?? ''), true))
  if (!device || !fields || !signals || !memory) return undefined
  if (each === undefined || when === undefined || extract === undefined || provider === undefined)
    return undefined
  const { unknown, identify } = config.devices
  const defaults = { ...config.defaults, ...source.defaults }
  return {
    name: source.name,
    patterns,
    captures,
    exclude: exclude.filter((pattern) => pattern !== undefined),
    retained: source.retained,
    decode: source.encoding === 'sparkplug' ? null : decoders[source.encoding],
    extract,
    jsonata: source.jsonata ?? null,
    each,
    refuse: refuse.filter((rule) => rule !== undefined),
    when,
    device,
    provider,
    ...fields,
    signals,
    ...memory,
    emptyIsNormal: source.fix !== undefined || memory.coalesce !== null,
    withoutModel: source.warn_without_model ?? null,
    deviceOptions: {
      defaults: source.model === undefined ? defaults : { ...defaults, model: source.model },
      unknown,
      identify,
      familyOf: compileFamilies(source.families),
      profiles,
    },
  }
}

function compileEachOf({ each, encoding }: SourceConfig): Each | null {
  // Every line is a record, every other message one or what `each` says.
  if (each === undefined) return encoding === 'csv' ? compileEach([(_record, root) => root]) : null
  const reads: Read[] = stepsOf(each).map((step) => compilePaths(typeof step === 'string' ? step : step.path))
  return compileEach(reads)
}

/** A `$up` beyond what `each` has of levels would silently find nothing. */
function checkLevels({ each, extract, ...options }: SourceConfig, path: Keys, report: Report): void {
  const steps = stepsOf(each)
  const check = (read: Path, most: number, at: Keys) => {
    if (read.levels <= most) return
    const found =
      most === 0 ? 'there is nothing around it' : `there ${most === 1 ? 'is' : 'are'} only ${most}`
    report(at, `goes ${read.levels} ${read.levels === 1 ? 'level' : 'levels'} out with $up, but ${found}.`)
  }
  for (const [index, step] of steps.entries())
    for (const text of [typeof step === 'string' ? step : step.path].flat())
      for (const read of pathIn(text)) check(read, index, [...path, 'each'])
  const levels = steps.length > 1 ? steps.length : 0
  for (const { path: read, at } of pathsReadBy(options, path)) check(read, levels, at)
  for (const [index, { from, when }] of extract.entries())
    for (const { path: read } of pathsReadBy({ path: from, when }))
      check(read, 0, [...path, 'extract', index])
}

function stepsOf(each: SourceConfig['each']) {
  if (each === undefined) return []
  return Array.isArray(each) ? each : [each]
}

function compileExtracts(
  { extract }: SourceConfig,
  captures: readonly string[],
  path: Keys,
  compile: Compile,
): Extract | null | undefined {
  if (extract.length === 0) return null
  const extractors = extract.map((entry, index) =>
    compile([...path, 'extract', index], () => compileExtractor(entry, captures)),
  )
  const sound = extractors.filter((extractor) => extractor !== undefined)
  return sound.length < extractors.length ? undefined : compileExtract(sound)
}

function compileProvider(text: string | undefined, captures: readonly string[]): CompiledSource['provider'] {
  if (text === undefined) return null
  const rule = compileDeviceTemplate(text, captures)
  if (rule.kind !== 'topic') throw new Malformed('must be a name or a template over captures of the topic')
  return rule.name
}

function compileWhen(
  text: string | undefined,
  captures: readonly string[],
  path: Keys,
  compile: Compile,
): { holds: Condition; reason: string } | null | undefined {
  if (text === undefined) return null
  const holds = compile(path, () => compileCondition(text, captures))
  return holds && { holds, reason: `when: ${text}` }
}

function compileDevice(rule: SourceConfig['device'], captures: readonly string[]): DeviceRule {
  if (rule !== undefined) {
    const rules = Array.isArray(rule) ? rule : [rule]
    return firstDeviceRule(
      rules.map((one) =>
        typeof one === 'string' ? compileDeviceTemplate(one, captures) : compileDevicePath(one.path),
      ),
    )
  }
  if (captures.includes('device')) return compileDeviceTemplate('{device}', captures)
  throw new Malformed(
    'is required: the topic has no {device}. Say what names the device, such as "{clientid}" or { path: imei }',
  )
}

function attempting(report: Report): Compile {
  return (path, compile) => {
    try {
      return compile()
    } catch (error) {
      if (!(error instanceof Malformed)) throw error
      report(path, `${error.message}.`)
      return undefined
    }
  }
}
