import { generate, parser, type IPublishPacket } from 'mqtt-packet'
import { describe, expect, test } from 'vitest'

import { takePublishes } from '../../../../src/ingest/broker/gate/packet-reader/publish-fast-path.ts'
import { createMemoryIntakeSpool } from '../../../support/memory-intake-spool.ts'
import { openIngest } from '../../../support/ingest-world.ts'
import { messageOf } from '../../../support/mapping-world.ts'
import { createDevice, publishBytes } from '../../../support/mqtt-device.ts'
import { createRandom } from '../../../support/random.ts'

const packetBytesMax = 20_400

type Taken = { topic: string; payload: string; qos: number; retain: boolean; dup: boolean; messageId: number }

function takeAll(portion: Buffer): { taken: Taken[]; end: number } {
  const taken: Taken[] = []
  const message = messageOf('')
  const take = (messageId: number) => {
    const { topic, bytes, qos, retain, dup } = message
    return taken.push({ topic, payload: bytes.toString(), qos, retain, dup, messageId }) > 0
  }
  const end = takePublishes(portion, packetBytesMax, message, { takePublish: take, takePing: () => true })
  return { taken, end }
}

describe('the fast path of a message', () => {
  test('gives the same messages as a full parser, over random messages', () => {
    const random = createRandom(5)
    const expected: Taken[] = []
    const parse = parser({ protocolVersion: 4 })
    parse.on('packet', (packet) => {
      const { topic, payload, qos, retain, dup, messageId } = packet as IPublishPacket
      expected.push({ topic, payload: payload.toString(), qos, retain, dup, messageId: messageId ?? 0 })
    })
    const messages = Array.from({ length: 500 }, (_, index) => {
      const qos = random.below(2) as 0 | 1
      const payload = 'x'.repeat(random.pick([0, 1, 100, 127, 128, 16_383, 20_000]))
      const topic = random.pick(['a', 'fleet/truck-7', '/hfp/\u00e4\u00f6/ /', 't'.repeat(300)])
      return publishBytes({
        topic,
        payload,
        qos,
        messageId: index + 1,
        retain: random.chance(0.2),
        dup: qos === 1 && random.chance(0.2),
      })
    })
    const portion = Buffer.concat(messages)
    parse.parse(portion)
    const { taken, end } = takeAll(portion)
    expect(taken).toEqual(expected)
    expect(end).toBe(portion.length)
  })

  const first = publishBytes({ topic: 't', payload: 'first', messageId: 1 })
  const others: [what: string, bytes: Buffer][] = [
    ['a topic that may be malformed', publishBytes({ topic: 'a/\ufffd', payload: 'x', messageId: 2 })],
    ['a PINGREQ with a length', Buffer.from([0xc0, 1, 0])],
    ['half of a PINGREQ', Buffer.from([0xc0])],
    ['a message of QoS 2', publishBytes({ topic: 't', payload: 'x', qos: 2, messageId: 2 })],
    ['a PUBREL', generate({ cmd: 'pubrel', messageId: 2 })],
    ['a DISCONNECT', generate({ cmd: 'disconnect' })],
    ['QoS 3', Buffer.from([0x36, 3, 0, 1, 0x74])],
    ['packet identifier 0', Buffer.from([0x32, 5, 0, 1, 0x74, 0, 0])],
    ['a topic that is longer than its packet', Buffer.from([0x30, 3, 0, 9, 0x74])],
    ['a packet without a topic length', Buffer.from([0x30, 1, 0])],
    ['no room for the packet identifier', Buffer.from([0x32, 4, 0, 1, 0x74, 1])],
    ['half of a message', publishBytes({ topic: 't', payload: 'whole', messageId: 3 }).subarray(0, 8)],
    ['a length that is not all there', Buffer.from([0x30, 0x80])],
  ]

  test.each(others)('stops at %s and leaves it to aedes', (_what, bytes) => {
    const { taken, end } = takeAll(Buffer.concat([first, bytes]))
    expect(taken).toHaveLength(1)
    expect(end).toBe(first.length)
  })

  test('takes a PINGREQ between messages', () => {
    let pings = 0
    const portion = Buffer.concat([first, generate({ cmd: 'pingreq' }), first])
    const taker = { takePublish: () => true, takePing: () => (pings += 1) > 0 }
    expect(takePublishes(portion, packetBytesMax, messageOf(''), taker)).toBe(portion.length)
    expect(pings).toBe(1)
  })

  test('reads nothing more after the caller stops it', () => {
    let calls = 0
    const stop = () => {
      calls += 1
      return false
    }
    const taker = { takePublish: stop, takePing: stop }
    const end = takePublishes(Buffer.concat([first, first]), packetBytesMax, messageOf(''), taker)
    expect(calls).toBe(1)
    expect(end).toBe(first.length)
  })

  test('keeps the order of messages, pings and QoS 2 however the bytes are cut into segments', async () => {
    const spool = createMemoryIntakeSpool({ commits: 'auto' })
    await using world = await openIngest(spool)
    const random = createRandom(9)
    // It must not put its PUBREL into the middle of a message.
    const device = await createDevice({ port: world.port, clientId: 'truck', releases: false })
    await device.connect()
    const count = 400
    const bytes = Buffer.concat(
      Array.from({ length: count }, (_, index) => {
        const qos = random.chance(0.2) ? 2 : 1
        const message = publishBytes({
          topic: 't',
          payload: `m${index} ${'x'.repeat(random.below(300))}`,
          qos,
          messageId: index + 1,
        })
        return random.chance(0.1) ? Buffer.concat([message, generate({ cmd: 'pingreq' })]) : message
      }),
    )
    for (let offset = 0; offset < bytes.length;) {
      const step = 1 + random.below(random.pick([3, 400, 5000]))
      device.sendBytes(bytes.subarray(offset, offset + step))
      offset += step
      if (random.chance(0.2)) await new Promise((resolve) => setImmediate(resolve))
    }
    const firstAcks = () => device.acks.filter(({ cmd }) => cmd !== 'pubcomp')
    await device.until(() => firstAcks().length === count)
    expect(firstAcks().map(({ messageId }) => messageId)).toEqual(
      Array.from({ length: count }, (_, index) => index + 1),
    )
  })
})
