import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createFrameReader } from '../../../../../src/ingest/broker/listeners/websocket/frame-reader.ts'
import { frame } from '../../../../support/websocket-client.ts'

function open({ stopAtControl = false } = {}) {
  const controls: Buffer[] = []
  let empty = 0
  const reader = createFrameReader({
    controlFrame: (bytes) => controls.push(bytes) > 0 && !stopAtControl,
    emptyFrame: () => (empty += 1) > 0,
  })
  /** What the reader finds in the chunks, each of which it may change. */
  const take = (...chunks: Buffer[]) =>
    Buffer.concat(
      chunks.map((chunk) => {
        const own = Buffer.from(chunk)
        return Buffer.from(own.subarray(0, reader.read(own)))
      }),
    )
  return { reader, controls, empty: () => empty, take }
}

/** Cuts `bytes` into chunks of these sizes, over and over. */
function cut(bytes: Buffer, sizes: readonly number[]): Buffer[] {
  const chunks: Buffer[] = []
  for (let at = 0, index = 0; at < bytes.length; index += 1) {
    const size = sizes[index % sizes.length]!
    chunks.push(bytes.subarray(at, at + size))
    at += size
  }
  return chunks
}

const opening = Buffer.from('CONNECT and more')

describe('frames', () => {
  test('[MQTT-6.0.0-2] give the same bytes however they are cut, fragmented and mixed with control frames', () => {
    const part = fc.record({
      payload: fc.uint8Array({ maxLength: 300 }),
      fin: fc.boolean(),
      ping: fc.option(fc.uint8Array({ maxLength: 125 }), { nil: null }),
      mask: fc.uint8Array({ minLength: 4, maxLength: 4 }),
    })
    const sizes = fc.array(fc.integer({ min: 1, max: 400 }), { minLength: 1, maxLength: 5 })
    fc.assert(
      fc.property(fc.array(part, { maxLength: 12 }), sizes, (parts, chunkSizes) => {
        let within = false
        const bytes: Buffer[] = []
        for (const { payload, fin, ping, mask } of parts) {
          if (ping) bytes.push(frame(Buffer.from(ping), { opcode: 9, mask: Buffer.from(mask) }))
          bytes.push(frame(Buffer.from(payload), { opcode: within ? 0 : 2, fin, mask: Buffer.from(mask) }))
          within = !fin
        }
        const { take, controls, empty, reader } = open()
        const payloads = Buffer.concat(parts.map(({ payload }) => payload))
        expect(take(...cut(Buffer.concat(bytes), chunkSizes)).equals(payloads)).toBe(true)
        expect(reader.fault).toBeNull()
        expect(controls).toHaveLength(parts.filter(({ ping }) => ping !== null).length)
        expect(empty()).toBe(parts.filter(({ payload }) => payload.length === 0).length)
      }),
    )
  })

  test.each([
    ['a reserved bit', frame(opening, { reserved: 0x40 }), 'reserved bit'],
    ['no mask', frame(opening, { mask: null }), 'no mask'],
    ['an undefined type', frame(opening, { opcode: 3 }), 'type of a frame, 3'],
    ['an undefined control type', frame(opening, { opcode: 11 }), 'type of a frame, 11'],
    ['a continuation of nothing', frame(opening, { opcode: 0 }), 'Nothing precedes'],
    [
      'a message in a message',
      Buffer.concat([frame(Buffer.alloc(0), { fin: false }), frame(opening)]),
      'within another one',
    ],
    ['a ping in parts', frame(opening, { opcode: 9, fin: false }), 'not whole'],
    ['a large ping', frame(Buffer.alloc(126), { opcode: 9 }), 'larger than 125'],
    [
      'a length of 64 bits',
      Buffer.from([0x82, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 1, 1, 2, 3, 4, 5]),
      'more than 63 bits',
    ],
  ])('with %s are a fault, and nothing behind them is read', (_name, bytes, expected) => {
    for (const size of [1, bytes.length]) {
      const { take, reader } = open()
      expect(take(...cut(Buffer.concat([bytes, frame(opening)]), [size]))).toHaveLength(0)
      expect(reader.fault).toEqual({
        reason: 'websocket_protocol',
        detail: expect.stringContaining(expected),
      })
    }
  })
})
