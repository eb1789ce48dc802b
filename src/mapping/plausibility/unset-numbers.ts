// unset-numbers.ts: numbers that a device sends for a value that it does not have: 0, the largest number of
// some bits or its neighbour, nothing but nines; in any step, since a point in it changes no digit.

/** 16777.215 is 2^24 - 1 with a point in it, 99999.9 are nines. */
export function isUnsetNumber(value: number): boolean {
  return unsetNumbers.has(digitsOf(value))
}

/**
 * Of 31 bits and a sign the smallest one is 0x80000000. The neighbour of the largest one says that there is
 * an error, such as 65534. Five nines may be the true hours of an engine.
 */
const unsetNumbers: ReadonlySet<number> = new Set([
  0,
  ...[8, 15, 16, 20, 23, 24, 30, 31, 32].map((bits) => 2 ** bits - 1),
  ...[16, 24, 32].map((bits) => 2 ** bits - 2),
  2 ** 31,
  ...[6, 7, 8, 9, 10].map((digits) => 10 ** digits - 1),
])

/**
 * The same for a value that may be true where it has few digits, such as a trip of 255 km, and may be
 * negative: the smallest number of some bits is one more than the largest.
 */
export function isLargeUnsetNumber(value: number): boolean {
  const digits = Math.abs(digitsOf(value))
  return digits > fewDigits && (unsetNumbers.has(digits) || (value < 0 && unsetNumbers.has(digits - 1)))
}

const fewDigits = 10_000

/** Without the point. By numbers, since the text of each would cost ten times as much. */
function digitsOf(value: number): number {
  // As good as 0, which it is to a counter.
  if (Math.abs(value) < tiny) return 0
  let scaled = value
  for (let decimals = 0; decimals < decimalsMax; decimals += 1, scaled *= 10) {
    const digits = Math.round(scaled)
    if (Math.abs(scaled - digits) <= Math.abs(digits) * rounding) return digits
  }
  return Math.round(scaled)
}

/** More are those of a computation. */
const decimalsMax = 10
const rounding = 1e-14
const tiny = 5e-8

/** Of a number below 0.000001, which is written with an exponent. */
const smallDecimals = 7

/** A number of JavaScript is written with as few digits as it needs, as the texts of signals are. */
export function decimalsOf(value: number): number {
  const text = String(value)
  const point = text.indexOf('.')
  if (text.includes('e')) return Math.abs(value) < 1 ? smallDecimals : 0
  return point === -1 ? 0 : text.length - point - 1
}
