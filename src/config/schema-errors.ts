// schema-errors.ts: turns the issues of zod into sentences for the author of the config: the option, the
// rule, the value found, and what was probably meant.

import type { z } from 'zod'
import { quote } from '../std/quote.ts'
import { lengthOf, mayHoldLogin } from '../std/shown-url.ts'
import { ended, type ConfigProblem } from '../std/config-problem.ts'
import { descriptionAt, ruleOf, shapesAt, type Shape } from './schema-shape.ts'
import type { Keys } from './yaml-source.ts'
import { insteadOfWord } from '../mapping/mapping.ts'
import { insteadOf, newKeyOf } from './renamed-keys.ts'
import { nearest } from '../std/nearest-word.ts'

type Issue = z.core.$ZodIssue

/** The messages of zod itself. Any other message was written in the schema of a section. */
const zodMessage = /^(Invalid|Too small|Too big|Unrecognized)/

export type ExplainContext = {
  /** The shape of the whole config. */
  root: Shape
  /** The config as plain values. */
  config: unknown
  /** What to show instead of the value at a path, for secrets, URLs and substituted values. */
  hidden: (path: Keys, value: unknown) => string | undefined
}

/** The problems that one issue stands for. */
export function problemsOf(issue: Issue, context: ExplainContext): ConfigProblem[] {
  const { root, config } = context
  const path = keysOf(issue.path)
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => ({ path: [...path, key], message: unknownOption(key, path, context) }))
  }
  if (issue.code === 'invalid_union' && zodMessage.test(issue.message)) {
    const branch = likeliest(issue.errors)
    if (branch)
      return branch.flatMap((inner) => problemsOf({ ...inner, path: [...path, ...inner.path] }, context))
  }
  const value = valueAt(config, path)
  const word = insteadOfWord(path, valueAt(config, path.slice(0, -1)))
  if (word !== undefined)
    return [{ path, message: `option ${shownKey(String(path.at(-1)))} of this form is gone: ${word}` }]
  const purpose = purposeOf(root, path)
  const ownWords = !zodMessage.test(issue.message)
  if (value === undefined)
    return [{ path, message: `${ownWords ? ended(issue.message) : 'is required.'}${purpose}` }]
  // The sentence of a section about a map or a list needs no value.
  if (ownWords && typeof value === 'object') return [{ path, message: `${ended(issue.message)}${purpose}` }]
  const hidden = context.hidden(path, value) ?? withoutLogin(value)
  const rule = ownWords ? issue.message : ruleOf(shapesAt(root, path))
  const help = hidden === undefined ? suggestionFor(value, root, path) : ''
  return [{ path, message: `${withFound(rule, hidden, shown(value))}${help}${purpose}` }]
}

function shownKey(key: string): string {
  return mayHoldLogin(key) ? lengthOf(key) : quote(key, 60)
}

/** How a path is written in a sentence: `sources[0].map.time`. */
export function pathText(keys: Keys): string {
  let text = ''
  for (const key of keys) {
    if (typeof key === 'number') text += `[${key}]`
    else if (/^[\w-]+$/.test(key)) text += text === '' ? key : `.${key}`
    else text += `[${shownKey(key)}]`
  }
  return text
}

function unknownOption(key: string, path: Keys, { root, config }: ExplainContext): string {
  const known = [...new Set(shapesAt(root, path).flatMap(({ properties }) => Object.keys(properties ?? {})))]
  const newKey = newKeyOf([...path, key])
  if (newKey !== undefined && known.includes(newKey))
    return `option ${shownKey(key)} was renamed: use "${newKey}".`
  const instead = insteadOf([...path, key]) ?? insteadOfWord([...path, key], valueAt(config, path))
  if (instead !== undefined) return `option ${shownKey(key)} is gone: ${instead}`
  const near = nearest(key, known)
  const place = path.length === 0 ? '' : ` in ${pathText(path)}`
  const help = near ? `Did you mean "${near}"?` : `Known options: ${known.join(', ')}.`
  return `unknown option ${shownKey(key)}${place}. ${help}`
}

/**
 * The branch of a union that was probably meant: of those whose problems are not at the root (a value of
 * another type fails there), the one with the fewest problems.
 */
function likeliest(branches: readonly (readonly Issue[])[]): readonly Issue[] | undefined {
  let best: readonly Issue[] | undefined
  let rankMax = -Infinity
  for (const branch of branches) {
    // A branch that is a union itself stands for the likeliest of its own.
    const issues = branch.flatMap((issue) =>
      issue.code === 'invalid_union' && issue.path.length === 0
        ? (likeliest(issue.errors) ?? [issue])
        : [issue],
    )
    const wrongKind = issues.some(
      (issue) => isOfOtherKind(issue) || (issue.path.length === 0 && issue.code !== 'unrecognized_keys'),
    )
    const rank = wrongKind ? -1000 : 100 - issues.length
    if (rank > rankMax) {
      rankMax = rank
      best = wrongKind ? undefined : issues
    }
  }
  return best
}

/** An option that decides between the branches says that another one is meant (`params.otherKind`). */
function isOfOtherKind(issue: Issue): boolean {
  return issue.code === 'custom' && issue.params?.['otherKind'] === true
}

/** The sentence with the value found at its end. The message of a section may contain it already. */
export function withFound(message: string, hidden: string | undefined, found: string): string {
  if (hidden !== undefined) return `${message.replace(/,? found .*$/s, '')}, found ${hidden}.`
  return ended(/\bfound\b/.test(message) ? message : `${message}, found ${found}`)
}

/** A URL with a password may stand in the place of anything. */
function withoutLogin(value: unknown): string | undefined {
  return typeof value === 'string' && mayHoldLogin(value) ? lengthOf(value) : undefined
}

function suggestionFor(value: unknown, root: Shape, path: Keys): string {
  if (typeof value !== 'string') return ''
  const shapes = shapesAt(root, path)
  const near = nearest(value, shapes.flatMap(wordsOf))
  if (near !== undefined) return ` Did you mean "${near}"?`
  // One entry in the place of a list.
  const items = shapes.flatMap(({ type, items: one }) => (type === 'array' && one ? [one] : []))
  if (items.length === 0) return ''
  const word = nearest(value, items.flatMap(wordsOf))
  const isText = items.some(({ type, enum: words }) => type === 'string' && words === undefined)
  return word === undefined && !isText ? '' : ` Did you mean [${word ?? quote(value, 80)}]?`
}

function wordsOf(shape: Shape): string[] {
  return (shape.enum ?? (shape.const === undefined ? [] : [shape.const])).map(String)
}

/** The first sentence of the description. */
function purposeOf(root: Shape, path: Keys): string {
  const description = descriptionAt(root, path)
  if (description === undefined) return ''
  // What begins with a word of the list says nothing without what follows it.
  const end = /^`[^`]*`[:;]/.test(description) ? /^.*?\.(?=\s|$)/s : /^.*?[.:;](?=\s|$)/s
  const first = end.exec(description)?.[0] ?? description
  return ` ${first.replace(/[:;]$/, '.')}`
}

function shown(value: unknown): string {
  if (value === null) return 'nothing'
  if (Array.isArray(value)) return value.length === 0 ? 'an empty list' : 'a list'
  if (typeof value === 'object') return 'a map'
  return typeof value === 'string' ? quote(value, 80) : `${value as number | boolean | bigint}`
}

function valueAt(config: unknown, path: Keys): unknown {
  let value = config
  for (const key of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return undefined
    value = (value as Record<string | number, unknown>)[key]
  }
  return value
}

export function keysOf(path: readonly PropertyKey[]): (string | number)[] {
  return path.map((key) => (typeof key === 'number' ? key : String(key)))
}
