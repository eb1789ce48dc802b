// binary-layout.ts: numbers at fixed places of a binary value.
//
//   at       the first byte, counted from 0; below zero from the end
//   type     u8 i8, u16 u24 u32 and i16 i24 i32 with le or be, f32 f64 with le or be, bits
//   bits     `length` bits from `bit` on: bit 0 is the lowest of the byte at `at`, bit 8 of the next byte
//
// A field beyond the end of the bytes, or whose raw value means "absent", is left out.

import { setOwn } from '../path/path-eval.ts'
import { createScale, ratioOf } from '../fields/decimal.ts'

export type LayoutField = {
  at: number
  type: (typeof layoutTypes)[number]
  bit?: number | undefined
  length?: number | undefined
  scale: number
  offset: number
  absent: readonly number[]
}

/** Undefined for an absent field. */
export type ReadField = (bytes: Buffer) => number | string | undefined

/** Undefined where no field was found. */
export type ReadFields<Bytes> = (bytes: Bytes) => Record<string, unknown> | undefined

type Word = { size: number; read: (bytes: Buffer, at: number) => number }

const words = {
  u8: { size: 1, read: (bytes, at) => bytes.readUInt8(at) },
  i8: { size: 1, read: (bytes, at) => bytes.readInt8(at) },
  u16le: { size: 2, read: (bytes, at) => bytes.readUInt16LE(at) },
  u16be: { size: 2, read: (bytes, at) => bytes.readUInt16BE(at) },
  i16le: { size: 2, read: (bytes, at) => bytes.readInt16LE(at) },
  i16be: { size: 2, read: (bytes, at) => bytes.readInt16BE(at) },
  u24le: { size: 3, read: (bytes, at) => bytes.readUIntLE(at, 3) },
  u24be: { size: 3, read: (bytes, at) => bytes.readUIntBE(at, 3) },
  i24le: { size: 3, read: (bytes, at) => bytes.readIntLE(at, 3) },
  i24be: { size: 3, read: (bytes, at) => bytes.readIntBE(at, 3) },
  u32le: { size: 4, read: (bytes, at) => bytes.readUInt32LE(at) },
  u32be: { size: 4, read: (bytes, at) => bytes.readUInt32BE(at) },
  i32le: { size: 4, read: (bytes, at) => bytes.readInt32LE(at) },
  i32be: { size: 4, read: (bytes, at) => bytes.readInt32BE(at) },
  f32le: { size: 4, read: (bytes, at) => bytes.readFloatLE(at) },
  f32be: { size: 4, read: (bytes, at) => bytes.readFloatBE(at) },
  f64le: { size: 8, read: (bytes, at) => bytes.readDoubleLE(at) },
  f64be: { size: 8, read: (bytes, at) => bytes.readDoubleBE(at) },
} as const satisfies Record<string, Word>

export const layoutTypes = [...(Object.keys(words) as (keyof typeof words)[]), 'bits'] as const

export function compileLayout(layout: Readonly<Record<string, LayoutField>>): ReadFields<Buffer> {
  const fields = Object.entries(layout).map(([name, field]) => ({ name, read: compileField(field) }))
  return (bytes) => {
    let found: Record<string, unknown> | undefined
    for (const { name, read } of fields) {
      const value = read(bytes)
      if (value === undefined) continue
      found ??= {}
      setOwn(found, name, value)
    }
    return found
  }
}

/** Raw values above `limit` mean "absent". */
export function compileField(field: LayoutField, limit = Number.POSITIVE_INFINITY): ReadField {
  const { size, read } = wordOf(field)
  const { at } = field
  const scaled = createExact(field.scale, field.offset)
  const absent = new Set(field.absent)
  return (bytes) => {
    const start = at < 0 ? bytes.length + at : at
    if (start < 0 || start + size > bytes.length) return undefined
    const raw = read(bytes, start)
    if (raw > limit || (absent.size > 0 && absent.has(raw))) return undefined
    return scaled(raw)
  }
}

function wordOf({ type, bit = 0, length = 1 }: LayoutField): Word {
  if (type !== 'bits') return words[type]
  const skipped = Math.floor(bit / 8)
  const low = bit % 8
  const read = Math.ceil((low + length) / 8)
  const divisor = 2 ** low
  const modulus = 2 ** length
  return {
    size: skipped + read,
    // At most 39 bits are read: too many for the bitwise operators, few enough for a number.
    read: (bytes, at) => Math.floor(bytes.readUIntLE(at + skipped, read) / divisor) % modulus,
  }
}

// Scales a raw number of a binary field without the error of a float. The result is a number
// where a double holds it to its last digit, and decimal text elsewhere.

/** Undefined for infinities, NaN, and values whose decimal is too long. */
type Exact = (raw: number) => number | string | undefined

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
