// arithmetic.ts: the words `plus`, `minus`, `over` and `negative`: sum, difference and ratio of two values of
// a message, as exact decimals (fields/decimal.ts). A ratio that no decimal can express is rounded to six
// places.

import { compileFirstPresent, type Presence } from '../fields/present-values.ts'
import { decimalFault, decimalFrom, numberFrom, placeholderResult } from '../path/value.ts'
import { createScale, ratioOf, ratioText, sumText, type Scale } from '../fields/decimal.ts'
import { unusable } from './unusable.ts'
import type { Stage } from './stage.ts'

/** A path, or several of which the first with a value counts; `scale`: the value is multiplied by it. */
export type Operand = string | readonly string[] | { path: string | readonly string[]; scale: number }

type Combine = (left: string, right: string) => string | undefined

const combinations: Readonly<Record<'plus' | 'minus' | 'over', Combine>> = {
  plus: (left, right) => sumText(left, right, false),
  minus: (left, right) => sumText(left, right, true),
  over: ratioText,
}

export function compileArithmetic(
  word: keyof typeof combinations,
  operand: Operand,
  presence: Presence,
): Stage {
  const { path, scale } = isPath(operand) ? { path: operand, scale: 1 } : operand
  const read = compileFirstPresent(path, presence)
  const weigh: Scale = scale === 1 ? (text) => text : createScale(ratioOf(String(scale)), 0)
  return {
    text: `${word} ${[path].flat().join(' or ')}${scale === 1 ? '' : ` x ${scale}`}`,
    apply: (value, ...place) => combined(value, read(...place), weigh, combinations[word]),
  }
}

function isPath(operand: Operand): operand is string | readonly string[] {
  return typeof operand === 'string' || Array.isArray(operand)
}

function combined(value: unknown, second: unknown, weigh: Scale, combine: Combine): unknown {
  const left = decimalFrom(value)
  if (left === undefined) return faultOf(value)
  const right = decimalFrom(second)
  if (right === undefined) return faultOf(second)
  const weighed = weigh(right)
  return (weighed === undefined ? undefined : combine(left, weighed)) ?? unusable
}

/** For a value that is no exact decimal: absent, a placeholder (which a signal counts as such), or wrong. */
export function faultOf(value: unknown): unknown {
  const fault = decimalFault(value)
  if (fault === 'absent') return undefined
  return fault === 'a placeholder' ? placeholderResult : unusable
}

/**
 * With a minus; a number that has it already stays. What is no exact decimal is none with a minus either.
 * Anything but a number is for its field to judge.
 */
export function negated(value: unknown): unknown {
  const text = decimalFrom(value)
  if (text === undefined) return Number.isFinite(numberFrom(value)) ? faultOf(value) : value
  if (typeof value === 'number') return -Math.abs(value)
  return text.startsWith('-') ? text : `-${text}`
}
