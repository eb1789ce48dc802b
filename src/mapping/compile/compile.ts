// compile.ts: compiles the sources of the config to closures, once. It finds the problems that a schema
// cannot express (a malformed path, a capture that the topic does not have, a source that is never reached)
// and reports all of them at once, with their position.
//
//   compile.ts          a source as a whole: records, conditions, device
//   compile-topics.ts   its topics beside those of the sources above
//   compile-fields.ts   `map`: time, position, extra fields        compile-signals.ts   `map.signals`
//   compile-state.ts    coalesce, thin, merge; `privacy`           compile-scope.ts     places and problems
//
// Nothing is compiled by halves: a source with a problem is left out of the result.

import { limitsOf } from '../body/body-limits.ts'
import type { ConfigProblem } from '../../std/config-problem.ts'
import { plural } from '../../std/quantity.ts'
import { quote } from '../../std/quote.ts'
import type { MappingConfig, SourceConfig } from '../config.ts'
import {
  compileDeviceRead,
  compileDeviceTemplate,
  firstDeviceRule,
  type DeviceRule,
} from '../devices/device-rule.ts'
import { compileFindDamage } from '../body/damaged-text.ts'
import { encodingOf } from '../encodings/encodings.ts'
import { SourceNotes, withNotes } from '../fields/field-notes.ts'
import { compileReading } from '../fields/fields.ts'
import { createFieldBits } from '../lost-fields/watched-fields.ts'
import type { SourcePlan } from './source-plan.ts'
import { readsOfSource, type SourceReads } from '../path/unread-keys.ts'
import { compileConditionParts } from '../expression/condition-parts.ts'
import { compileCondition, compileExpression, type Condition } from '../expression/expression.ts'
import { compilePaths, parsePath, type Path, type Read } from '../path/path.ts'
import { readsPacketProperties } from '../path/packet-properties.ts'
import { isNone } from '../path/value.ts'
import { pathsReadBy } from '../path/paths-used.ts'
import { compileEach, type Each } from '../path/record-selection.ts'
import { Malformed } from '../path/text-cursor.ts'
import { parseTopic, type TopicPattern } from '../path/topic-pattern.ts'
import { emptyBounds, withPlausibility } from '../plausibility/plausibility.ts'
import type { Encoding } from '../types.ts'
import type { Withhold } from '../privacy/privacy.ts'
import { compileFields } from './compile-fields.ts'
import { compilePrevious } from './compile-previous.ts'
import { createScope, type Keys, type Scope } from './compile-scope.ts'
import { checkOrigins, compileAllSignals, compileFamilies } from './compile-signals.ts'
import { compileSourceTopics, takesSome, type EarlierTopic } from './compile-topics.ts'
import { compileMemory, compileProfiles } from './compile-state.ts'
import { checkGroups, checkUselessOptions } from './useless-options.ts'
import { compileExtract, compileExtractor, type Extract } from '../extract/extract.ts'
import { compileKeys, type KeysFor } from '../extract/secretbox.ts'

type CompiledSources = {
  /** Those without a problem; all of them where `problems` is empty. */
  sources: readonly SourcePlan[]
  problems: readonly ConfigProblem[]
}

/** `isExplained`: the fields note what they read. */
export function compileSources(config: MappingConfig, isExplained = false): CompiledSources {
  const problems: ConfigProblem[] = []
  const sources: SourcePlan[] = []
  const earlier: EarlierTopic[] = []
  const encodings = new Map<string, Encoding>()
  reportEmptyBounds(config, problems)
  const profiles = compileProfiles(
    config.privacy,
    config.sources,
    createScope(problems, ['privacy', 'profiles']),
  )
  checkGroups(config.sources, createScope(problems, ['sources']))
  for (const [index, source] of withPlausibility(config).entries()) {
    const path = ['sources', index]
    const before = problems.length
    const own = createScope(problems, path)
    if (config.sources.findIndex(({ name }) => name === source.name) !== index)
      own.report(['name'], `must be unique: ${quote(source.name)} is the name of another source too.`)
    const patterns = compileSourceTopics(source, earlier, own)
    if (!patterns) continue
    const captures = [...new Set(patterns.flatMap((pattern) => pattern.captures))]
    const scope = createScope(problems, path, captures)
    const compiled = compileSource(source, patterns, { config, profiles, encodings, isExplained }, scope)
    if (problems.length === before && compiled) sources.push(compiled)
  }
  return { sources, problems }
}

/** Reports each rule of `plausibility` once, where it is written. */
function reportEmptyBounds(config: MappingConfig, problems: ConfigProblem[]): void {
  const general = emptyBounds(config.plausibility)
  const places = withPlausibility(config).flatMap(({ plausibility }, index) =>
    emptyBounds(plausibility)
      .filter((quantity) => config.sources[index]?.plausibility[quantity] !== undefined)
      .map((quantity) => ['sources', index, 'plausibility', quantity]),
  )
  for (const path of [...general.map((quantity) => ['plausibility', quantity]), ...places])
    problems.push({ path, message: 'must have `min` less than or equal to `max`.' })
}

type Shared = {
  config: MappingConfig
  profiles: ReadonlyMap<string, Withhold>
  /** Sources with equal options share an encoding, so that they decode a message once. */
  encodings: Map<string, Encoding>
  isExplained: boolean
}

function compileSource(
  source: SourceConfig,
  patterns: readonly TopicPattern[],
  { config, profiles, encodings, isExplained }: Shared,
  scope: Scope,
): SourcePlan | undefined {
  const { captures, compile } = scope
  const exclude = source.exclude
    .map((text, index) => compile(['exclude', index], () => parseTopic(text)))
    .filter((pattern) => pattern !== undefined)
  const each = compile(['each'], () => compileEachOf(source))
  const when = compileWhen(source.when, scope)
  const refuse = source.refuse.map(({ when: text, reason, detail }, index) => {
    const holds = compile(['refuse', index, 'when'], () => compileCondition(text, captures))
    return holds && { holds, reason, detail }
  })
  const sound = refuse.filter((rule) => rule !== undefined)
  checkLevels(source, scope)
  checkIdentity(source, patterns, scope)
  checkOrigins(source, scope)
  checkUselessOptions(source, { patterns, exclude }, scope)
  const notes = isExplained ? new SourceNotes() : null
  const noted = notes === null ? source : notedSource(source, notes)
  const device = compile(['device'], () => compileDevice(noted.device, captures))
  const extract = compileExtracts(source, device?.rule, scope)
  const provider = compile(['provider'], () => compileProvider(source.provider, captures))
  const bits = createFieldBits()
  const fields = compileFields(noted, scope, bits)
  const signals = compileAllSignals(noted, scope.at('map', 'signals'), bits)
  const memory = compileMemory(source, scope)
  for (const [index, text] of source.unused.entries()) compile(['unused', index], () => parsePath(text))
  if (!device || !fields || !signals || !memory) return undefined
  const { later, ...writers } = signals
  const { laterFields, ...parts } = fields
  const previous = compilePrevious(source, { ...later, fields: laterFields }, scope)
  if (each === undefined || when === undefined || extract === undefined || provider === undefined)
    return undefined
  for (const text of [source.when, source.fix?.valid])
    if (text !== undefined) notes?.conditions.set(text, compileConditionParts(text, captures))
  const { unknown, identify } = config.devices
  let made: SourceReads | undefined
  const reads = () => (made ??= readsOfSource(source))
  const defaults = { ...config.defaults, ...source.defaults }
  return {
    name: source.name,
    patterns,
    captures,
    exclude,
    from: source.from === undefined ? null : new Set(source.from),
    identity: source.identity === undefined ? null : captures.indexOf(source.identity),
    retained: source.retained,
    wills: source.wills ?? (source.encoding === 'sparkplug' ? 'take' : 'ignore'),
    encoding: sharedEncoding(source, encodings),
    findDamage: compileFindDamage(source),
    extract,
    each,
    refuse: sound,
    when,
    takes: takesOf(source, when, sound),
    readsProperties: readsPacketProperties(source),
    device: device.rule,
    deviceRules: device.all,
    provider,
    ...parts,
    ...writers,
    ...memory,
    previous,
    recordsMax: source.max_records,
    emptyIsNormal: source.fix !== undefined || memory.coalesce !== null,
    withoutModel: source.warn_without_model ?? null,
    deviceOptions: {
      defaults: source.model === undefined ? defaults : { ...defaults, model: source.model },
      unknown,
      identify,
      familyOf: compileFamilies(source.families),
      profiles,
    },
    hasFamilies: Object.keys(source.families).length > 0,
    reads,
    notes,
    watched: bits.watched(source, reads),
  }
}

function notedSource(source: SourceConfig, notes: SourceNotes): SourceConfig {
  const { device, map } = source
  const rules = device && [device].flat()
  return { ...source, map: withNotes(map, notes), device: withNotes(rules, notes, 'device') }
}

function sharedEncoding(source: SourceConfig, encodings: Shared['encodings']): Encoding {
  const { encoding, compression, charset, max_unpacked_bytes: bytesMax, max_records: recordsMax } = source
  const options = { compression, charset, limits: limitsOf(bytesMax, recordsMax) }
  const key = JSON.stringify([encoding, options])
  const made = encodings.get(key) ?? encodingOf(encoding, options)
  encodings.set(key, made)
  return made
}

function compileEachOf({ each }: SourceConfig): Each | null {
  if (each === undefined) return null
  const steps = stepsOf(each)
  const givesEntries = steps.findIndex((step) => JSON.stringify(step).includes('entries('))
  return compileEach(
    steps.map((step, index) => ({
      read: compileEachStep(step),
      isOfEntry: givesEntries !== -1 && index > givesEntries,
    })),
  )
}

function compileEachStep(step: ReturnType<typeof stepsOf>[number]): Read {
  if (typeof step === 'string') return compilePaths(step)
  return 'path' in step ? compilePaths(step.path) : foundBy(compileExpression(step.expr, []))
}

/** What has no result is no record. */
function foundBy(read: Read): Read {
  return (place) => {
    const found = read(place)
    return isNone(found) ? undefined : found
  }
}

/** A pattern without the capture would leave its topics to nobody. */
function checkIdentity(
  { identity }: SourceConfig,
  patterns: readonly TopicPattern[],
  { report }: Scope,
): void {
  if (identity === undefined || patterns.every(({ captures }) => captures.includes(identity))) return
  report(['identity'], `must be a capture of each topic of the source, found ${quote(identity, 64)}.`)
}

/** Reports a `$up` beyond the levels of `each`, which would find nothing. */
function checkLevels({ each, extract, ...options }: SourceConfig, { report }: Scope): void {
  const steps = stepsOf(each)
  const check = (read: Path, most: number, at: Keys) => {
    if (read.levels <= most) return
    const found =
      most === 0 ? 'there is no record around it' : `there ${most === 1 ? 'is' : 'are'} only ${most}`
    report(at, `goes ${plural(read.levels, 'level')} out with $up, but ${found}.`)
  }
  for (const [index, step] of steps.entries())
    for (const { path: read } of pathsReadBy(typeof step === 'string' ? { path: step } : step))
      check(read, index, ['each'])
  const levels = steps.length > 1 ? steps.length : 0
  for (const { path: read, at } of pathsReadBy(options)) check(read, levels, at)
  for (const [index, { from, when }] of extract.entries())
    for (const { path: read } of pathsReadBy({ path: from, when })) check(read, 0, ['extract', index])
}

function stepsOf(each: SourceConfig['each']) {
  if (each === undefined) return []
  return Array.isArray(each) ? each : [each]
}

function compileProvider(text: string | undefined, captures: readonly string[]): SourcePlan['provider'] {
  if (text === undefined) return null
  const rule = compileDeviceTemplate(text, captures)
  if (rule.kind !== 'topic') throw new Malformed('must be a name or a template over captures of the topic')
  return rule.name
}

function compileWhen(
  text: string | undefined,
  { captures, compile }: Scope,
): { holds: Condition; reason: string } | null | undefined {
  if (text === undefined) return null
  const holds = compile(['when'], () => compileCondition(text, captures))
  return holds && { holds, reason: `when: ${text}` }
}

/**
 * Null for a source that takes all messages of its topics: one without `when`, and one that evaluates it
 * later, for collected values or the result of an expression.
 */
function takesOf(
  source: SourceConfig,
  when: SourcePlan['when'],
  refuse: SourcePlan['refuse'],
): SourcePlan['takes'] {
  if (when === null || !takesSome(source)) return null
  const conditions = [...refuse.map(({ holds }) => holds), when.holds]
  return (place) => conditions.some((holds) => holds(place))
}

function compileDevice(
  device: SourceConfig['device'],
  captures: readonly string[],
): { rule: DeviceRule; all: readonly DeviceRule[] } {
  if (device === undefined && !captures.includes('device'))
    throw new Malformed(
      'is required, since the topic has no {device}. Use a name such as "{clientid}" or { path: imei }',
    )
  const all = [device ?? '{device}']
    .flat()
    .map((rule) =>
      typeof rule === 'string'
        ? compileDeviceTemplate(rule, captures)
        : compileDeviceRead(compileReading(rule, captures)),
    )
  return { rule: firstDeviceRule(all), all }
}

// `extract` of a source, with the keys that it opens boxes with.

/**
 * Null where there is none; undefined where a problem was reported. `device`: undefined where its rule has
 * one.
 */
function compileExtracts(
  source: SourceConfig,
  device: DeviceRule | undefined,
  scope: Scope,
): Extract | null | undefined {
  const { extract: entries } = source
  const keysFor = keysOf(source, device, scope)
  if (entries.length === 0) return null
  const extractors = entries.map((entry, index) =>
    scope.compile(['extract', index], () => compileExtractor(entry, scope.captures, keysFor)),
  )
  const sound = extractors.filter((extractor) => extractor !== undefined)
  return sound.length < extractors.length ? undefined : compileExtract(sound)
}

/** Without keys nothing is opened; the same where a problem was reported. */
function keysOf(
  { keys, extract }: SourceConfig,
  device: DeviceRule | undefined,
  { compile, report }: Scope,
): KeysFor {
  const none: KeysFor = () => []
  if (keys === undefined) return none
  if (!extract.some(({ as }) => as === 'secretbox'))
    report(['keys'], 'opens nothing: the source has no entry of `extract` with `as: secretbox`.')
  return compile(['keys'], () => compileKeys(keys, device)) ?? none
}
