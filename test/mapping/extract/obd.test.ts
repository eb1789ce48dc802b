import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { compileObd, type ObdSignal } from '../../../src/mapping/extract/obd.ts'

function signal(rest: Partial<ObdSignal> & { pid: number }): ObdSignal {
  return { service: 1, at: 0, type: 'u8', scale: 1, offset: 0, absent: [], ...rest }
}

const signals = {
  odometer: signal({ pid: 0xa6, type: 'u32be', scale: 0.1 }),
  speed: signal({ pid: 0x0d }),
  own: signal({ service: 0x22, pid: 0xf1a6, type: 'u16be' }),
  last: signal({ pid: 0x7f, at: 12 }),
}
const find = compileObd(signals)

/** An answer as frames of eight bytes, as a control unit sends it. */
function framesOf(answer: readonly number[], id: unknown = 0x7e8) {
  if (answer.length < 8) return [{ id, data: [answer.length, ...answer, ...padding(7 - answer.length)] }]
  const frames = [{ id, data: [0x10 + (answer.length >> 8), answer.length & 0xff, ...answer.slice(0, 6)] }]
  for (let at = 6, number = 1; at < answer.length; at += 7, number += 1) {
    const part = answer.slice(at, at + 7)
    frames.push({ id, data: [0x20 + (number % 16), ...part, ...padding(7 - part.length)] })
  }
  return frames
}

const padding = (count: number) => Array.from({ length: count }, () => 0xaa)

describe('an OBD answer', () => {
  test.each([0x7e8, 0x7ef, '7E8', '0x7e8', 0x18daf110, '18DAF110', 0x98daf1ff])(
    'of the control unit %s is read, from a list and alone',
    (id) => {
      const frames = framesOf([0x41, 0x0d, 55], id)
      expect(find(frames)).toEqual({ speed: 55 })
      expect(find(frames[0])).toEqual({ speed: 55 })
    },
  )

  test.each([0x7df, 0x7e0, 0x7f0, 0x18daf000, 0x18dbf110, -1, 1.5, '', '0x', 'x', '1234567890', null, {}])(
    'with the identifier %j is none',
    (id) => {
      expect(find(framesOf([0x41, 0x0d, 55], id))).toBeUndefined()
    },
  )

  test('is read from bytes as a text, and only as far as it says', () => {
    expect(find({ id: 0x7e8, data: '06 41 A6 00 0D C3 D8 AA'.replaceAll(' ', '') })).toEqual({
      odometer: 90_210.4,
    })
    expect(find({ id: 0x7e8, data: [5, 0x41, 0xa6, 0, 13, 195, 216, 0] })).toBeUndefined()
    expect(find({ id: 0x7e8, data: [7, 0x41, 0x0d] })).toBeUndefined()
  })

  test('has identifiers of two bytes in service 22', () => {
    expect(find(framesOf([0x62, 0xf1, 0xa6, 1, 2]))).toEqual({ own: 258 })
    expect(find(framesOf([0x62, 0xa6, 0, 0, 0, 1]))).toBeUndefined()
  })

  test('counts if it comes from the lowest control unit, in any order', () => {
    const engine = framesOf([0x41, 0x0d, 55], 0x7e8)
    const gearbox = framesOf([0x41, 0x0d, 99], 0x7e9)
    expect(find([...gearbox, ...engine])).toEqual({ speed: 55 })
    expect(find([...engine, ...gearbox])).toEqual({ speed: 55 })
    expect(find(gearbox)).toEqual({ speed: 99 })
  })

  test('that refuses the request gives nothing', () => {
    expect(find(framesOf([0x7f, 0x01, 0x12]))).toBeUndefined()
  })

  test('in several frames is put together, also between those of another control unit', () => {
    const data = Array.from({ length: 13 }, (_, at) => at + 1)
    const long = framesOf([0x41, 0x7f, ...data])
    expect(long).toHaveLength(3)
    expect(find(long)).toEqual({ last: 13 })
    const [first, second, third] = long
    const other = framesOf([0x41, 0x0d, 99], 0x7e9)
    expect(find([first, ...other, second, third])).toEqual({ last: 13, speed: 99 })
    for (const broken of [
      [first, third],
      [second, third],
      [first, second],
      [first, third, second],
      [first, first],
    ])
      expect(find(broken)).toBeUndefined()
    const short = framesOf([0x41, 0x0d, 7])
    expect(find([first, ...short, second, third])).toEqual({ speed: 7 })
  })

  test('is the same after any cut into frames', () => {
    const bytes = fc.array(fc.integer({ min: 0, max: 255 }), { minLength: 13, maxLength: 4000 })
    fc.assert(
      fc.property(bytes, (data) => {
        expect(find(framesOf([0x41, 0x7f, ...data]))).toEqual({ last: data[12] })
      }),
    )
  })

  test('never throws', () => {
    const frame = fc.record({
      id: fc.oneof(fc.constantFrom(0x7e8, 0x7e9, '7E8'), fc.anything()),
      data: fc.oneof(
        fc.array(fc.integer({ min: 0, max: 255 }), { maxLength: 9 }),
        fc.array(fc.constantFrom(0x10, 0x21, 0x22, 0x41, 0x7f, 0, 3), { maxLength: 8 }),
        fc.anything(),
      ),
    })
    fc.assert(
      fc.property(fc.oneof(fc.array(fc.oneof(frame, fc.anything())), fc.anything()), (value) => {
        expect(() => find(value)).not.toThrow()
      }),
    )
  })
})
