// when.ts: conditions, such as `lat != null and sat > 3` or `{event} == "vp" or exists(gps.lat)`.
//
//   or         any of them          and        all of them          not        the opposite
//   == !=      the same, or not; null is also what is absent
//   < <= > >=  numbers by value (also numbers in texts), texts by their characters; false where a side is absent
//   operands   numbers, "texts", true, false, null, paths (path.ts), {captures} of the topic, exists(path)
//
// An operand alone holds when it reads as true: true, 1, "yes", "on". A key named like one of the words, or
// one that starts with a digit, is written ['and'].

import { booleanFrom, isDecimal } from './value.ts'
import { compilePath, parsePathAt } from './path.ts'
import { isAtEnd, malformed, skipSpaces, take, takeQuoted, type Cursor } from './cursor.ts'

type Operand = (record: unknown, root: unknown, captures: readonly string[]) => unknown
export type Condition = (record: unknown, root: unknown, captures: readonly string[]) => boolean

type Compare = (left: unknown, right: unknown) => boolean

const comparisons: readonly (readonly [string, Compare])[] = [
  ['==', isSame],
  ['!=', (left, right) => !isSame(left, right)],
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
  return malformed(cursor, 'cannot be read')
}

function takeAny(cursor: Cursor, names: readonly string[], depth: number): Condition {
  if (depth > depthMax) malformed(cursor, 'is nested too deep')
  let any = takeAll(cursor, names, depth)
  while (takeWord(cursor, 'or')) {
    const left = any
    const right = takeAll(cursor, names, depth)
    any = (record, root, captures) => left(record, root, captures) || right(record, root, captures)
  }
  return any
}

function takeAll(cursor: Cursor, names: readonly string[], depth: number): Condition {
  let all = takeNot(cursor, names, depth)
  while (takeWord(cursor, 'and')) {
    const left = all
    const right = takeNot(cursor, names, depth)
    all = (record, root, captures) => left(record, root, captures) && right(record, root, captures)
  }
  return all
}

function takeNot(cursor: Cursor, names: readonly string[], depth: number): Condition {
  let negated = false
  while (takeWord(cursor, 'not')) negated = !negated
  const condition = takeComparison(cursor, names, depth)
  return negated ? (record, root, captures) => !condition(record, root, captures) : condition
}

function takeComparison(cursor: Cursor, names: readonly string[], depth: number): Condition {
  skipSpaces(cursor)
  if (take(cursor, '(')) {
    const inner = takeAny(cursor, names, depth + 1)
    if (!take(cursor, ')')) malformed(cursor, 'lacks a ")"')
    skipSpaces(cursor)
    return inner
  }
  const left = takeOperand(cursor, names)
  const compare = comparisons.find(([sign]) => take(cursor, sign))?.[1]
  if (!compare) return (record, root, captures) => booleanFrom(left(record, root, captures)) === true
  skipSpaces(cursor)
  const right = takeOperand(cursor, names)
  return (record, root, captures) => compare(left(record, root, captures), right(record, root, captures))
}

function takeOperand(cursor: Cursor, names: readonly string[]): Operand {
  const operand = operandAt(cursor, names)
  skipSpaces(cursor)
  return operand
}

function operandAt(cursor: Cursor, names: readonly string[]): Operand {
  const start = cursor.text[cursor.at]
  if (start === undefined) return malformed(cursor, 'ends where a value is expected')
  if (start === '"' || start === "'") return constant(takeQuoted(cursor))
  if (start === '{') return takeCapture(cursor, names)
  if (take(cursor, 'exists(')) {
    skipSpaces(cursor)
    const read = compilePath(parsePathAt(cursor, true))
    skipSpaces(cursor)
    if (!take(cursor, ')')) malformed(cursor, 'lacks a ")" after exists(')
    return (record, root) => (read(record, root) ?? null) !== null
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
  if (word === 'and' || word === 'or' || word === 'not') malformed(cursor, `has "${word}" for a value`)
  return compilePath(parsePathAt(cursor, false))
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
  return (_record, _root, captures) => captures[index]
}

/** Takes `word` where it stands alone, with the blanks behind it. */
function takeWord(cursor: Cursor, word: string): boolean {
  skipSpaces(cursor)
  if (wordAt(cursor) !== word) return false
  cursor.at += word.length
  skipSpaces(cursor)
  return true
}

/** What stands here up to a blank, a bracket, a quote or a comparison. */
function wordAt({ text, at }: Cursor): string {
  let end = at
  while (end < text.length && !' \t()[]{}"\'<>=!'.includes(text[end] ?? '')) end += 1
  return text.slice(at, end)
}

function constant(value: unknown): Operand {
  return () => value
}

function isSame(left: unknown, right: unknown): boolean {
  const a = left ?? null
  const b = right ?? null
  // A text and a number are the same when the text is that number; NaN is never the same as anything.
  return a === b || (typeof a !== typeof b && asNumber(a) === asNumber(b))
}

/** Below, at or above zero; NaN, which no comparison accepts, where two values have no order. */
function order(left: unknown, right: unknown): number {
  const a = asNumber(left)
  const b = asNumber(right)
  if (!Number.isNaN(a) && !Number.isNaN(b)) return a === b ? 0 : a - b
  if (typeof left !== 'string' || typeof right !== 'string') return Number.NaN
  if (left === right) return 0
  return left < right ? -1 : 1
}

function asNumber(value: unknown): number {
  if (typeof value === 'number') return value
  return typeof value === 'string' && isDecimal(value) ? Number(value) : Number.NaN
}
