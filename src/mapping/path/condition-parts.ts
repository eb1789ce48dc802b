// condition-parts.ts: the parts of a condition, each judged alone, to explain why a long condition is false.
//
//   sat > 3 and (fix == 1 or fix == 2) and t != "l"    three parts, all of which must hold
//   a > 0 or b > 0                                     two alternatives, one of which must hold

import { compileCondition } from './condition.ts'
import { compilePath, type Path } from './path.ts'
import { stepsText } from './path-text.ts'
import { pathsReadBy } from './paths-used.ts'
import type { Up } from '../types.ts'

export type FailedPart = {
  text: string
  /** The values that it compares; absent ones without a value. */
  values: readonly { path: string; value?: unknown }[]
}

export type ConditionParts = {
  /** How the parts are joined. */
  joined: 'and' | 'or'
  parts: number
  /** The parts that do not hold. */
  failed: readonly FailedPart[]
}

type Place = { record: unknown; root: unknown; up: Up; captures: readonly string[] }

/** For a condition that compiles. */
export function compileConditionParts(
  text: string,
  captureNames: readonly string[],
): (place: Place) => ConditionParts {
  const { joined, texts } = split(text)
  const parts = texts.map((part) => ({
    text: part,
    holds: compileCondition(part, captureNames),
    paths: pathsReadBy({ when: part }).map(({ path }) => ({ text: pathText(path), read: compilePath(path) })),
  }))
  return ({ record, root, up, captures }) => ({
    joined,
    parts: parts.length,
    failed: parts
      .filter(({ holds }) => !holds(record, root, captures, up))
      .map(({ text: part, paths }) => ({
        text: part,
        values: paths.map((path) => {
          const value = path.read(record, root, up)
          return value === undefined ? { path: path.text } : { path: path.text, value }
        }),
      })),
  })
}

/** `and` binds more tightly than `or`, so the parts of a condition with both are its alternatives. */
function split(text: string): { joined: 'and' | 'or'; texts: string[] } {
  const alternatives = splitAt(text, 'or')
  if (alternatives.length > 1) return { joined: 'or', texts: alternatives }
  return { joined: 'and', texts: splitAt(text, 'and') }
}

/** Splits at a word that is not inside of brackets or quotes. */
function splitAt(text: string, word: 'and' | 'or'): string[] {
  const texts: string[] = []
  let depth = 0
  let start = 0
  let quote = ''
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at] ?? ''
    if (quote !== '') {
      if (character === '\\') at += 1
      else if (character === quote) quote = ''
    } else if (character === '"' || character === "'") quote = character
    else if ('([{'.includes(character)) depth += 1
    else if (')]}'.includes(character)) depth -= 1
    else if (depth === 0 && isWordAt(text, at, word)) {
      texts.push(text.slice(start, at))
      start = at + word.length
      at = start - 1
    }
  }
  return [...texts, text.slice(start)].map((part) => part.replace(/\s+/g, ' ').trim())
}

function isWordAt(text: string, at: number, word: string): boolean {
  if (!text.startsWith(word, at)) return false
  const isEnd = (character: string | undefined) => character === undefined || /[\s()]/.test(character)
  return isEnd(text[at - 1]) && isEnd(text[at + word.length])
}

function pathText({ from, levels, steps }: Path): string {
  const starts = { record: '', root: '$', previous: '$previous', up: Array(levels).fill('$up').join('.') }
  return stepsText(starts[from], steps)
}
