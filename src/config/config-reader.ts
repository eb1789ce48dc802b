// config-reader.ts: checks the text of a config file against a schema. Gives the config, or all problems with
// their line and column.
//
//   text -> tree (yaml-source.ts) -> substitution (substitute.ts) -> plain values
//        -> presets (preset-files.ts) -> schema -> checks of the sections
//
// Problems of one step do not hide those of the next, except where the next step could only guess: a file
// with broken syntax is not validated. The sections' own checks run on the part that the schema accepts. No
// message shows a secret, or a value that came from the environment or a file.

import { isDeepStrictEqual } from 'node:util'
import { isCollection, type Node } from 'yaml'
import type { z } from 'zod'
import { visible } from '../std/quote.ts'
import { shownUrl, withoutLogins } from '../std/shown-url.ts'
import type { ConfigProblem } from '../std/config-problem.ts'
import { pathText, problemsOf, withFound } from './schema-errors.ts'
import { shapeOf, shapesAt, shapesBelow, type Shape } from './schema-shape.ts'
import {
  parseYamlSource,
  type Keys,
  type Position,
  type YamlProblem,
  type YamlSource,
} from './yaml-source.ts'
import { soundPartOf, type Sound, type SoundPart } from './sound-part/sound-part.ts'
import { substitute, type FileNodes, type SubstituteDeps, type Substitutions } from './substitute.ts'

/** A problem as it is shown: with its position, and with the option in the sentence. */
export type LocatedProblem = Position & { path: string; message: string }

export type ReadResult<Config> =
  /** `written` is the input of the schema: plain values, without defaults. */
  | ({ kind: 'config' } & ReadConfig<Config>)
  /** `sound`: the part that the schema accepts; null where there is none. */
  | { kind: 'problems'; problems: readonly LocatedProblem[]; sound: ReadConfig<Config> | null }

export type ReadConfig<Config> = {
  config: Config
  written: unknown
  positionOf: YamlSource['positionOf']
  /** Whether the value there could not be substituted, which is a problem already. */
  failedAt(keys: Keys): boolean
  /** Where an option of `config` is in the file: of a sound part, others may be before it in a list. */
  pathOf(keys: Keys): (string | number)[]
}

/** The plain values of the file, with those of other files merged in. */
export type Expansion = {
  written: unknown
  problems: readonly ConfigProblem[]
  /** Moves a problem of `written` to its place in the file; null where it only follows from `problems`. */
  relocate(problem: ConfigProblem): ConfigProblem | null
}

export type ReadOptions = {
  /** Merges in other files before the schema check. Called again when a value got another type. */
  expand?: (written: unknown) => Promise<Expansion>
  /** Finds problems that a schema cannot express, also where other options have problems. */
  check?: (written: unknown) => readonly ConfigProblem[]
  /** The same, for what the schema accepts: the whole, or its sound part. */
  checkSound?: (written: unknown) => readonly ConfigProblem[]
  /** Only these sections, and options such as `ops.listen`, are read; the others are ignored. */
  sections?: readonly string[]
}

export async function readText<Schema extends z.ZodType>(
  text: string,
  schema: Schema,
  deps: SubstituteDeps,
  { expand = unexpanded, check = () => [], checkSound = () => [], sections }: ReadOptions = {},
): Promise<ReadResult<z.output<Schema>>> {
  const source = parseYamlSource(text)
  if (sections) source.keepOnly(sections)
  const problems = source.problems.map(unnamed)
  if (!source.sound) return { kind: 'problems', problems: inOrder(problems), sound: null }
  const substitutions = await substitute(source, deps, fileNodesOf(source, shapeOf(schema)))
  problems.push(...substitutions.problems.map(unnamed))
  let written: unknown
  try {
    written = source.plain()
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    return {
      kind: 'problems',
      problems: [...problems, { line: 1, column: 1, path: '', message: error.message }],
      sound: null,
    }
  }
  const result = await validate(schema, source, substitutions, { written: written ?? {}, expand })
  const place = placer(source, substitutions, result.secrets)
  const { sound } = result
  const ofSound = sound === null ? [] : checkSound(sound.written)
  const ownChecks = [
    ...check(result.expansion.written),
    ...ofSound
      .map((problem) => ({ ...problem, path: sound?.pathOf(problem.path) ?? problem.path }))
      .filter((problem) => sound?.follows(problem) !== true),
  ].map((problem) => hideFound(problem, source, substitutions))
  const failedAt = (keys: Keys) => substitutions.failedAt(source.nodeAt(keys))
  const isNews = ({ path }: ConfigProblem) => !failedAt(path)
  const news = [...result.problems, ...ownChecks]
    .filter(isNews)
    .map((problem) => result.expansion.relocate(problem))
    .filter((problem) => problem !== null)
  problems.push(...[...result.expansion.problems.filter(isNews), ...news].map(place))
  const { positionOf } = source
  const read = sound === null ? null : { ...sound, positionOf, failedAt }
  if (problems.length > 0 || read === null)
    return { kind: 'problems', problems: inOrder(problems), sound: read }
  return { kind: 'config', ...read }
}

/** A problem of the text itself, which is of no option. */
function unnamed({ message, ...position }: YamlProblem): LocatedProblem {
  return { ...position, path: '', message: withoutLogins(message) }
}

/** The values of options that name a file. */
function fileNodesOf(source: YamlSource, root: Shape): FileNodes {
  const nodes = { pem: new Set<Node>(), path: new Set<Node>() }
  const below = (shapes: readonly Shape[], key: string | number) => {
    const found = shapesBelow(root, shapes, key)
    return found.length === 0 ? null : found
  }
  source.walk(shapesAt(root, []), below, (node, shapes) => {
    if (shapes.some(({ format }) => format === 'pem' || format === 'pem-key')) nodes.pem.add(node)
    else if (shapes.some(({ format }) => format === 'path')) nodes.path.add(node)
  })
  return nodes
}

function unexpanded(written: unknown): Promise<Expansion> {
  return Promise.resolve({ written, problems: [], relocate: (problem) => problem })
}

type Validation<Config> = {
  expansion: Expansion
  problems: readonly ConfigProblem[]
  /** Secrets that are written in the file itself: they are refused, and no message repeats them. */
  secrets: readonly string[]
  /** The whole config where it has no problem. */
  sound: Sound<Config> | null
}

async function validate<Schema extends z.ZodType>(
  schema: Schema,
  source: YamlSource,
  substitutions: Substitutions,
  { written: plain, expand }: { written: unknown; expand: NonNullable<ReadOptions['expand']> },
): Promise<Validation<z.output<Schema>>> {
  const root = shapeOf(schema)
  let expansion = await expand(plain)
  let parsed = schema.safeParse(expansion.written)
  if (!parsed.success && retype(parsed.error.issues, source, substitutions)) {
    expansion = await expand(source.plain() ?? {})
    parsed = schema.safeParse(expansion.written)
  }
  const { written } = expansion
  const literals = literalSecrets(written, root, source, substitutions)
  const hidden = (path: Keys, value: unknown) => hiddenAt({ path, value }, root, source, substitutions)
  const context = { root, config: written, hidden }
  const part: SoundPart<z.output<Schema>> = parsed.success
    ? {
        issues: [],
        sound: { config: parsed.data, written, pathOf: (keys) => [...keys], follows: () => false },
      }
    : soundPartOf(schema, written, { root, issues: parsed.error.issues })
  const isLiteral = ({ path }: ConfigProblem) =>
    literals.some((literal) => isDeepStrictEqual(literal.path, path))
  // That a secret is not what it should be only follows from where it is written.
  const problems = part.issues
    .flatMap((issue) => problemsOf(issue, context))
    .filter((problem) => !isLiteral(problem))
  problems.push(...literals.map(({ path, value }) => ({ path, message: literalText(path, value, root) })))
  return { expansion, problems, secrets: literals.map(({ value }) => value), sound: part.sound }
}

/**
 * A substituted value is text. It becomes a number or a boolean only where the schema requires one. Elsewhere
 * `0123` and `true` stay text, as a password must.
 */
function retype(
  issues: readonly z.core.$ZodIssue[],
  source: YamlSource,
  substitutions: Substitutions,
): boolean {
  let changed = false
  for (const issue of issues) {
    if (issue.code !== 'invalid_type') continue
    const node = source.nodeAt(issue.path.map((key) => (typeof key === 'number' ? key : String(key))))
    if (!node || !substitutions.of(node) || !('value' in node) || typeof node.value !== 'string') continue
    const text = node.value.trim()
    if (['number', 'int'].includes(issue.expected) && /^-?\d+(\.\d+)?$/.test(text)) node.value = Number(text)
    else if (issue.expected === 'boolean' && /^(true|false)$/.test(text)) node.value = text === 'true'
    else continue
    changed = true
  }
  return changed
}

function hiddenAt(
  { path, value }: { path: Keys; value: unknown },
  root: Shape,
  source: YamlSource,
  substitutions: Substitutions,
): string | undefined {
  const substituted = substitutions.of(source.nodeAt(path))
  if (substituted) return `*** (${substituted.written})`
  if (typeof value === 'string' && isUrl(root, path)) return shownUrl(value)
  // An empty list or map is no secret.
  return isSecret(root, path) && !isCollection(source.nodeAt(path)) ? '***' : undefined
}

/** A text in the place of a map or list with a secret is most likely that secret. */
function hasSecret(shape: Shape): boolean {
  const isOne = (one: Shape | undefined) => one?.format === 'secret' || one?.format === 'pem-key'
  return isOne(shape) || isOne(shape.items) || Object.values(shape.properties ?? {}).some(isOne)
}

function isSecret(root: Shape, path: Keys): boolean {
  return shapesAt(root, path).some(hasSecret)
}

/** The value may have a password, also where it is no valid URL. */
function isUrl(root: Shape, path: Keys): boolean {
  return shapesAt(root, path).some(({ format = '' }) => /^(uri|url|host:port)$/.test(format))
}

function literalSecrets(
  written: unknown,
  root: Shape,
  source: YamlSource,
  substitutions: Substitutions,
): { path: (string | number)[]; value: string }[] {
  const found: { path: (string | number)[]; value: string }[] = []
  walk(written, [])
  return found

  function walk(value: unknown, path: (string | number)[]): void {
    if (Array.isArray(value)) {
      for (const [index, member] of value.entries()) walk(member, [...path, index])
    } else if (typeof value === 'object' && value !== null) {
      for (const [key, member] of Object.entries(value)) walk(member, [...path, key])
    } else if ((typeof value === 'string' || typeof value === 'number') && isSecret(root, path)) {
      if (!substitutions.of(source.nodeAt(path))) found.push({ path, value: String(value) })
    }
  }
}

/** The value itself is not shown. A path, too, may be a password that looks like one. */
function literalText(path: Keys, value: string, root: Shape): string {
  const isKey = shapesAt(root, path).some(({ format }) => format === 'pem-key')
  const from = isKey
    ? 'the path of a PEM file, "${env:NAME}" or "${file:PATH}"'
    : '"${env:NAME}" or "${file:PATH}"'
  const cure =
    !isKey && /^(\/|\.\.?\/|~\/)/.test(value)
      ? ' For a path write "${file:PATH}": a secret is read from a file only with these words.'
      : ''
  return `must come from ${from}. A secret must not be written in the config itself.${cure}`
}

/** The check of a section does not know that a value was substituted. */
function hideFound(problem: ConfigProblem, source: YamlSource, substitutions: Substitutions): ConfigProblem {
  const substituted = substitutions.of(source.nodeAt(problem.path))
  if (!substituted || !/ found /.test(problem.message)) return problem
  return { ...problem, message: withFound(problem.message, `*** (${substituted.written})`, '') }
}

function placer(source: YamlSource, substitutions: Substitutions, secrets: readonly string[]) {
  return ({ path, message: found }: ConfigProblem): LocatedProblem => {
    let text = substitutions.hide(found)
    for (const secret of secrets) if (secret.length > 0) text = text.replaceAll(secret, '***')
    text = withoutLogins(text)
    const name = /^(unknown )?option ("|a text)/.test(text) ? '' : pathText(path)
    const message = visible(name === '' ? text : `${name} ${text}`)
    return { ...source.positionOf(path), path: pathText(path), message }
  }
}

function inOrder(problems: readonly LocatedProblem[]): LocatedProblem[] {
  return [...problems].sort((a, b) => a.line - b.line || a.column - b.column)
}
