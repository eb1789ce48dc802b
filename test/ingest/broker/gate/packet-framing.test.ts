import { describe, expect, test } from 'vitest'
import { createFraming } from '../../../../src/ingest/broker/gate/packet-framing.ts'
import { createRandom } from '../../../support/random.ts'
import { connectBytes, publishBytes } from '../../../support/mqtt-device.ts'

const limits = { connectBytesMax: 100, packetBytesMax: 1000 }
const hello = connectBytes('truck')
const publish = (messageId: number, size = 10) =>
  publishBytes({ topic: 't', payload: Buffer.alloc(size), messageId, qos: 1 })

/** A framing that has passed CONNECT on. */
function connected() {
  const framing = createFraming(limits)
  framing.follow(hello, 1)
  return framing
}

describe('limits hold before anything is buffered', () => {
  test.each([
    ['another packet than CONNECT comes first', [0x30], 'not_connect'],
    ['CONNECT announces more than its limit', [0x10, 101], 'connect_too_large'],
    ['CONNECT announces 200 MB', [0x10, 0x80, 0x84, 0xaf, 0x5f], 'connect_too_large'],
    ['the length of CONNECT has a fifth byte', [0x10, 0x80, 0x80, 0x80, 0x80], 'malformed_length'],
  ] as const)('the connection ends when %s', (_what, bytes, violation) => {
    const framing = createFraming(limits)
    expect(framing.follow(Buffer.from(bytes), 10)).toBe(-1)
    expect(framing.violation).toBe(violation)
  })

  test.each([
    ['a packet announces one byte more than the limit', [0x32, 0xe9, 0x07], 'packet_too_large'],
    ['a packet announces 200 MB', [0x32, 0x80, 0x84, 0xaf, 0x5f], 'packet_too_large'],
    ['a length has a fifth byte', [0x32, 0x80, 0x80, 0x80, 0x80, 0x01], 'malformed_length'],
  ] as const)('after CONNECT the connection ends when %s', (_what, bytes, violation) => {
    const framing = connected()
    expect(framing.follow(Buffer.from(bytes), 10)).toBe(-1)
    expect(framing.violation).toBe(violation)
    // It stays ended.
    expect(framing.follow(publish(1), 10)).toBe(-1)
  })

  test('a packet of exactly the limit passes', () => {
    const framing = connected()
    const largest = Buffer.concat([Buffer.from([0x30, 0xe8, 0x07]), Buffer.alloc(1000)])
    expect(framing.follow(largest, 10)).toBe(largest.length)
  })
})

describe('portions end where a packet ends', () => {
  test('CONNECT is passed on alone', () => {
    const framing = createFraming(limits)
    expect(framing.connectEnded).toBe(false)
    expect(framing.follow(Buffer.concat([hello, publish(1)]), 10)).toBe(hello.length)
    expect(framing.connectEnded).toBe(true)
  })

  test('no more messages pass than may be in flight', () => {
    const one = publish(1)
    const chunk = Buffer.concat([one, publish(2), publish(3)])
    expect(connected().follow(chunk, 2)).toBe(one.length * 2)
  })

  test('QoS 0 and packets other than PUBLISH do not count', () => {
    const chunk = Buffer.concat([
      publishBytes({ topic: 't', payload: 'x', qos: 0 }),
      Buffer.from([0xc0, 0]),
      publishBytes({ topic: 't', payload: 'y', qos: 0 }),
    ])
    expect(connected().follow(chunk, 0)).toBe(chunk.length)
  })

  test('every cut of the stream into segments gives the same result', () => {
    for (let seed = 1; seed <= 200; seed += 1) {
      const random = createRandom(seed)
      const packets = [hello]
      for (let index = 1; index <= 30; index += 1) packets.push(publish(index, random.below(900)))
      const stream = Buffer.concat(packets)
      const framing = createFraming(limits)
      let passed = 0
      let pending = Buffer.alloc(0)
      for (let at = 0; at < stream.length;) {
        const step = 1 + random.below(700)
        pending = Buffer.concat([pending, stream.subarray(at, at + step)])
        at += step
        while (pending.length > 0) {
          const end = framing.follow(pending, 1 + random.below(3))
          expect(end, `seed ${seed}`).toBeGreaterThan(0)
          passed += end
          pending = pending.subarray(end)
        }
      }
      expect(passed, `seed ${seed}`).toBe(stream.length)
      expect(framing.violation).toBe(null)
    }
  })
})
