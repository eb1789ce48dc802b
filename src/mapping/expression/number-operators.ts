// number-operators.ts: + - * / % of doubles. Sums and differences are those of the decimals that the doubles
// are written as: 0.1 + 0.2 is 0.3, and 100.4 - 100.1 is 0.3. Other results are rounded to 15 digits, up to
// which a double gives every decimal back. What no double holds exactly (a number beyond 2^53), a division by
// zero and an operand that is no number have no result.

import { sumText } from '../fields/decimal.ts'
import { isNone, NoResult } from '../path/no-result.ts'
import { isPlaceholder, placeholderResult } from '../path/value.ts'

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

export function sum(left: unknown, right: unknown): unknown {
  if (typeof left === 'string' && typeof right === 'string') return joined(left, right)
  return combined(left, right, (a, b) => decimalSum(a, b, false))
}

/** `12` and `3` as texts could be meant as 15 or as "123". */
function joined(left: string, right: string): unknown {
  if (isNumeric(left) && isNumeric(right)) return ambiguous
  return left + right
}

function isNumeric(text: string): boolean {
  return text.length <= 40 && text.trim() !== '' && Number.isFinite(Number(text))
}

export function product(left: unknown, right: unknown): unknown {
  return combined(left, right, (a, b) => digitsOf(a * b))
}

export function quotient(left: unknown, right: unknown): unknown {
  return combined(left, right, (a, b) => digitsOf(a / b))
}

export function remainder(left: unknown, right: unknown): unknown {
  return combined(left, right, (a, b) => digitsOf(a % b))
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

export function difference(left: unknown, right: unknown): unknown {
  return combined(left, right, (a, b) => decimalSum(a, b, true))
}

function decimalSum(left: number, right: number, isDifference: boolean): number {
  if (Number.isInteger(left) && Number.isInteger(right)) return isDifference ? left - right : left + right
  return Number(sumText(String(left), String(right), isDifference))
}
