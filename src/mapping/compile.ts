// compile.ts: the sources of the config become closures, once. Everything that a schema cannot see is found
// here (a path that is none, a capture that the topic does not have, a source that is never reached) and
// reported with its place, all at once.

import type { ConfigProblem } from '../domain/problem.ts'
import { quote } from '../std/quote.ts'
import { compileFields } from './compile-fields.ts'
import type { MappingConfig, SourceConfig } from './config.ts'
import { Malformed } from './cursor.ts'
import { compileDevicePath, compileDeviceTemplate, type DeviceRule } from './device.ts'
import { decodeJson } from './json.ts'
import { compilePath, parsePath } from './path.ts'
import type { CompiledSource } from './source.ts'
import { covers, parseTopic, type TopicPattern } from './topic.ts'
import { compileCondition, type Condition } from './when.ts'

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
  if (config.devices.unknown === 'quarantine')
    report(['devices', 'unknown'], 'must be accept or ignore: quarantine is not available in this version.')
  for (const [index, source] of config.sources.entries()) {
    const path = ['sources', index]
    const before = problems.length
    if (config.sources.findIndex(({ name }) => name === source.name) !== index)
      report([...path, 'name'], `must be unique: ${quote(source.name)} is the name of another source too.`)
    const pattern = compileTopic(source, [...path, 'topic'], earlier, report)
    if (!pattern) continue
    const compiled = compileSource(source, pattern, path, config, report)
    if (problems.length === before && compiled) sources.push(compiled)
  }
  return { sources, problems }
}

function compileTopic(
  { name, topic }: SourceConfig,
  path: Keys,
  earlier: { name: string; pattern: TopicPattern }[],
  report: Report,
): TopicPattern | undefined {
  const pattern = attempting(report)(path, () => parseTopic(topic))
  if (!pattern) return undefined
  const above = earlier.find((other) => covers(other.pattern, pattern))
  if (above)
    report(path, `is never reached: the source ${quote(above.name)} above takes every topic that it matches.`)
  earlier.push({ name, pattern })
  return pattern
}

function compileSource(
  source: SourceConfig,
  pattern: TopicPattern,
  path: Keys,
  config: MappingConfig,
  report: Report,
): CompiledSource | undefined {
  const compile = attempting(report)
  const each =
    source.each === undefined
      ? null
      : compile([...path, 'each'], () => compilePath(parsePath(source.each ?? '')))
  const when = compileWhen(source.when, pattern.captures, [...path, 'when'], compile)
  const device = compile([...path, 'device'], () => compileDevice(source.device, pattern.captures))
  const fields = compileFields(source, [...path, 'map'], compile, report)
  if (!device || !fields || each === undefined || when === undefined) return undefined
  const { unknown, identify } = config.devices
  return {
    name: source.name,
    pattern,
    retained: source.retained,
    decode: decodeJson,
    each,
    when,
    device,
    ...fields,
    registry: {
      defaults: { ...config.defaults, ...source.defaults },
      unknown: unknown === 'ignore' ? 'ignore' : 'accept',
      identify,
    },
  }
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
  if (typeof rule === 'object') return compileDevicePath(rule.path)
  if (rule !== undefined) return compileDeviceTemplate(rule, captures)
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
