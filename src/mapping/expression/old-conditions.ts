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

const comparisons = ['==', '!=', '<=', '>=', '<', '>'] as const

const depthMax = 50

/** Undefined for a text that the old language could not read. */
export function celOfOldCondition(text: string): string | undefined {
  const cursor = { text, at: 0 }
  try {
    const found = takeAny(cursor, 0)
    return isAtEnd(cursor) ? found : undefined
  } catch (error) {
    if (!(error instanceof Malformed)) throw error
    return undefined
  }
}

/** Parentheses of the old text stay, as its operators bind in the same order. */
function takeAny(cursor: Cursor, depth: number): string {
  if (depth > depthMax) malformed(cursor, 'is nested too deeply')
  const alternatives: string[] = []
  do {
    const parts: string[] = []
    do parts.push(takePart(cursor, depth))
    while (takeWord(cursor, 'and'))
    alternatives.push(parts.join(' && '))
  } while (takeWord(cursor, 'or'))
  return alternatives.join(' || ')
}

function takePart(cursor: Cursor, depth: number): string {
  if (takeWord(cursor, 'not')) return opposite(takePart(cursor, depth))
  skipSpaces(cursor)
  if (take(cursor, '(')) {
    const inner = takeAny(cursor, depth + 1)
    takeClosing(cursor)
    return `(${inner})`
  }
  const left = takeOperand(cursor)
  const sign = comparisons.find((one) => take(cursor, one))
  if (sign === undefined) return takeMembership(cursor, left)
  skipSpaces(cursor)
  return `${left} ${sign} ${takeOperand(cursor)}`
}

/** Not `!`, which has no result for a value that is absent; the old `not` was true. */
function opposite(text: string): string {
  const isOne = /^\(.*\)$|^[\w.]+(?:\(.*\))?$/s.test(text)
  return `${isOne ? text : `(${text})`} != true`
}

function takeMembership(cursor: Cursor, left: string): string {
  const negated = takeWord(cursor, 'not')
  if (!takeWord(cursor, 'in')) {
    if (negated) malformed(cursor, 'has "not" after a value')
    return left
  }
  if (!take(cursor, '(')) malformed(cursor, 'lacks a "("')
  const operands: string[] = []
  do {
    skipSpaces(cursor)
    operands.push(takeOperand(cursor))
  } while (take(cursor, ','))
  takeClosing(cursor)
  const text = `${left} in [${operands.join(', ')}]`
  return negated ? opposite(text) : text
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
