// sound-part.ts: the part of a config that the schema accepts, so that one check reports what is wrong in all
// parts that do not depend on each other.
//
//   check -> take out what has problems -> check again -> ... until the schema accepts the rest
//
// A problem of a later round counts as well, unless it only follows from what was taken out: an option that
// is missing now, or a rule about an option that is not there any more. An option that must not be missing,
// and whose schema has an example, becomes the example; otherwise what contains it is taken out, too.

import type { z } from 'zod'
import type { ConfigProblem } from '../../std/config-problem.ts'
import { keysOf } from '../schema-errors.ts'
import { shapesAt, type Shape } from '../schema-shape.ts'
import type { Keys } from '../yaml-source.ts'

type Issue = z.core.$ZodIssue

export type SoundPart<Config> = {
  /** All issues, with paths in the whole config. */
  issues: readonly Issue[]
  /** Null where nothing is left, or where the schema accepts it as it is. */
  sound: Sound<Config> | null
}

export type Sound<Config> = {
  config: Config
  /** The input of the schema. */
  written: unknown
  /** Where a path of the sound part is in the whole config. */
  pathOf(keys: Keys): (string | number)[]
  /** Whether a problem of the sound part only follows from what was taken out. Its path is in the whole. */
  follows(problem: ConfigProblem): boolean
}

const roundsMax = 12
const takenOut = Symbol('taken out')

export function soundPartOf<Schema extends z.ZodType>(
  schema: Schema,
  written: unknown,
  { root, issues: first }: { root: Shape; issues: readonly Issue[] },
): SoundPart<z.output<Schema>> {
  /** Of each list, where its entries are in the whole config. */
  const origins = new WeakMap<unknown[], number[]>()
  const part = { root: copied(written, origins) }
  const removed: (string | number)[][] = []
  /** What was taken out for a problem that only followed is beside others that only follow. */
  const derived: Keys[] = []
  const examples = new Set<string>()
  const issues: Issue[] = [...first]
  let found = first
  for (let round = 0; round < roundsMax; round += 1) {
    for (const issue of found) {
      const own = keysOf(issue.path)
      const whole = pathOf(own)
      const example = removed.some((path) => isSame(path, whole)) ? exampleAt(root, whole, examples) : null
      if (example !== null) {
        put(part.root, own, example)
        continue
      }
      const isDerived = follows({ path: whole, message: issue.message })
      for (const keys of targetsOf(issue, part.root)) {
        if (keys.length === 0) return { issues, sound: null }
        removed.push(pathOf(keys))
        if (isDerived) derived.push(pathOf(keys).slice(0, -1))
        put(part.root, keys, takenOut)
      }
    }
    part.root = compacted(part.root, origins)
    const parsed = schema.safeParse(part.root)
    if (parsed.success) return { issues, sound: { config: parsed.data, written: part.root, pathOf, follows } }
    found = parsed.error.issues
    for (const issue of found) {
      const path = pathOf(keysOf(issue.path))
      if (!follows({ path, message: issue.message })) issues.push({ ...issue, path })
    }
  }
  return { issues, sound: null }

  function pathOf(keys: Keys): (string | number)[] {
    let value: unknown = part.root
    return keys.map((key) => {
      const whole = Array.isArray(value) ? (origins.get(value)?.[Number(key)] ?? key) : key
      value = below(value, key)
      return whole
    })
  }

  function follows({ path, message }: ConfigProblem): boolean {
    if (derived.some((keys) => isPrefix(keys, path))) return true
    return removed.some((gone) => {
      // Below it there are only defaults now.
      if (isPrefix(path, gone) || isPrefix(gone, path)) return true
      // Without an entry a list may be empty, which is a rule about the list.
      const isEntry = typeof gone.at(-1) === 'number'
      const [...parents] = isEntry ? gone.slice(0, -1) : gone
      const last = parents.pop()
      const isNear = isPrefix(parents, path) || isPrefix(path.slice(0, 2), gone)
      return isNear && typeof last === 'string' && mentions(message, last)
    })
  }
}

/** What is to be taken out for one issue: what it is about, or what lacks it. */
function targetsOf(issue: Issue, root: unknown): Keys[] {
  const path = keysOf(issue.path)
  if (issue.code === 'unrecognized_keys') return issue.keys.map((key) => [...path, key])
  let value: unknown = root
  for (const [index, key] of path.entries()) {
    value = below(value, key)
    // Removed already by another issue, or missing.
    if (value === takenOut) return []
    if (value === undefined) return [path.slice(0, Math.max(index, path.length - 1))]
  }
  return [path]
}

/** Sources have none: a stand-in for a topic or a path would have problems of its own. */
function exampleAt(root: Shape, keys: Keys, used: Set<string>): unknown {
  const name = JSON.stringify(keys)
  if (keys[0] === 'sources' || used.has(name)) return null
  used.add(name)
  const shape = shapesAt(root, keys).find(
    ({ type, format, examples }) => type === 'string' && format !== undefined && examples !== undefined,
  )
  return shape?.examples?.[0] ?? null
}

function below(value: unknown, key: string | number): unknown {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return undefined
  return (value as Record<string | number, unknown>)[key]
}

function put(root: unknown, keys: Keys, value: unknown): void {
  let parent = root
  for (const key of keys.slice(0, -1)) parent = below(parent, key)
  const last = keys.at(-1)
  if (typeof parent === 'object' && parent !== null && last !== undefined)
    (parent as Record<string | number, unknown>)[last] = value
}

/** Aliases of one value become values of their own. */
function copied(value: unknown, origins: WeakMap<unknown[], number[]>): unknown {
  if (Array.isArray(value)) {
    const list = value.map((each) => copied(each, origins))
    origins.set(
      list,
      list.map((_, index) => index),
    )
    return list
  }
  if (!isMap(value)) return value
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, copied(each, origins)]))
}

function compacted(value: unknown, origins: WeakMap<unknown[], number[]>): unknown {
  if (Array.isArray(value)) {
    const before = origins.get(value) ?? []
    const kept = value.flatMap((each, index) =>
      each === takenOut ? [] : [{ each, from: before[index] ?? index }],
    )
    const list = kept.map(({ each }) => compacted(each, origins))
    origins.set(
      list,
      kept.map(({ from }) => from),
    )
    return list
  }
  if (!isMap(value)) return value
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, each]) =>
      each === takenOut ? [] : [[key, compacted(each, origins)]],
    ),
  )
}

function isMap(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype
}

function isSame(one: Keys, other: Keys): boolean {
  return one.length === other.length && isPrefix(one, other)
}

function isPrefix(short: Keys, long: Keys): boolean {
  return short.length <= long.length && short.every((key, index) => key === long[index])
}

/** As a word of its own. */
function mentions(message: string, key: string): boolean {
  return message.split(/[^\w-]+/).includes(key)
}
