// decimal.ts: exact arithmetic on decimals, for values that must not get the error of a float: 386814875 m is
// 386814.875 km, also where a double is inexact.
//
// A decimal is `digits` x 10^`exponent`, a ratio two integers. A ratio that no decimal can express (seconds
// to hours) is rounded to six places, halves away from zero; everything else is exact.

import { Malformed } from '../path/text-cursor.ts'

export type Ratio = { readonly numerator: bigint; readonly denominator: bigint }

type Decimal = { negative: boolean; digits: string; exponent: number }

/** Turns one decimal text into another; undefined for an exponent beyond 60. */
export type Scale = (text: string) => string | undefined

const roundedPlaces = 6
const exponentMax = 60

/** `value` x `ratio` + `offset`. */
export function createScale(ratio: Ratio, offset: number): Scale {
  const shift = offset === 0 ? powerOfTen(ratio) : undefined
  if (shift === 0) return unscaled
  if (shift !== undefined) return (text) => shifted(text, shift)
  const added = ratioOf(String(offset))
  const endless = placesOf(ratio) < 0
  const morePlaces = placesOf(ratio) + placesOf(added)
  return (text) => {
    const decimal = parseDecimal(text)
    if (!decimal) return undefined
    const places = endless ? roundedPlaces : Math.max(0, -decimal.exponent) + morePlaces
    return scaled(decimal, ratio, added, places)
  }
}

/** The scale of values that are sent as they are. */
export const unscaled: Scale = (text) => (plainDecimal.test(text) ? text : shifted(text, 0))

/** A decimal of the config as a ratio in lowest terms; throws Malformed for an exponent beyond 60. */
export function ratioOf(text: string): Ratio {
  const decimal = parseDecimal(text)
  if (!decimal) throw new Malformed(`has the number ${text}, which is too large or too small`)
  const { numerator, denominator } = fractionOf(decimal)
  return reduced(numerator, denominator)
}

export function product(a: Ratio, b: Ratio): Ratio {
  return reduced(a.numerator * b.numerator, a.denominator * b.denominator)
}

/** `left` + `right`, or `left` - `right`, exactly; undefined for an exponent beyond 60. */
export function sumText(left: string, right: string, isDifference: boolean): string | undefined {
  const one = parseDecimal(left)
  const other = parseDecimal(right)
  if (!one || !other) return undefined
  const exponent = Math.min(one.exponent, other.exponent)
  const first = stepsOf(one, exponent)
  const second = stepsOf(other, exponent)
  const sum = isDifference ? first - second : first + second
  return formatDecimal(sum < 0n, String(sum < 0n ? -sum : sum), exponent)
}

/** As a whole number of steps of 10^`exponent`. */
function stepsOf({ negative, digits, exponent }: Decimal, step: number): bigint {
  return BigInt(negative ? `-${digits}` : digits) * 10n ** BigInt(exponent - step)
}

/** What `formatDecimal` would write in the same way: nearly every number as JSON writes it. */
const plainDecimal = /^[1-9][0-9]*(?:\.[0-9]*[1-9])?$/

function shifted(text: string, shift: number): string | undefined {
  const decimal = parseDecimal(text)
  if (!decimal) return undefined
  return formatDecimal(decimal.negative, decimal.digits, decimal.exponent + shift)
}

function scaled(decimal: Decimal, ratio: Ratio, added: Ratio, places: number): string {
  const value = fractionOf(decimal)
  const factor = value.numerator * ratio.numerator * added.denominator
  const share = value.denominator * ratio.denominator
  const numerator = factor + added.numerator * share
  const denominator = share * added.denominator
  const negative = numerator < 0n
  const magnitude = (negative ? -numerator : numerator) * 10n ** BigInt(places)
  return formatDecimal(negative, String((magnitude * 2n + denominator) / (denominator * 2n)), -places)
}

/** Reads `-12.50e3`; the text was checked before (value.ts). */
function parseDecimal(text: string): Decimal | undefined {
  const negative = text.charCodeAt(0) === 0x2d
  let end = text.length
  let exponent = 0
  const mark = Math.max(text.indexOf('e'), text.indexOf('E'))
  if (mark !== -1) {
    exponent = Number(text.slice(mark + 1))
    end = mark
  }
  const start = negative ? 1 : 0
  const point = text.indexOf('.')
  if (Math.abs(exponent) > exponentMax) return undefined
  if (point === -1 || point >= end) return { negative, digits: text.slice(start, end), exponent }
  const digits = text.slice(start, point) + text.slice(point + 1, end)
  return { negative, digits, exponent: exponent - (end - point - 1) }
}

/** Plain text without exponent, superfluous zeros, and a minus before zero. */
function formatDecimal(negative: boolean, digits: string, exponent: number): string {
  let first = 0
  let last = digits.length
  while (first < last && digits.charCodeAt(first) === 0x30) first += 1
  if (first === last) return '0'
  while (digits.charCodeAt(last - 1) === 0x30) last -= 1
  // The place of the point, counted from the first significant digit.
  const point = digits.length + exponent - first
  const plain = digits.slice(first, last)
  const sign = negative ? '-' : ''
  if (point <= 0) return `${sign}0.${'0'.repeat(-point)}${plain}`
  if (point >= plain.length) return `${sign}${plain}${'0'.repeat(point - plain.length)}`
  return `${sign}${plain.slice(0, point)}.${plain.slice(point)}`
}

function fractionOf({ negative, digits, exponent }: Decimal): Ratio {
  const whole = BigInt(negative ? `-${digits}` : digits)
  return exponent >= 0
    ? { numerator: whole * 10n ** BigInt(exponent), denominator: 1n }
    : { numerator: whole, denominator: 10n ** BigInt(-exponent) }
}

function reduced(numerator: bigint, denominator: bigint): Ratio {
  let a = numerator < 0n ? -numerator : numerator
  let b = denominator
  while (b !== 0n) [a, b] = [b, a % b]
  return a === 0n
    ? { numerator: 0n, denominator: 1n }
    : { numerator: numerator / a, denominator: denominator / a }
}

/** n where the ratio is 10^n, so that only the point moves. */
function powerOfTen({ numerator, denominator }: Ratio): number | undefined {
  for (const [value, other, sign] of [
    [numerator, denominator, 1],
    [denominator, numerator, -1],
  ] as const) {
    const text = String(value)
    if (other === 1n && text === `1${'0'.repeat(text.length - 1)}`) return sign * (text.length - 1)
  }
  return undefined
}

/** How many decimal places a ratio adds; -1 where no number of them is enough. */
function placesOf({ denominator }: Ratio): number {
  let rest = denominator
  let twos = 0
  let fives = 0
  for (; rest % 2n === 0n; rest /= 2n) twos += 1
  for (; rest % 5n === 0n; rest /= 5n) fives += 1
  return rest === 1n ? Math.max(twos, fives) : -1
}
