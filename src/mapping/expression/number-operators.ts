// number-operators.ts: + - * / % of doubles. Sums and differences are those of the decimals that the doubles
// are written as: 0.1 + 0.2 is 0.3, and 100.4 - 100.1 is 0.3. Other results are rounded to 15 digits, up to
// which a double gives every decimal back. What no double holds exactly (a number beyond 2^53), a division by
// zero and an operand that is no number have no result.

import { sumText } from '../fields/decimal.ts'
import { isNone, NoResult, isPlaceholder, placeholderResult, booleanFrom, numberIn } from '../path/value.ts'

const digits = 15

const beyond = new NoResult('a number is beyond 2^53, where a double is not exact')
const notFinite = new NoResult('the result is no finite number')
const notNumber = new NoResult('an operand is no number; number(x) reads a text as one')
const ambiguous = new NoResult(
  'both operands are texts of numbers; number(a) + number(b) is their sum, join([a, b]) puts them together',
)

/** The operand as a number, or why there is none. */
export function numberOf(value: unknown): unknown {
  if (typeof value === 'number') {
    if (isPlaceholder(value)) return placeholderResult
    return checked(value)
  }
  return isNone(value) ? value : notNumber
}

/** A number that can be computed with, or why it cannot. */
export function checked(value: number): number | NoResult {
  if (value >= -Number.MAX_SAFE_INTEGER && value <= Number.MAX_SAFE_INTEGER) return value
  return Number.isFinite(value) ? beyond : notFinite
}

export function rounded(value: number): number | NoResult {
  return checked(digitsOf(value))
}

type Combine = (left: unknown, right: unknown) => unknown

export const arithmetic = {
  '+': (left, right) =>
    typeof left === 'string' && typeof right === 'string'
      ? joined(left, right)
      : combined(left, right, (a, b) => decimalSum(a, b, false)),
  '-': (left, right) => combined(left, right, (a, b) => decimalSum(a, b, true)),
  '*': (left, right) => combined(left, right, (a, b) => digitsOf(a * b)),
  '/': (left, right) => combined(left, right, (a, b) => digitsOf(a / b)),
  '%': (left, right) => combined(left, right, (a, b) => digitsOf(a % b)),
} as const satisfies Record<string, Combine>

/** `12` and `3` as texts could be meant as 15 or as "123". */
function joined(left: string, right: string): unknown {
  if (isNumeric(left) && isNumeric(right)) return ambiguous
  return left + right
}

function isNumeric(text: string): boolean {
  return text.length <= 40 && text.trim() !== '' && Number.isFinite(Number(text))
}

function digitsOf(value: number): number {
  return Number.isInteger(value) ? value : Number(value.toPrecision(digits))
}

function combined(left: unknown, right: unknown, combine: (left: number, right: number) => number): unknown {
  const a = numberOf(left)
  if (typeof a !== 'number') return a
  const b = numberOf(right)
  if (typeof b !== 'number') return b
  return checked(combine(a, b))
}

function decimalSum(left: number, right: number, isDifference: boolean): number {
  if (Number.isInteger(left) && Number.isInteger(right)) return isDifference ? left - right : left + right
  return Number(sumText(String(left), String(right), isDifference))
}

// Compares values as devices send them: one device sends 1, another one "1" or true.
//
//   == != in     always have a result: no value equals null; a text equals the number that it reads as; true
//                and false also equal 1, 0, "yes", "no", "on" and "off"
//   < <= > >=    numbers (also in texts) by value, texts by their characters; no result for all others

export const unordered = new NoResult('two values of different types have no order')

const notTruth = new NoResult('a value is neither true nor false')

export function isSame(left: unknown, right: unknown): boolean {
  if (left === right) return true
  if (isNone(left) || isNone(right)) return isNone(left) && isNone(right)
  if (typeof left === typeof right) return false
  if (typeof left === 'boolean') return booleanFrom(right) === left
  if (typeof right === 'boolean') return booleanFrom(left) === right
  // NaN equals nothing.
  return numberIn(left) === numberIn(right)
}

/** Below, at or above zero; NaN for two values without an order. */
export function order(left: unknown, right: unknown): number {
  if (typeof left === 'number' && typeof right === 'number') return left === right ? 0 : left - right
  const a = numberIn(left)
  const b = numberIn(right)
  if (!Number.isNaN(a) && !Number.isNaN(b)) return a === b ? 0 : a - b
  if (typeof left !== 'string' || typeof right !== 'string') return Number.NaN
  if (left === right) return 0
  return left < right ? -1 : 1
}

/** True or false, or a value that is none. */
export function truthOf(value: unknown): unknown {
  if (typeof value === 'boolean' || isNone(value)) return value
  return booleanFrom(value) ?? (value === '' ? undefined : notTruth)
}
