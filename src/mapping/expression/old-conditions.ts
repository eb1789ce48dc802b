// old-conditions.ts: translates a condition of the language before 0.2 (`lat != null and sat > 3 or
// {event} in ("vp", "due")`) into CEL, for the message about it. Nothing else reads the old language.

import { decimalIn, isDecimal } from '../path/value.ts'
import { parsePathAt } from '../path/path.ts'
import {
  isAtEnd,
  Malformed,
  malformed,
  skipSpaces,
  take,
  takeQuoted,
  type Cursor,
} from '../path/text-cursor.ts'
import { expressionOf, keyedText } from '../path/path-as-expression.ts'

/** `binding`: how tightly its outermost operator binds; a smaller one needs parentheses inside of others. */
type Cel = { text: string; binding: number; hasOrder: boolean }

const bindings = { or: 1, and: 2, comparison: 3, not: 4, value: 5 } as const

const comparisons = ['==', '!=', '<=', '>=', '<', '>'] as const

const depthMax = 50

/** Undefined for a text that the old language could not read. */
export function celOfOldCondition(text: string): string | undefined {
  const cursor = { text, at: 0 }
  try {
    const found = takeAny(cursor, 0)
    return isAtEnd(cursor) ? found.text : undefined
  } catch (error) {
    if (!(error instanceof Malformed)) throw error
    return undefined
  }
}

function takeAny(cursor: Cursor, depth: number): Cel {
  if (depth > depthMax) malformed(cursor, 'is nested too deeply')
  let any = takeAll(cursor, depth)
  while (takeWord(cursor, 'or')) any = joined(any, '||', takeAll(cursor, depth), bindings.or)
  return any
}

function takeAll(cursor: Cursor, depth: number): Cel {
  let all = takeNot(cursor, depth)
  while (takeWord(cursor, 'and')) all = joined(all, '&&', takeNot(cursor, depth), bindings.and)
  return all
}

function joined(left: Cel, sign: string, right: Cel, binding: number): Cel {
  const text = `${inside(left, binding)} ${sign} ${inside(right, binding)}`
  return { text, binding, hasOrder: left.hasOrder || right.hasOrder }
}

function inside({ text, binding }: Cel, least: number): string {
  return binding < least ? `(${text})` : text
}

function takeNot(cursor: Cursor, depth: number): Cel {
  let negated = false
  while (takeWord(cursor, 'not')) negated = !negated
  const found = takeComparison(cursor, depth)
  return negated ? opposite(found) : found
}

/** An absent value is neither above nor below another: the opposite of the comparison held for it. */
function opposite(cel: Cel): Cel {
  if (cel.hasOrder)
    return { text: `${inside(cel, bindings.not)} != true`, binding: bindings.comparison, hasOrder: false }
  return { text: `!${inside(cel, bindings.not)}`, binding: bindings.not, hasOrder: false }
}

function takeComparison(cursor: Cursor, depth: number): Cel {
  skipSpaces(cursor)
  if (take(cursor, '(')) {
    const inner = takeAny(cursor, depth + 1)
    takeClosing(cursor)
    return inner
  }
  const left = takeOperand(cursor)
  const sign = comparisons.find((one) => take(cursor, one))
  if (sign === undefined) return takeMembership(cursor, left)
  skipSpaces(cursor)
  return {
    text: `${left} ${sign} ${takeOperand(cursor)}`,
    binding: bindings.comparison,
    hasOrder: sign !== '==' && sign !== '!=',
  }
}

function takeMembership(cursor: Cursor, left: string): Cel {
  const negated = takeWord(cursor, 'not')
  if (!takeWord(cursor, 'in')) {
    if (negated) malformed(cursor, 'has "not" after a value')
    return { text: left, binding: bindings.value, hasOrder: false }
  }
  if (!take(cursor, '(')) malformed(cursor, 'lacks a "("')
  const operands: string[] = []
  do {
    skipSpaces(cursor)
    operands.push(takeOperand(cursor))
  } while (take(cursor, ','))
  takeClosing(cursor)
  const text = `${left} in [${operands.join(', ')}]`
  const found = { text, binding: bindings.comparison, hasOrder: false }
  return negated ? opposite(found) : found
}

function takeClosing(cursor: Cursor): void {
  if (!take(cursor, ')')) malformed(cursor, 'lacks a ")"')
  skipSpaces(cursor)
}

function takeOperand(cursor: Cursor): string {
  const taken = operandAt(cursor)
  skipSpaces(cursor)
  return taken
}

function operandAt(cursor: Cursor): string {
  const start = cursor.text[cursor.at]
  if (start === undefined) return malformed(cursor, 'ends where a value is expected')
  if (start === '"' || start === "'") return JSON.stringify(takeQuoted(cursor))
  if (start === '{') return takeCapture(cursor)
  if (take(cursor, 'exists(')) {
    skipSpaces(cursor)
    const path = expressionOf(parsePathAt(cursor, true))
    skipSpaces(cursor)
    if (!take(cursor, ')')) malformed(cursor, 'lacks a ")"')
    return `has(${path})`
  }
  const word = wordAt(cursor)
  if (isDecimal(word) || ['true', 'false', 'null'].includes(word)) {
    cursor.at += word.length
    return decimalIn(word) ?? word
  }
  if (word === 'and' || word === 'or' || word === 'not' || word === '')
    if (start !== '[') malformed(cursor, 'has no value')
  return expressionOf(parsePathAt(cursor, false))
}

function takeCapture(cursor: Cursor): string {
  const end = cursor.text.indexOf('}', cursor.at)
  if (end === -1) malformed(cursor, 'has a capture without an end')
  const name = cursor.text.slice(cursor.at + 1, end)
  cursor.at = end + 1
  return keyedText('topic', name)
}

/** Takes `word` and the blanks after it, if it is the whole next word. */
function takeWord(cursor: Cursor, word: string): boolean {
  skipSpaces(cursor)
  if (wordAt(cursor) !== word) return false
  cursor.at += word.length
  skipSpaces(cursor)
  return true
}

/** The text up to a blank, a bracket, a quote, a comma or a comparison. */
function wordAt({ text, at }: Cursor): string {
  let end = at
  while (end < text.length && !' \t()[]{}"\'<>=!,'.includes(text[end] ?? '')) end += 1
  return text.slice(at, end)
}
