// number-functions.ts: the functions of expressions that give numbers.

import { degreesOfMinutes } from '../../fields/units.ts'
import { NoResult, decimalIn, isBlank } from '../../path/value.ts'
import { parseDateTime } from '../../times/iso-time.ts'
import { utc } from '../../times/zones.ts'
import { checked, numberOf, rounded, order } from '../number-operators.ts'
import { row, type FunctionRow } from './function-row.ts'

const bitMax = 63
const placesMax = 15

const noBits = new NoResult('bits are read of a whole number up to 2^53, or a text of one of 64 bits')
const tooWide = new NoResult('signed() reads a number that has more bits than it says')
const noTime = new NoResult('millis() reads a time such as 2026-11-28T10:00:00Z')
const noMinutes = new NoResult('ddmm() reads degrees and minutes such as 4851.396, and N, S, E or W')

export const numberFunctions: readonly FunctionRow[] = [
  row(
    'number(x)',
    'The number that a text is, such as "12.5", " 7" or "+3". A blank text is no value.',
    'number(trip) + number(start)',
    toNumber,
  ),
  row('int(x)', 'The whole part of a number or of the number in a text.', 'int(x / 256)', (x) =>
    mapped(toNumber(x), Math.trunc),
  ),
  row('abs(x)', 'The number without its minus.', 'abs(x)', (x) => mapped(numberOf(x), Math.abs)),
  row('floor(x)', 'The next whole number below.', 'floor(x)', (x) => mapped(numberOf(x), Math.floor)),
  row('ceil(x)', 'The next whole number above.', 'ceil(x)', (x) => mapped(numberOf(x), Math.ceil)),
  row(
    'round(x, places?)',
    'The number rounded to so many decimals, halves away from zero. Default: 0.',
    'round(x, 2)',
    (x, places = 0) => {
      if (!isWithin(places, 0, placesMax)) return undefined
      return mapped(numberOf(x), (number) => roundedTo(number, places))
    },
  ),
  row(
    'min(x, ...)',
    'The smallest of several numbers, or of a list of them.',
    'min(a, b)',
    (...values) => extreme(listedIn(values), (one, other) => order(one, other) < 0),
    { cost: (...values) => listedIn(values).length },
  ),
  row(
    'max(x, ...)',
    'The largest of several numbers, or of a list of them.',
    'max(fuel.tanks)',
    (...values) => extreme(listedIn(values), (one, other) => order(one, other) > 0),
    { cost: (...values) => listedIn(values).length },
  ),
  row(
    'bit(x, n)',
    'Bit n of a whole number, 0 or 1. Bit 0 is the lowest. The number may be a text, also as 0x1F; other hex digits need hex(x).',
    'bit(din, 3) == 1',
    (x, n) => (isWithin(n, 0, bitMax) ? bitsOf(x, n, 1) : undefined),
  ),
  row(
    'bits(x, from, count)',
    'The number that so many bits are, counted from the lowest.',
    'bits(status, 4, 3)',
    (x, from, count) =>
      isWithin(from, 0, bitMax) && isWithin(count, 1, bitMax + 1 - from) ? bitsOf(x, from, count) : undefined,
  ),
  row(
    'signed(x, bits)',
    'A number of so many bits, up to 64, of which the highest is the sign (two’s complement).',
    'signed(temperature, 16)',
    (x, bits) => {
      if (!isWithin(bits, 1, bitMax + 1)) return undefined
      const whole = wholeNumberOf(x)
      if (whole === undefined) return noBits
      const found = BigInt.asIntN(bits, whole)
      const isHeld = whole === found || whole === BigInt.asUintN(bits, whole)
      return isHeld ? checked(Number(found)) : tooWide
    },
  ),
  row(
    'hex(text)',
    'The number that hexadecimal digits are, with or without 0x, up to 2^53.',
    'hex("1F4")',
    (text) => {
      const [, found] =
        typeof text === 'string' ? (/^\s*(?:0[xX])?([0-9a-fA-F]{1,16})\s*$/.exec(text) ?? []) : []
      return found === undefined ? undefined : checked(Number.parseInt(found, 16))
    },
  ),
  row(
    'millis(text)',
    'Milliseconds since 1970 of a time such as 2026-11-28T10:00:00Z; without a zone in UTC.',
    'millis(start) + age * 1000',
    (text) => {
      if (typeof text !== 'string') return undefined
      const time = parseDateTime(text.trim(), utc)
      return Number.isFinite(time) ? time : noTime
    },
  ),
  row(
    'ddmm(x, hemisphere?)',
    'Degrees of degrees and minutes in one number (4851.396); S and W make them negative.',
    'ddmm(lat, ns)',
    (x, hemisphere = 'N') => {
      const letter = typeof hemisphere === 'string' ? hemisphere.trim().charAt(0).toUpperCase() : ''
      const minutes = toNumber(x)
      if (typeof minutes !== 'number') return minutes
      const degrees = degreesOfMinutes(minutes)
      if (!'NSEW'.includes(letter) || letter === '' || !Number.isFinite(degrees)) return noMinutes
      return letter === 'S' || letter === 'W' ? -Math.abs(degrees) : degrees
    },
  ),
]

function mapped(value: unknown, change: (number: number) => number): unknown {
  return typeof value === 'number' ? rounded(change(value)) : value
}

function toNumber(value: unknown): unknown {
  if (typeof value !== 'string') return numberOf(value)
  const text = decimalIn(value)
  if (text !== undefined) return numberOf(Number(text))
  return value.length <= 40 && isBlank(value) ? null : undefined
}

function isWithin(value: unknown, least: number, most: number): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most
}

/** By the digits of the decimal: 1.005 is 1.01, though the double is a little smaller. */
function roundedTo(number: number, places: number): number {
  const magnitude = Math.abs(number)
  const steps = Math.round(Number(`${magnitude}e${places}`))
  const found = Number(`${steps}e-${places}`)
  if (!Number.isFinite(found)) return number
  return number < 0 ? -found : found
}

function listedIn(values: readonly unknown[]): readonly unknown[] {
  const [first] = values
  return values.length === 1 && Array.isArray(first) ? first : values
}

function extreme(all: readonly unknown[], isBetter: (one: unknown, other: unknown) => boolean): unknown {
  if (all.length === 0) return null
  let best: unknown
  for (const value of all) {
    const number = toNumber(value)
    if (typeof number !== 'number') return number
    if (best === undefined || isBetter(number, best)) best = number
  }
  return best
}

/** As a number, or decimal text where a double does not hold it. */
function bitsOf(value: unknown, from: number, count: number): unknown {
  if (
    typeof value === 'number' &&
    from + count <= 31 &&
    Number.isInteger(value) &&
    value >= 0 &&
    value <= 0x7fff_ffff
  )
    return (value >>> from) & (2 ** count - 1)
  const whole = wholeNumberOf(value)
  if (whole === undefined) return noBits
  const found = BigInt.asUintN(count, whole >> BigInt(from))
  return found <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(found) : String(found)
}

function wholeNumberOf(value: unknown): bigint | undefined {
  if (typeof value === 'number') return Number.isSafeInteger(value) ? BigInt(value) : undefined
  if (typeof value !== 'string' || !/^(?:-?[0-9]{1,20}|0[xX][0-9a-fA-F]{1,16})$/.test(value)) return undefined
  return BigInt(value)
}
