// exact-number.ts: scales a raw number of a binary field without the error of a float. The result is a number
// where a double holds it to its last digit, and decimal text elsewhere.

import { createScale, ratioOf } from './decimal.ts'

/** Undefined for infinities, NaN, and values whose decimal is too long. */
export type Exact = (raw: number) => number | string | undefined

/** 15 digits: up to here a double gives every decimal back unchanged. */
const digitsMax = 1e15

/** 10^22 is the last power of ten that a double holds exactly. */
const placesMax = 22

const plain = createScale(ratioOf('1'), 0)

/** `raw` x `scale` + `offset`. */
export function createExact(scale: number, offset: number): Exact {
  const ratio = ratioOf(String(scale))
  const added = ratioOf(String(offset))
  const slow = createScale(ratio, offset)
  const inText: Exact = (raw) => (Number.isFinite(raw) ? shortest(slow(String(raw))) : undefined)
  if (scale === 1 && offset === 0) return (raw) => (Number.isFinite(raw) ? raw : undefined)
  let places = 0
  let unit = 1n
  while (
    (ratio.numerator * unit) % ratio.denominator !== 0n ||
    (added.numerator * unit) % added.denominator
  ) {
    places += 1
    unit *= 10n
    if (places > placesMax) return inText
  }
  // For integers below 10^15 only the division of (raw x factor + constant) / divisor is inexact, and it
  // gives the nearest double: the one that is written as the decimal.
  const factor = Number((ratio.numerator * unit) / ratio.denominator)
  const constant = Number((added.numerator * unit) / added.denominator)
  const divisor = Number(unit)
  if (Math.abs(factor) >= digitsMax || Math.abs(constant) >= digitsMax) return inText
  return (raw) => {
    const scaled = raw * factor
    const steps = scaled + constant
    const isExact = Number.isInteger(raw) && Math.abs(scaled) < digitsMax && Math.abs(steps) < digitsMax
    return isExact ? steps / divisor : inText(raw)
  }
}

function shortest(text: string | undefined): number | string | undefined {
  if (text === undefined) return undefined
  const number = Number(text)
  return plain(String(number)) === text ? number : text
}
