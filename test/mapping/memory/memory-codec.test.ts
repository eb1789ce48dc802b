import {
  array,
  assert as check,
  boolean,
  constant,
  dictionary,
  double,
  integer,
  oneof,
  property,
  record as fields,
  string,
  uint8Array,
} from 'fast-check'
import { describe, expect, test } from 'vitest'
import { decodeMemory, encodeMemory } from '../../../src/mapping/memory/device-memory.ts'

const number = double({ noDefaultInfinity: true, noNaN: true })
const time = integer({ min: 0, max: 4_102_444_800_000 })
const name = string({ maxLength: 40 })
const count = integer({ min: 0, max: 100_000 })
const reading = { time, value: number }
const run = fields({
  since: time,
  withheld: count,
  counted: count,
  countedAt: time,
  agreeing: count,
  agreeingSince: time,
  last: fields(reading),
  isOtherUnit: boolean(),
})
const content = fields({
  asset: oneof(name, string({ unit: 'grapheme', maxLength: 200 })),
  values: dictionary(name, fields({ time, value: oneof(name, number, boolean()) })),
  counters: dictionary(name, fields({ ...reading, run: oneof(constant(null), run) })),
}).map(({ asset, values, counters }) => ({
  asset,
  values: new Map(Object.entries(values)),
  counters: new Map(Object.entries(counters)),
}))

describe('the stored memory of a device', () => {
  test('is read as it was written', () => {
    check(
      property(content, (one) => {
        expect(decodeMemory(encodeMemory(one))).toEqual(one)
      }),
    )
  })

  test('is longer than the page that it is written in', () => {
    const values = new Map(
      Array.from({ length: 500 }, (_, index) => [`value ${index}`, { time: index, value: 'ü'.repeat(256) }]),
    )
    const one = { asset: 'A', values, counters: new Map() }
    expect(decodeMemory(encodeMemory(one))).toEqual(one)
  })

  test('is nothing where bytes are missing or added, or are any bytes', () => {
    check(
      property(content, integer({ min: 0, max: 1000 }), (one, at) => {
        const bytes = encodeMemory(one)
        expect(decodeMemory(bytes.subarray(0, at % bytes.length))).toBeNull()
        expect(decodeMemory(Buffer.concat([bytes, Buffer.alloc(1)]))).toBeNull()
      }),
    )
    check(
      property(array(uint8Array({ maxLength: 60 })), (lists) => {
        for (const list of lists) expect(() => decodeMemory(Buffer.from([2, ...list]))).not.toThrow()
      }),
    )
    expect(decodeMemory(Buffer.from('{"asset":"A"}'))).toBeNull()
  })
})
