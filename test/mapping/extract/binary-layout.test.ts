import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { rowsBeside } from '../../support/case-rows.ts'
import { createScale, ratioOf } from '../../../src/mapping/fields/decimal.ts'
import {
  createExact,
  compileField,
  compileLayout,
  layoutTypes,
  type LayoutField,
} from '../../../src/mapping/extract/binary-layout.ts'

const rows = rowsBeside(import.meta.filename) as {
  integers: [type: LayoutField['type'], at: number, value: number][]
  bits: [at: number, bit: number, length: number, value: number][]
  outside: [type: LayoutField['type'], at: number][]
  scaled: [scale: number, offset: number, raw: number, value: number][]
}
const bytes = Buffer.from('0102030405060708fffefdfcfbfaf9f8', 'hex')

function read(field: Partial<LayoutField>, from: Buffer = bytes): unknown {
  return compileField({ at: 0, type: 'u8', scale: 1, offset: 0, absent: [], ...field })(from)
}

describe('a field of a layout', () => {
  test.each(rows.integers)('%s at %d is %d', (type, at, value) => {
    expect(read({ type, at })).toBe(value)
  })

  test('can be a floating-point number of either size and byte order', () => {
    const floats = Buffer.alloc(24)
    floats.writeFloatLE(1.5, 0)
    floats.writeFloatBE(-2.25, 4)
    floats.writeDoubleLE(48.8566, 8)
    floats.writeDoubleBE(2.3522, 16)
    expect(read({ type: 'f32le' }, floats)).toBe(1.5)
    expect(read({ type: 'f32be', at: 4 }, floats)).toBe(-2.25)
    expect(read({ type: 'f64le', at: 8 }, floats)).toBe(48.8566)
    expect(read({ type: 'f64be', at: 16 }, floats)).toBe(2.3522)
    expect(read({ type: 'f64be', at: 16, scale: 0.1, offset: 1 }, floats)).toBe(1.23522)
  })

  test.each(['f32le', 'f64be'] as const)('%s that is infinite or no number is not there', (type) => {
    for (const value of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]) {
      const float = Buffer.alloc(8)
      if (type === 'f32le') float.writeFloatLE(value, 0)
      else float.writeDoubleBE(value, 0)
      expect(read({ type }, float)).toBeUndefined()
      expect(read({ type, scale: 2 }, float)).toBeUndefined()
    }
  })

  test.each(rows.bits)('bits at %d from %d, %d of them, are %d', (at, bit, length, value) => {
    expect(read({ at, type: 'bits', bit, length })).toBe(value)
  })

  test('of bits equals the result of shifting the whole message', () => {
    const all = BigInt(`0x${bytes.toReversed().reduce((text, byte) => text + hex(byte), '')}`)
    const at = fc.integer({ min: 0, max: 4 })
    fc.assert(
      fc.property(
        at,
        fc.integer({ min: 0, max: 63 }),
        fc.integer({ min: 1, max: 32 }),
        (start, bit, length) => {
          const wanted = (all >> BigInt(start * 8 + bit)) & ((1n << BigInt(length)) - 1n)
          expect(read({ at: start, type: 'bits', bit, length })).toBe(Number(wanted))
        },
      ),
    )
  })

  test('whose raw value means "not available" is omitted', () => {
    expect(read({ type: 'u16be', at: 8, absent: [0xfffe] })).toBeUndefined()
    expect(read({ type: 'u16be', at: 8, scale: 2, absent: [0xfffe * 2] })).toBe(0xfffe * 2)
  })

  test.each(rows.outside)('%s at %d does not fit and is left out', (type, at) => {
    expect(read({ type, at })).toBeUndefined()
  })

  test.each(rows.scaled)('x %d + %d of %d is exactly %d', (scale, offset, raw, value) => {
    expect(read({ scale, offset }, Buffer.from([raw]))).toBe(value)
  })

  test('gives no record if all fields are missing', () => {
    const field = { at: 4, type: 'u8', scale: 1, offset: 0, absent: [] } as const
    expect(compileLayout({ a: field })(Buffer.alloc(4))).toBeUndefined()
    const own = compileLayout(
      JSON.parse(`{"__proto__":${JSON.stringify(field)},"b":${JSON.stringify(field)}}`),
    )
    const found = own(Buffer.alloc(5)) ?? {}
    expect(Object.keys(found)).toEqual(['__proto__', 'b'])
    expect(Object.getPrototypeOf(found)).toBe(Object.prototype)
  })
})

describe('a scaled number', () => {
  test('is a number if a double can hold all its digits, else decimal text', () => {
    expect(createExact(0.1, 0)(3)).toBe(0.3)
    expect(createExact(1e-7, 0)(1_234_567_890)).toBe(123.456789)
    expect(createExact(0.123456789012, 0)(4_294_967_295)).toBe('530242871.15225536254')
    expect(createExact(1e-30, 1)(1)).toBe('1.000000000000000000000000000001')
    expect(createExact(1e20, 0)(3)).toBe(3e20)
    expect(createExact(1, 0.1)(0.2)).toBe(0.3)
    expect(createExact(0.1, 0)(0.7)).toBe(0.07)
    expect(createExact(30_000_001, -90_000_000_000_000_000)(3_000_000_001)).toBe(3_030_000_001)
    expect(createExact(0.1, 0)(1e300)).toBeUndefined()
    expect(() => createExact(1e-300, 0)).toThrow('has the number 1e-300, which is too')
    expect(createExact(0.1, 0)(Number.NaN)).toBeUndefined()
    expect(createExact(1, 0)(Number.POSITIVE_INFINITY)).toBeUndefined()
  })

  test('equals the result of integer arithmetic, for any scale', () => {
    const raw = fc.integer({ min: -(2 ** 31), max: 2 ** 32 - 1 })
    const decimalNumber = fc
      .tuple(fc.integer({ min: -999_999, max: 999_999 }), fc.integer({ min: 0, max: 9 }))
      .map(([digits, places]) => Number(`${digits}e-${places}`))
    const scale = decimalNumber.filter((value) => value !== 0)
    const plain = createScale(ratioOf('1'), 0)
    fc.assert(
      fc.property(raw, scale, decimalNumber, (value, factor, offset) => {
        const found = createExact(factor, offset)(value)
        const [f, o] = [ratioOf(String(factor)), ratioOf(String(offset))]
        const top = BigInt(value) * f.numerator * o.denominator + o.numerator * f.denominator
        const bottom = f.denominator * o.denominator
        const text = plain(String(found)) ?? ''
        const shown = ratioOf(text)
        expect(shown.numerator * bottom).toBe(top * shown.denominator)
        expect(typeof found === 'string' && String(Number(found)) === found).toBe(false)
      }),
    )
  })
})

test('no field throws, for any bytes', () => {
  const field = fc.record({
    at: fc.integer({ min: -70, max: 70 }),
    type: fc.constantFrom(...layoutTypes),
    bit: fc.integer({ min: 0, max: 63 }),
    length: fc.integer({ min: 1, max: 32 }),
    scale: fc.double({ min: 1e-30, max: 1e30, noNaN: true }),
    offset: fc.oneof(fc.constant(0), fc.double({ min: -1e30, max: -1e-30, noNaN: true })),
    absent: fc.array(fc.integer(), { maxLength: 2 }),
  })
  fc.assert(
    fc.property(field, fc.uint8Array({ maxLength: 64 }), (one, array) => {
      const value = compileField(one)(Buffer.from(array))
      expect(['undefined', 'number', 'string']).toContain(typeof value)
    }),
  )
})

function hex(byte: number): string {
  return byte.toString(16).padStart(2, '0')
}
