// paths-used.ts: all paths that options of a source read, with their places: every `path`, every expression
// and every condition (`when`, `valid`). They are searched in the config itself, so that new options are
// covered as well.

import type { ConfigProblem } from '../../std/config-problem.ts'
import { readsOf, type ReadStep } from '../expression/reads.ts'
import { parseExpression } from '../expression/syntax.ts'
import { Malformed } from './text-cursor.ts'
import { parsePath, type Path } from './path.ts'

type Keys = ConfigProblem['path']

/** `below`, `isWhole`: as in expression/reads.ts. */
export type PathRead = { path: Path; below: readonly ReadStep[]; isWhole: boolean; at: Keys }

const pathKeys: ReadonlySet<string> = new Set(['path', 'age'])
const conditionKeys: ReadonlySet<string> = new Set(['when', 'valid'])

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
      const own = texts
        .flatMap((text) => pathIn(text))
        .map((path) => ({ path, below: [], isWhole: true, at: place }))
      return [...own, ...entries.flatMap((entry) => pathsReadBy(entry, place))]
    }
    const isCondition = conditionKeys.has(key)
    if (texts.length > 0 && (isCondition || key === 'expr'))
      return texts.flatMap((text) => readsIn(text, !isCondition)).map((read) => ({ ...read, at: place }))
    return pathsReadBy(option, place)
  })
}

type PlacedText = { text: string; at: Keys }

/** All conditions and expressions in `options`, with their places. */
export function expressionsIn(options: unknown): PlacedText[] {
  return textsIn(options, [], (key) => conditionKeys.has(key) || key === 'expr')
}

/** All paths as they are written, with their places. */
export function pathTextsIn(options: unknown): PlacedText[] {
  return textsIn(options, [], (key) => pathKeys.has(key) || key === 'each' || key === 'from')
}

/** An entry of a list is one of the option of the list. */
function textsIn(options: unknown, at: Keys, isWanted: (key: string) => boolean): PlacedText[] {
  if (typeof options !== 'object' || options === null) return []
  return Object.entries(options).flatMap(([key, option]: [string, unknown]) => {
    const isEntry = Array.isArray(options)
    const place = [...at, isEntry ? Number(key) : key]
    if (typeof option !== 'string') return textsIn(option, place, isWanted)
    return isWanted(isEntry ? String(at.at(-1)) : key) ? [{ text: option, at: place }] : []
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

/** What an expression reads; an empty list where it is malformed. */
function readsIn(text: string, isWhole: boolean): Omit<PathRead, 'at'>[] {
  const reads: Omit<PathRead, 'at'>[] = []
  attempt(() => reads.push(...readsOf(parseExpression(text), null, isWhole)))
  return reads
}

function attempt(read: () => void): void {
  try {
    read()
  } catch (error) {
    if (!(error instanceof Malformed)) throw error
  }
}
