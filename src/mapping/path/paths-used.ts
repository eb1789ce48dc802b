// paths-used.ts: all paths that options of a source read, with their places: every `path`, and every
// condition (`when`, `valid`). They are searched in the config itself, so that new options are covered as
// well.

import type { ConfigProblem } from '../../std/config-problem.ts'
import { Malformed, skipSpaces, take, takeQuoted, type Cursor } from './text-cursor.ts'
import { parsePath, parsePathAt, type Path } from './path.ts'

type Keys = ConfigProblem['path']

export type PathRead = { path: Path; at: Keys }

const pathKeys: ReadonlySet<string> = new Set(['path', 'age', 'plus', 'minus', 'over'])
const conditionKeys: ReadonlySet<string> = new Set(['when', 'valid', 'negative'])

/** A malformed path is skipped; it is reported where it is compiled. */
export function pathsReadBy(options: unknown, at: Keys = []): PathRead[] {
  if (typeof options !== 'object' || options === null) return []
  return Object.entries(options).flatMap(([key, option]: [string, unknown]) => {
    // Its keys are words of messages, where it is no name of a field.
    if (key === 'values' && !(at.at(-1) === 'fields' && at.at(-2) !== 'fields')) return []
    const place = [...at, Array.isArray(options) ? Number(key) : key]
    const entries: unknown[] = Array.isArray(option) ? option : [option]
    const texts = entries.filter((text) => typeof text === 'string')
    if (texts.length > 0 && pathKeys.has(key)) {
      const own = texts.flatMap((text) => pathIn(text)).map((path) => ({ path, at: place }))
      return [...own, ...entries.flatMap((entry) => pathsReadBy(entry, place))]
    }
    if (texts.length > 0 && conditionKeys.has(key))
      return texts.flatMap((text) => pathsInCondition(text)).map((path) => ({ path, at: place }))
    return pathsReadBy(option, place)
  })
}

/** All conditions in `options`, with their places. */
export function conditionsIn(options: unknown, at: Keys = []): { text: string; at: Keys }[] {
  if (typeof options !== 'object' || options === null) return []
  return Object.entries(options).flatMap(([key, option]: [string, unknown]) => {
    const place = [...at, Array.isArray(options) ? Number(key) : key]
    if (typeof option === 'string') return conditionKeys.has(key) ? [{ text: option, at: place }] : []
    return conditionsIn(option, place)
  })
}

/** Whether a path of `options` reads a value of an earlier record. */
export function readsPrevious(options: unknown): boolean {
  return pathsReadBy(options).some(({ path }) => path.from === 'previous')
}

/** The names that paths anywhere in `options` begin with: of collected values, those that the source uses. */
export function namesReadBy(options: unknown): Set<string> {
  const names = new Set<string>()
  for (const { path } of pathsReadBy(options)) {
    const [first] = path.steps
    // For a collected record `$` is the record itself.
    if (path.from !== 'up' && first?.kind === 'key') names.add(first.key)
  }
  // The time of a collected record; a value of that name cannot replace it.
  names.delete('$time')
  return names
}

/** The path as a list, which is empty where it is malformed. */
export function pathIn(text: string): Path[] {
  const paths: Path[] = []
  attempt(() => paths.push(parsePath(text)))
  return paths
}

/** Those before the first malformed part. */
function pathsInCondition(text: string): Path[] {
  const paths: Path[] = []
  attempt(() => takePaths({ text, at: 0 }, paths))
  return paths
}

function attempt(read: () => void): void {
  try {
    read()
  } catch (error) {
    if (!(error instanceof Malformed)) throw error
  }
}

const words = new Set(['and', 'or', 'not', 'in', 'exists', 'true', 'false', 'null'])

/** The paths of a condition: all that is not a text, capture, number, word or sign (condition.ts). */
function takePaths(cursor: Cursor, paths: Path[]): void {
  let inExists = false
  for (;;) {
    skipSpaces(cursor)
    const next = cursor.text[cursor.at]
    if (next === undefined) return
    if (next === '{') {
      const end = cursor.text.indexOf('}', cursor.at)
      cursor.at = end === -1 ? cursor.text.length : end + 1
    } else if ((next === '"' || next === "'") && !inExists) {
      takeQuoted(cursor)
    } else if ('()=!<>,'.includes(next)) {
      cursor.at += 1
    } else if (take(cursor, 'exists(')) {
      skipSpaces(cursor)
      inExists = true
      continue
    } else {
      takeOperand(cursor, paths, inExists)
    }
    inExists = false
  }
}

function takeOperand(cursor: Cursor, paths: Path[], quotedStart: boolean): void {
  const start = cursor.at
  while (!isAtBreak(cursor)) cursor.at += 1
  const word = cursor.text.slice(start, cursor.at)
  if (words.has(word) || (word !== '' && Number.isFinite(Number(word)))) return
  cursor.at = start
  paths.push(parsePathAt(cursor, quotedStart))
}

function isAtBreak({ text, at }: Cursor): boolean {
  return at >= text.length || ' \t()[]{}"\'<>=!,'.includes(text[at] ?? '')
}
