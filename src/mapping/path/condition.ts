// condition.ts: conditions, such as `lat != null and sat > 3` or `{event} in ("vp", "due") or
// exists(gps.lat)`.
//
//   or         any of them          and        all of them          not        the opposite
//   == !=      equal or not; null also equals an absent value; true and false also equal 1, "yes", "off"
//   < <= > >=  numbers (also in texts) by value, texts by their characters; false where a side is absent
//   in (...)   equal to one of them; not in (...) equal to none
//   operands   numbers, "texts", true, false, null, paths (path.ts), {captures} of the topic, exists(path)
//
// An operand alone holds when it reads as true: true, 1, "yes", "on". A quote starts a text. A key that needs
// quotes, or is named like one of the words, or starts with a digit, is written in brackets where it comes
// first: `["69"] != 2`, `['and']`; after a dot it is written as in any path: `io."69"`, `$."69"`, `$up."69"`.
// A comparison of two constants is an error: `"69" != 2` was meant to name a key.

import { refuseForeignSign, refuseForeignStart, refuseSignInKey } from './condition-hints.ts'
import { booleanFrom, decimalIn, isDecimal } from './value.ts'
import { compilePath, parsePathAt } from './path.ts'
import { isAtEnd, malformed, skipSpaces, take, takeQuoted, type Cursor } from './text-cursor.ts'
import type { Up } from '../types.ts'

/** Parameters in the order of `Read`, so that a path is an operand. */
type Operand = (record: unknown, root: unknown, up: Up, captures: readonly string[]) => unknown

export type Condition = (record: unknown, root: unknown, captures: readonly string[], up?: Up) => boolean

type Compare = (left: unknown, right: unknown) => boolean

/** `fixed` where the operand is the same for every message: a number, a text, true, false or null. */
type Taken = { operand: Operand; fixed: boolean }

const comparisons: readonly (readonly [string, Compare])[] = [
  ['==', isSame],
  ['!=', isOther],
  ['<=', (left, right) => order(left, right) <= 0],
  ['>=', (left, right) => order(left, right) >= 0],
  ['<', (left, right) => order(left, right) < 0],
  ['>', (left, right) => order(left, right) > 0],
]

const literals = new Map<string, unknown>([
  ['true', true],
  ['false', false],
  ['null', null],
])

const depthMax = 50

/** Compiles `text`; throws Malformed. */
export function compileCondition(text: string, captureNames: readonly string[]): Condition {
  const cursor = { text, at: 0 }
  const condition = takeAny(cursor, captureNames, 0)
  if (isAtEnd(cursor)) return condition
  refuseForeignSign(cursor, cursor.at)
  return malformed(cursor, 'cannot be read')
}

function takeAny(cursor: Cursor, names: readonly string[], depth: number): Condition {
  if (depth > depthMax) malformed(cursor, 'is nested too deeply')
  let any = takeAll(cursor, names, depth)
  while (takeWord(cursor, 'or')) {
    const left = any
    const right = takeAll(cursor, names, depth)
    any = (record, root, captures, up) =>
      left(record, root, captures, up) || right(record, root, captures, up)
  }
  return any
}

function takeAll(cursor: Cursor, names: readonly string[], depth: number): Condition {
  let all = takeNot(cursor, names, depth)
  while (takeWord(cursor, 'and')) {
    const left = all
    const right = takeNot(cursor, names, depth)
    all = (record, root, captures, up) =>
      left(record, root, captures, up) && right(record, root, captures, up)
  }
  return all
}

function takeNot(cursor: Cursor, names: readonly string[], depth: number): Condition {
  let negated = false
  while (takeWord(cursor, 'not')) negated = !negated
  const condition = takeComparison(cursor, names, depth)
  return negated ? opposite(condition) : condition
}

function opposite(condition: Condition): Condition {
  return (record, root, captures, up) => !condition(record, root, captures, up)
}

function takeComparison(cursor: Cursor, names: readonly string[], depth: number): Condition {
  skipSpaces(cursor)
  if (take(cursor, '(')) {
    const inner = takeAny(cursor, names, depth + 1)
    takeClosing(cursor)
    return inner
  }
  const start = cursor.at
  const left = takeOperand(cursor, names)
  refuseForeignSign(cursor, start)
  const compare = comparisons.find(([sign]) => take(cursor, sign))?.[1]
  if (!compare) return takeMembership(cursor, names, left.operand)
  skipSpaces(cursor)
  const right = takeOperand(cursor, names)
  if (left.fixed && right.fixed) {
    cursor.at = start
    malformed(cursor, 'compares two constants; a key that needs quotes is written ["69"] or $."69",')
  }
  return compareWith(left.operand, compare, right)
}

function compareWith(left: Operand, compare: Compare, { operand, fixed }: Taken): Condition {
  if (!fixed)
    return (record, root, captures, up) =>
      compare(left(record, root, up, captures), operand(record, root, up, captures))
  const value = operand(null, null, undefined, [])
  // The most frequent ones without another call.
  if (compare === isSame)
    return (record, root, captures, up) => isSame(left(record, root, up, captures), value)
  if (compare === isOther)
    return (record, root, captures, up) => !isSame(left(record, root, up, captures), value)
  return (record, root, captures, up) => compare(left(record, root, up, captures), value)
}

/** An operand alone, or followed by `in (...)` or `not in (...)`. */
function takeMembership(cursor: Cursor, names: readonly string[], left: Operand): Condition {
  const negated = takeWord(cursor, 'not')
  if (!takeWord(cursor, 'in')) {
    if (negated) malformed(cursor, 'has "not" after a value without "in"')
    return (record, root, captures, up) => booleanFrom(left(record, root, up, captures)) === true
  }
  if (!take(cursor, '(')) malformed(cursor, 'lacks a "(" after "in", such as in ("vp", "due"),')
  const operands: Operand[] = []
  do {
    skipSpaces(cursor)
    operands.push(takeOperand(cursor, names).operand)
  } while (take(cursor, ','))
  takeClosing(cursor)
  const isIn: Condition = (record, root, captures, up) => {
    const value = left(record, root, up, captures)
    for (const operand of operands) if (isSame(value, operand(record, root, up, captures))) return true
    return false
  }
  return negated ? opposite(isIn) : isIn
}

function takeClosing(cursor: Cursor): void {
  if (!take(cursor, ')')) {
    refuseForeignSign(cursor, cursor.at)
    malformed(cursor, 'lacks a ")"')
  }
  skipSpaces(cursor)
}

function takeOperand(cursor: Cursor, names: readonly string[]): Taken {
  const taken = operandAt(cursor, names)
  skipSpaces(cursor)
  return taken
}

function operandAt(cursor: Cursor, names: readonly string[]): Taken {
  const start = cursor.text[cursor.at]
  if (start === undefined) return malformed(cursor, 'ends where a value is expected')
  if (start === '"' || start === "'") return constant(takeQuoted(cursor))
  if (start === '{') return changing(takeCapture(cursor, names))
  if (take(cursor, 'exists(')) {
    skipSpaces(cursor)
    const read = compilePath(parsePathAt(cursor, true))
    skipSpaces(cursor)
    if (!take(cursor, ')')) malformed(cursor, 'lacks a ")" after exists(')
    return changing((record, root, up) => (read(record, root, up) ?? null) !== null)
  }
  const word = wordAt(cursor)
  if (isDecimal(word)) {
    cursor.at += word.length
    return constant(Number(word))
  }
  if (literals.has(word)) {
    cursor.at += word.length
    return constant(literals.get(word))
  }
  if (word === 'and' || word === 'or' || word === 'not')
    malformed(cursor, `has "${word}" where a value is expected`)
  refuseForeignStart(cursor)
  const { at } = cursor
  const path = parsePathAt(cursor, false)
  refuseSignInKey(cursor, at)
  return changing(compilePath(path))
}

function takeCapture(cursor: Cursor, names: readonly string[]): Operand {
  const end = cursor.text.indexOf('}', cursor.at)
  const name = cursor.text.slice(cursor.at + 1, end === -1 ? undefined : end)
  const index = names.indexOf(name)
  if (end === -1 || index === -1) {
    const known = names.length === 0 ? 'the topic has none' : `the topic has {${names.join('}, {')}}`
    malformed(cursor, `has a capture "{${name}}" that the topic does not name (${known})`)
  }
  cursor.at = end + 1
  return (_record, _root, _up, captures) => captures[index]
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

function constant(value: unknown): Taken {
  return { operand: () => value, fixed: true }
}

function changing(operand: Operand): Taken {
  return { operand, fixed: false }
}

function isSame(left: unknown, right: unknown): boolean {
  const a = left ?? null
  const b = right ?? null
  if (a === b) return true
  if (a === null || b === null) return false
  if (typeof a === typeof b) return false
  // One device sends false, another one 0 or "no".
  if (typeof a === 'boolean') return booleanFrom(b) === a
  if (typeof b === 'boolean') return booleanFrom(a) === b
  // A text equals a number when it reads as that number; NaN equals nothing.
  return asNumber(a) === asNumber(b)
}

function isOther(left: unknown, right: unknown): boolean {
  return !isSame(left, right)
}

/** Below, at or above zero; NaN, which no comparison accepts, for two values without an order. */
function order(left: unknown, right: unknown): number {
  if (typeof left === 'number' && typeof right === 'number') return left === right ? 0 : left - right
  const a = asNumber(left)
  const b = asNumber(right)
  if (!Number.isNaN(a) && !Number.isNaN(b)) return a === b ? 0 : a - b
  if (typeof left !== 'string' || typeof right !== 'string') return Number.NaN
  if (left === right) return 0
  return left < right ? -1 : 1
}

function asNumber(value: unknown): number {
  if (typeof value === 'number') return value
  return typeof value === 'string' ? Number(decimalIn(value)) : Number.NaN
}
