// text-functions.ts: the functions of expressions about texts. Each charges the characters that it reads and
// makes to the budget of the evaluation.

import { RE2JS, RE2JSException } from 're2js'
import { NoResult } from '../../path/no-result.ts'
import { Malformed } from '../../path/text-cursor.ts'
import type { FunctionRow } from './function-row.ts'
import { charactersPerStep, limitReached, spend, spendText } from '../step-budget.ts'

/** RE2 needs up to a microsecond for a character. */
const matchedMax = 256

const tooLong = new NoResult(`matches() reads texts of at most ${matchedMax} characters`)
const noText = new NoResult('string() writes numbers, texts, true and false')

export const textFunctions: readonly FunctionRow[] = [
  {
    name: 'string',
    parameters: 'x',
    doc: 'A number, true or false as a text.',
    example: 'string(id)',
    apply: (x) =>
      typeof x === 'string' || typeof x === 'number' || typeof x === 'boolean' ? String(x) : noText,
  },
  {
    name: 'contains',
    parameters: 'text, part',
    doc: 'Whether the text contains another.',
    example: 'name.contains("truck")',
    apply: (text, part) => judged(text, part, (one, other) => one.includes(other)),
  },
  {
    name: 'startsWith',
    parameters: 'text, part',
    doc: 'Whether the text starts with another.',
    example: 'topic.kind.startsWith("gps_")',
    apply: (text, part) => judged(text, part, (one, other) => one.startsWith(other)),
  },
  {
    name: 'endsWith',
    parameters: 'text, part',
    doc: 'Whether the text ends with another.',
    example: 'name.endsWith("km")',
    apply: (text, part) => judged(text, part, (one, other) => one.endsWith(other)),
  },
  {
    name: 'matches',
    parameters: 'text, pattern',
    doc: `Whether a part of the text, of at most ${matchedMax} characters, matches a regular expression (RE2), which is a constant.`,
    example: 'vin.matches("^W[A-Z0-9]{16}$")',
    apply: () => undefined,
    prepare: compileMatches,
  },
  {
    name: 'lowerAscii',
    parameters: 'text',
    doc: 'The text with a to z for A to Z.',
    example: 'state.lowerAscii() == "on"',
    apply: (text) => changed(text, (one) => one.replace(/[A-Z]/g, (letter) => letter.toLowerCase())),
  },
  {
    name: 'upperAscii',
    parameters: 'text',
    doc: 'The text with A to Z for a to z.',
    example: 'vin.upperAscii()',
    apply: (text) => changed(text, (one) => one.replace(/[a-z]/g, (letter) => letter.toUpperCase())),
  },
  {
    name: 'trim',
    parameters: 'text',
    doc: 'The text without the blanks around it.',
    example: 'name.trim()',
    apply: (text) => changed(text, (one) => one.trim()),
  },
  {
    name: 'replace',
    parameters: 'text, from, to',
    doc: 'The text with every `from` replaced by `to`. A decimal comma is read with it.',
    example: 'number(odo.replace(",", "."))',
    apply: replaced,
  },
  {
    name: 'split',
    parameters: 'text, separator',
    doc: 'The list of the parts of a text.',
    example: 'latlng.split(",")[0]',
    apply: (text, separator) => {
      if (typeof text !== 'string' || typeof separator !== 'string' || separator === '') return undefined
      if (!spendText(text.length)) return limitReached
      const parts = text.split(separator)
      return spend(parts.length) ? parts : limitReached
    },
  },
  {
    name: 'join',
    parameters: 'list, separator?',
    doc: 'The texts and numbers of a list as one text.',
    example: '[date, time].join(" ")',
    apply: joined,
  },
  {
    name: 'substring',
    parameters: 'text, from, to?',
    doc: 'The characters of a text from a place, counted from 0, to before another.',
    example: 'status.substring(2, 4)',
    apply: (text, from, to = Number.MAX_SAFE_INTEGER) => {
      const isPlaces = typeof from === 'number' && typeof to === 'number' && from >= 0 && to >= from
      return isPlaces ? changed(text, (one) => one.slice(from, to)) : undefined
    },
  },
]

function judged(text: unknown, part: unknown, judge: (text: string, part: string) => boolean): unknown {
  if (typeof text !== 'string' || typeof part !== 'string') return undefined
  return spendText(text.length + part.length) ? judge(text, part) : limitReached
}

function changed(text: unknown, change: (text: string) => string): unknown {
  if (typeof text !== 'string') return undefined
  return spendText(text.length) ? change(text) : limitReached
}

function replaced(text: unknown, from: unknown, to: unknown): unknown {
  if (typeof text !== 'string' || typeof from !== 'string' || typeof to !== 'string' || from === '')
    return undefined
  if (!spendText(text.length)) return limitReached
  // The result is known to be within the budget before it is made.
  let places = 0
  for (let at = text.indexOf(from); at !== -1; at = text.indexOf(from, at + from.length)) places += 1
  if (places === 0) return text
  return spendText(places * (to.length + charactersPerStep)) ? text.split(from).join(to) : limitReached
}

function joined(list: unknown, separator: unknown = ''): unknown {
  if (!Array.isArray(list) || typeof separator !== 'string') return undefined
  if (!spend(list.length)) return limitReached
  let characters = 0
  for (const part of list as unknown[]) {
    if (typeof part !== 'string' && typeof part !== 'number') return undefined
    characters += String(part).length + separator.length
    if (characters > 1_000_000) break
  }
  return spendText(characters) ? list.join(separator) : limitReached
}

/** The engine needs a time that is linear in the text, whatever the pattern. */
function compileMatches([, pattern]: readonly unknown[]): FunctionRow['apply'] {
  if (typeof pattern !== 'string') throw new Malformed('has matches() without a constant text as its pattern')
  const compiled = compiledPattern(pattern)
  return (text) => {
    if (typeof text !== 'string') return undefined
    if (text.length > matchedMax) return tooLong
    return spend(text.length * 8) ? compiled.matcher(text).find() : limitReached
  }
}

function compiledPattern(pattern: string): RE2JS {
  try {
    return RE2JS.compile(pattern)
  } catch (error) {
    if (!(error instanceof RE2JSException)) throw error
    throw new Malformed(`has a pattern that is no regular expression of RE2: ${error.message}`)
  }
}
