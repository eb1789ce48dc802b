// schema-errors.ts: what zod found, as sentences for the person who wrote the config: the option, the rule, the value
// found, and what was probably meant.

import type { z } from 'zod'
import { quote } from '../std/quote.ts'
import type { ConfigProblem } from '../domain/config-problem.ts'
import { descriptionAt, ruleOf, shapesAt, type Shape } from './schema-shape.ts'
import type { Keys } from './yaml-source.ts'
import { newKeyOf } from './renamed-keys.ts'
import { nearest } from './suggestion.ts'

type Issue = z.core.$ZodIssue

/** A section's own sentence, as against one that zod made up. */
const madeUp = /^(Invalid|Too small|Too big|Unrecognized)/

export type ExplainContext = {
  /** The shape of the whole config. */
  root: Shape
  /** What was written, as plain values. */
  config: unknown
  /** What to say instead of the value at a path: for secrets and for what was put in from elsewhere. */
  hidden: (path: Keys) => string | undefined
}

/** The problems behind one issue. */
export function explain(issue: Issue, context: ExplainContext): ConfigProblem[] {
  const { root, config } = context
  const path = keysOf(issue.path)
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => ({ path: [...path, key], message: unknownOption(key, path, root) }))
  }
  if (issue.code === 'invalid_union' && madeUp.test(issue.message)) {
    const branch = likeliest(issue.errors)
    if (branch)
      return branch.flatMap((inner) => explain({ ...inner, path: [...path, ...inner.path] }, context))
  }
  const value = valueAt(config, path)
  const about = aboutOf(root, path)
  const ownWords = !madeUp.test(issue.message)
  if (value === undefined)
    return [{ path, message: `${ownWords ? ended(issue.message) : 'is required.'}${about}` }]
  // What a section says about a map or a list as a whole is not about the map.
  if (ownWords && typeof value === 'object') return [{ path, message: `${ended(issue.message)}${about}` }]
  const hidden = context.hidden(path)
  const told = ownWords ? issue.message : ruleOf(shapesAt(root, path))
  const help = hidden === undefined ? meant(value, root, path) : ''
  return [{ path, message: `${withFound(told, hidden, shown(value))}${help}${about}` }]
}

function ended(sentence: string): string {
  return sentence.endsWith('.') ? sentence : `${sentence}.`
}

/** How a path is written in a sentence: `sources[0].map.time`. */
export function pathText(keys: Keys): string {
  let text = ''
  for (const key of keys) {
    if (typeof key === 'number') text += `[${key}]`
    else if (/^[\w-]+$/.test(key)) text += text === '' ? key : `.${key}`
    else text += `[${quote(key, 60)}]`
  }
  return text
}

function unknownOption(key: string, path: Keys, root: Shape): string {
  const known = [...new Set(shapesAt(root, path).flatMap(({ properties }) => Object.keys(properties ?? {})))]
  const newKey = newKeyOf([...path, key])
  if (newKey !== undefined && known.includes(newKey))
    return `option ${quote(key, 60)} was renamed: use "${newKey}".`
  const near = nearest(key, known)
  const place = path.length === 0 ? '' : ` in ${pathText(path)}`
  const help = near ? `Did you mean "${near}"?` : `Known are: ${known.join(', ')}.`
  return `unknown option ${quote(key, 60)}${place}. ${help}`
}

/**
 * Which branch of a union was meant: the one whose problems lie deepest, since what fails at its root is of
 * another kind altogether; among those the one with the fewest.
 */
function likeliest(branches: readonly (readonly Issue[])[]): readonly Issue[] | undefined {
  let best: readonly Issue[] | undefined
  let rankMax = -Infinity
  for (const issues of branches) {
    const wrongKind = issues.some(({ code, path }) => path.length === 0 && code !== 'unrecognized_keys')
    const rank = wrongKind ? -1000 : 100 - issues.length
    if (rank > rankMax) {
      rankMax = rank
      best = wrongKind ? undefined : issues
    }
  }
  return best
}

/** A sentence that ends with the value found; a section may have put it there itself. */
export function withFound(message: string, hidden: string | undefined, found: string): string {
  if (hidden !== undefined) return `${message.replace(/,? found .*$/s, '')}, found ${hidden}.`
  return ended(/\bfound\b/.test(message) ? message : `${message}, found ${found}`)
}

function meant(value: unknown, root: Shape, path: Keys): string {
  if (typeof value !== 'string') return ''
  const words = shapesAt(root, path).flatMap(
    (shape) => shape.enum ?? (shape.const === undefined ? [] : [shape.const]),
  )
  const near = nearest(value, words.map(String))
  return near === undefined ? '' : ` Did you mean "${near}"?`
}

function aboutOf(root: Shape, path: Keys): string {
  const description = descriptionAt(root, path)
  if (description === undefined) return ''
  const first = /^.*?[.:;](?=\s|$)/s.exec(description)?.[0] ?? description
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

function keysOf(path: readonly PropertyKey[]): (string | number)[] {
  return path.map((key) => (typeof key === 'number' ? key : String(key)))
}
