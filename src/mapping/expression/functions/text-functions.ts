// text-functions.ts: the functions of expressions about texts. Each costs the characters that it reads and
// makes.

import { RE2JS, RE2JSException } from 're2js'
import { NoResult } from '../../path/value.ts'
import { Malformed } from '../../path/text-cursor.ts'
import { checked } from '../number-operators.ts'
import { row, type FunctionRow } from './function-row.ts'
import { stepsMax, stepsOfText } from '../step-budget.ts'
import { entriesOf, isRecord, setOwn } from '../../path/path-eval.ts'

/** RE2 needs up to a microsecond for a character. */
const matchedMax = 256

const tooLong = new NoResult(`matches() reads texts of at most ${matchedMax} characters`)
const noText = new NoResult('string() writes numbers, texts, true and false')

const ofTexts = {
  cost: (...texts: unknown[]) => stepsOfText(texts.reduce<number>((sum, text) => sum + lengthOf(text), 0)),
}

const tests = [
  ['contains', 'contains', 'name.contains("truck")', 'includes'],
  ['startsWith', 'starts with', 'topic.kind.startsWith("gps_")', 'startsWith'],
  ['endsWith', 'ends with', 'name.endsWith("km")', 'endsWith'],
] as const

export const textFunctions: readonly FunctionRow[] = [
  row('string(x)', 'A number, true or false as a text.', 'string(id)', written),
  ...tests.map(([call, verb, example, test]) =>
    row(
      `${call}(text, part)`,
      `Whether the text ${verb} another.`,
      example,
      (text, part) => (typeof text === 'string' && typeof part === 'string' ? text[test](part) : undefined),
      ofTexts,
    ),
  ),
  row(
    'matches(text, pattern)',
    `Whether a part of the text, of at most ${matchedMax} characters, matches a regular expression (RE2), which is a constant.`,
    'vin.matches("^W[A-Z0-9]{16}$")',
    () => undefined,
    { prepare: compileMatches, cost: (text) => 8 * Math.min(lengthOf(text), matchedMax) },
  ),
  row(
    'lowerAscii(text)',
    'The text with a to z for A to Z.',
    'state.lowerAscii() == "on"',
    (text) => changed(text, (one) => one.replace(/[A-Z]/g, (letter) => letter.toLowerCase())),
    ofTexts,
  ),
  row(
    'upperAscii(text)',
    'The text with A to Z for a to z.',
    'vin.upperAscii()',
    (text) => changed(text, (one) => one.replace(/[a-z]/g, (letter) => letter.toUpperCase())),
    ofTexts,
  ),
  row(
    'trim(text)',
    'The text without the blanks around it.',
    'name.trim()',
    (text) => changed(text, (one) => one.trim()),
    ofTexts,
  ),
  row(
    'replace(text, from, to)',
    'The text with every `from` replaced by `to`. A decimal comma is read with it.',
    'number(odo.replace(",", "."))',
    replaced,
    { cost: costOfReplace },
  ),
  row(
    'split(text, separator)',
    'The list of the parts of a text.',
    'latlng.split(",")[0]',
    (text, separator) => {
      if (typeof text !== 'string' || typeof separator !== 'string' || separator === '') return undefined
      return text.split(separator)
    },
    { cost: (text, separator) => stepsOfText(lengthOf(text)) + placesIn(text, separator) },
  ),
  row(
    'join(list, separator?)',
    'The texts and numbers of a list as one text.',
    '[date, time].join(" ")',
    joined,
    { cost: costOfJoin },
  ),
  row(
    'substring(text, from, to?)',
    'The characters of a text from a place, counted from 0, to before another.',
    'status.substring(2, 4)',
    (text, from, to = Number.MAX_SAFE_INTEGER) => {
      const isPlaces = typeof from === 'number' && typeof to === 'number' && from >= 0 && to >= from
      return isPlaces ? changed(text, (one) => partOf(one, from, to)) : undefined
    },
    ofTexts,
  ),
]

/** A number that the parser rounded has lost digits, so it has no text. */
function written(value: unknown): unknown {
  if (typeof value === 'string' || typeof value === 'boolean') return String(value)
  if (typeof value !== 'number') return noText
  const number = checked(value)
  return typeof number === 'number' ? String(number) : number
}

function changed(text: unknown, change: (text: string) => string): unknown {
  return typeof text === 'string' ? change(text) : undefined
}

function replaced(text: unknown, from: unknown, to: unknown): unknown {
  if (typeof text !== 'string' || typeof from !== 'string' || typeof to !== 'string' || from === '')
    return undefined
  return text.split(from).join(to)
}

/** The result is known to be within the budget before it is made. */
function costOfReplace(text: unknown, from: unknown, to: unknown): number {
  const places = placesIn(text, from)
  return stepsOfText(lengthOf(text) + places * lengthOf(to)) + places
}

/** How often a text contains another, counted until there are more than any evaluation may have steps. */
function placesIn(text: unknown, part: unknown): number {
  if (typeof text !== 'string' || typeof part !== 'string' || part === '') return 0
  let places = 0
  for (let at = text.indexOf(part); at !== -1 && places <= stepsMax; places += 1)
    at = text.indexOf(part, at + part.length)
  return places
}

function joined(list: unknown, separator: unknown = ''): unknown {
  if (!Array.isArray(list) || typeof separator !== 'string') return undefined
  const parts = list as unknown[]
  if (!parts.every((part) => typeof part === 'string' || typeof part === 'number')) return undefined
  const texts = parts.map(written)
  return texts.find((text) => text instanceof NoResult) ?? texts.join(separator)
}

function costOfJoin(list: unknown, separator: unknown): number {
  if (!Array.isArray(list)) return 0
  const parts = list as unknown[]
  if (parts.length > stepsMax) return parts.length
  const characters = parts.reduce<number>((sum, part) => sum + lengthOf(part) + lengthOf(separator), 0)
  return parts.length + stepsOfText(characters)
}

/** Characters of a text, or of a number as one. */
function lengthOf(value: unknown): number {
  if (typeof value === 'string') return value.length
  return typeof value === 'number' ? String(value).length : 0
}

/** The engine needs a time that is linear in the text, whatever the pattern. */
function compileMatches([, pattern]: readonly unknown[]): FunctionRow['apply'] {
  if (typeof pattern !== 'string') throw new Malformed('has matches() without a constant text as its pattern')
  const compiled = compiledPattern(pattern)
  return (text) => {
    if (typeof text !== 'string') return undefined
    if (text.length > matchedMax) return tooLong
    return compiled.matcher(text).find()
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

/** Characters as CEL counts them: one beyond 16 bits, such as 😀, is one. */
function sizeOf(text: string): number {
  let size = 0
  for (let at = 0; at < text.length; at += widthAt(text, at)) size += 1
  return size
}

function partOf(text: string, from: number, to: number): string {
  let start = 0
  let size = 0
  for (; size < from && start < text.length; size += 1) start += widthAt(text, start)
  let end = start
  for (; size < to && end < text.length; size += 1) end += widthAt(text, end)
  return text.slice(start, end)
}

function widthAt(text: string, at: number): number {
  return (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1
}

// The functions of expressions about lists and objects.

const unequal = new NoResult('zip() needs an object with lists of one length')

export const listFunctions: readonly FunctionRow[] = [
  row(
    'size(x)',
    'The number of characters of a text, of elements of a list, or of keys of an object.',
    'size(positions) > 0',
    (x) => {
      if (typeof x === 'string') return sizeOf(x)
      if (Array.isArray(x)) return x.length
      return isRecord(x) ? Object.keys(x).length : undefined
    },
    { cost: (x) => (typeof x === 'string' ? stepsOfText(x.length) : keysIn(x)) },
  ),
  row(
    'entries(x)',
    'An object as a list of { key, value }.',
    'entries(message).filter(e, e.key.startsWith("gps_"))[0].value',
    entriesOf,
    { cost: keysIn },
  ),
  row(
    'zip(x)',
    'An object of lists of one length as a list of objects: {"t":[1,2],"v":[8,9]} is [{t:1,v:8}, {t:2,v:9}].',
    'zip(samples)',
    (x) => (isRecord(x) ? (zipped(x) ?? unequal) : undefined),
    { cost: (x) => 2 * cellsIn(x) },
  ),
]

function keysIn(value: unknown): number {
  return isRecord(value) ? Object.keys(value).length : 0
}

function cellsIn(value: unknown): number {
  if (!isRecord(value)) return 0
  let cells = 0
  for (const key in value) cells += Array.isArray(value[key]) ? value[key].length + 1 : 1
  return cells
}

/**
 * Undefined where there is no list, or the lists are not of one length: then it is not known which values
 * belong together.
 */
function zipped(value: Record<string, unknown>): unknown {
  const lists = Object.keys(value).filter((key) => Array.isArray(value[key]))
  const [first] = lists
  if (first === undefined) return undefined
  const { length } = value[first] as readonly unknown[]
  if (lists.some((key) => (value[key] as readonly unknown[]).length !== length)) return undefined
  return Array.from({ length }, (_, at) => {
    const record: Record<string, unknown> = {}
    for (const key of lists) setOwn(record, key, (value[key] as readonly unknown[])[at])
    return record
  })
}
