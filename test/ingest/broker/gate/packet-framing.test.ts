import { describe, expect, test } from 'vitest'
import {
  createFraming,
  type Allowance,
} from '../../../../src/ingest/broker/gate/packet-reader/packet-framing.ts'
import { createRandom } from '../../../support/random.ts'
import { connectBytes, publishBytes } from '../../../support/mqtt-device.ts'

const limits = { connectBytesMax: 100, packetBytesMax: 1000 }
const hello = connectBytes('truck')
const publish = (messageId: number, size = 10) =>
  publishBytes({ topic: 't', payload: Buffer.alloc(size), messageId, qos: 1 })

function allow(messages: number, more: Partial<Allowance> = {}): Allowance {
  return { messages, packets: 1000, control: 1000, ...more }
}

/** A framing that has passed CONNECT on. */
function connected() {
  const framing = createFraming(limits)
  framing.follow(hello, allow(1))
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
    expect(framing.follow(Buffer.from(bytes), allow(10))).toBe(-1)
    expect(framing.violation?.reason).toBe(violation)
  })

  test.each([
    ['a packet announces one byte more than the limit', [0x32, 0xe9, 0x07], 'packet_too_large'],
    ['a packet announces 200 MB', [0x32, 0x80, 0x84, 0xaf, 0x5f], 'packet_too_large'],
    ['a length has a fifth byte', [0x32, 0x80, 0x80, 0x80, 0x80, 0x01], 'malformed_length'],
  ] as const)('after CONNECT the connection ends when %s', (_what, bytes, violation) => {
    const framing = connected()
    expect(framing.follow(Buffer.from(bytes), allow(10))).toBe(-1)
    expect(framing.violation?.reason).toBe(violation)
    // It stays ended.
    expect(framing.follow(publish(1), allow(10))).toBe(-1)
  })

  test.each([
    [[0x32, 0xe9, 0x07], 'A packet that it sent has 1001 bytes, and max_packet_bytes is 1000.'],
    // The end of its length has not come.
    [
      [0x32, 0x80, 0x84, 0xaf],
      'A packet that it sent has more than 1000 bytes, and max_packet_bytes is 1000.',
    ],
  ] as const)('the size of a packet and the limit are named: %j', (bytes, detail) => {
    const framing = connected()
    framing.follow(Buffer.from(bytes), allow(10))
    expect(framing.violation).toEqual({ reason: 'packet_too_large', detail })
  })

  test('the size of a CONNECT and its limit are named', () => {
    const framing = createFraming(limits)
    framing.follow(Buffer.from([0x10, 101]), allow(10))
    expect(framing.violation?.detail).toBe('Its CONNECT has 101 bytes, and max_connect_bytes is 100.')
  })

  test.each([
    ['GET /mqtt HTTP/1.1', /^It speaks HTTP, .* listener for WebSocket/],
    ['G', /^It speaks HTTP/],
    ['GO', /^Its first packet is not CONNECT/],
  ])('%s is no CONNECT', (start, detail) => {
    const framing = createFraming(limits)
    framing.follow(Buffer.from(start), allow(10))
    expect(framing.violation?.reason).toBe('not_connect')
    expect(framing.violation?.detail).toMatch(detail)
  })

  test('a packet of exactly the limit passes', () => {
    const framing = connected()
    const largest = Buffer.concat([Buffer.from([0x30, 0xe8, 0x07]), Buffer.alloc(1000)])
    expect(framing.follow(largest, allow(10))).toBe(largest.length)
  })
})

test('what stands before a violation passes first', () => {
  const framing = connected()
  const chunk = Buffer.concat([publish(1), Buffer.from([0xc0, 1, 0])])
  expect(framing.follow(chunk, allow(10))).toBe(publish(1).length)
  expect([framing.stop, framing.violation]).toEqual(['fault', null])
  expect(framing.follow(chunk.subarray(publish(1).length), allow(10))).toBe(-1)
  expect(framing.violation?.detail).toBe('Its PINGREQ has the remaining length 1, and not 0 (MQTT 3.12.1).')
})

describe('portions end where a packet ends', () => {
  test('CONNECT is passed on alone', () => {
    const framing = createFraming(limits)
    expect(framing.connectEnded).toBe(false)
    expect(framing.follow(Buffer.concat([hello, publish(1)]), allow(10))).toBe(hello.length)
    expect(framing.connectEnded).toBe(true)
  })

  test('a CONNECT with a long password is no flood of control packets', () => {
    const framing = createFraming({ ...limits, connectBytesMax: 65_536 })
    const long = connectBytes('truck', { username: 'truck', password: Buffer.alloc(60_000, 'x') })
    expect(framing.follow(long, allow(10))).toBe(long.length)
    expect(framing.control).toBeLessThan(250)
  })

  test('no more messages pass than may be in flight', () => {
    const one = publish(1)
    const chunk = Buffer.concat([one, publish(2), publish(3)])
    expect(connected().follow(chunk, allow(2))).toBe(one.length * 2)
  })

  test('messages of QoS 0 and PINGREQ do not count as messages in flight', () => {
    const chunk = Buffer.concat([
      publishBytes({ topic: 't', payload: 'x', qos: 0 }),
      Buffer.from([0xc0, 0]),
      publishBytes({ topic: 't', payload: 'y', qos: 0 }),
    ])
    expect(connected().follow(chunk, allow(1))).toBe(chunk.length)
  })

  test('where no message may be in flight, packets pass up to the next PUBLISH', () => {
    const framing = connected()
    const chunk = Buffer.concat([Buffer.from([0xc0, 0]), publishBytes({ topic: 't', payload: 'x', qos: 0 })])
    expect(framing.follow(chunk, allow(0))).toBe(2)
    expect(framing.stop).toBe('publish')
  })

  /** With one topic filter. */
  const subscribe = (size: number) =>
    Buffer.from([0x82, 0x80 | (size & 0x7f), size >> 7, 0, 1, 0, size - 5, ...Buffer.alloc(size - 5, 'a'), 0])

  test('the budget of a turn bounds packets, control packets by their size', () => {
    const pings = Buffer.from([0xc0, 0, 0xc0, 0, 0xc0, 0])
    const framing = connected()
    expect(framing.follow(pings, allow(1, { packets: 2 }))).toBe(4)
    expect(framing.stop).toBe('turn')
    const chunk = Buffer.concat([subscribe(60), subscribe(10), subscribe(10)])
    // The first one counts as two.
    expect(framing.follow(chunk, allow(1, { control: 3 }))).toBe(63 + 13)
    expect(framing.stop).toBe('turn')
    expect(framing.control).toBe(3)
  })

  test('counts PUBREL and messages of QoS 2 apart from other control packets', () => {
    const framing = connected()
    const two = publishBytes({ topic: 't', payload: 'x', qos: 2 })
    framing.follow(Buffer.concat([two, two, Buffer.from([0x62, 2, 0, 1, 0xc0, 0])]), allow(5))
    expect([framing.control, framing.releases, framing.unreleased]).toEqual([1, 1, 2])
  })

  test('every cut of the stream into segments gives the same packets', () => {
    for (let seed = 1; seed <= 200; seed += 1) {
      const random = createRandom(seed)
      const packets = [hello]
      for (let index = 1; index <= 30; index += 1) packets.push(publish(index, random.below(900)))
      const stream = Buffer.concat(packets)
      const ends = new Set<number>()
      let sum = 0
      for (const { length } of packets) ends.add((sum += length))
      const framing = createFraming(limits)
      let passed = 0
      for (let at = 0; at < stream.length;) {
        at = Math.min(stream.length, at + 1 + random.below(700))
        for (;;) {
          const end = framing.follow(stream.subarray(passed, at), allow(1 + random.below(3)))
          if (end === 0) break
          passed += end
          expect(ends, `seed ${seed}`).toContain(passed)
        }
        expect(framing.stop === 'partial' || passed === at).toBe(true)
      }
      expect(passed, `seed ${seed}`).toBe(stream.length)
      expect(framing.violation).toBe(null)
    }
  })
})
