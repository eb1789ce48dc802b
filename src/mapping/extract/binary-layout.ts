// binary-layout.ts: numbers at fixed places of a binary value.
//
//   at       the first byte, counted from 0; below zero from the end
//   type     u8 i8, u16 u24 u32 and i16 i24 i32 with le or be, f32 f64 with le or be, bits
//   bits     `length` bits from `bit` on: bit 0 is the lowest of the byte at `at`, bit 8 of the next byte
//
// A field beyond the end of the bytes, or whose raw value means "absent", is left out.

import { createExact } from '../fields/exact-number.ts'
import { setOwn } from '../path/path-eval.ts'

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
