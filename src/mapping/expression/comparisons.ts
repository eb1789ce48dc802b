// comparisons.ts: compares values as devices send them: one device sends 1, another one "1" or true.
//
//   == != in     always have a result: no value equals null; a text equals the number that it reads as; true
//                and false also equal 1, 0, "yes", "no", "on" and "off"
//   < <= > >=    numbers (also in texts) by value, texts by their characters; no result for all others

import { isNone, NoResult } from '../path/no-result.ts'
import { booleanFrom, numberIn } from '../path/value.ts'

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
