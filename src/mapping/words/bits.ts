// bits.ts: bits of a whole number: `bit: 3` is 0 or 1, `bit: 4-7` the number that these bits are. Bit 0 is
// the lowest. The path function `$bit(3)` is the same.
//
// The number may be a text, in decimals or as 0x1F. A negative one has the bits of its two's complement. A
// JSON number beyond 2^53 was rounded by the parser, so its bits are not known.

import { unusable } from './unusable.ts'

/** Both included. */
export type BitRange = { readonly low: number; readonly high: number }

/** A mask of inputs has at most 64 bits. */
export const bitMax = 63

export const bitRangePattern = /^([0-9]{1,2})(?:-([0-9]{1,2}))?$/

/** For a bit or a range within `bitMax`; undefined for anything else. */
export function parseBits(text: string): BitRange | undefined {
  const [, first, last = first] = bitRangePattern.exec(text) ?? []
  const range = { low: Number(first), high: Number(last) }
  return range.low <= range.high && range.high <= bitMax ? range : undefined
}

/** For a bit that the schema accepts. */
export function rangeOf(bit: number | string): BitRange {
  return parseBits(String(bit)) ?? { low: 0, high: bitMax }
}

/** Undefined for an absent value. A range of more than 53 bits is decimal text where it needs to be. */
export function bitsOf(value: unknown, { low, high }: BitRange): unknown {
  if (value === undefined || value === null || value === '') return undefined
  if (typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= 0x7fff_ffff && high < 31)
    return (value >>> low) & (2 ** (high - low + 1) - 1)
  const number = wholeNumberOf(value)
  if (number === undefined) return unusable
  const found = BigInt.asUintN(high - low + 1, number >> BigInt(low))
  return found <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(found) : String(found)
}

function wholeNumberOf(value: unknown): bigint | undefined {
  if (typeof value === 'number') return Number.isSafeInteger(value) ? BigInt(value) : undefined
  if (typeof value !== 'string' || !/^(?:-?[0-9]{1,20}|0[xX][0-9a-fA-F]{1,16})$/.test(value)) return undefined
  return BigInt(value)
}
