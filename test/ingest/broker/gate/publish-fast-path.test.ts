import { parser, type IPublishPacket } from 'mqtt-packet'
import { describe, expect, test } from 'vitest'

import { takePublishes } from '../../../../src/ingest/broker/gate/packet-reader/publish-fast-path.ts'
import { messageOf } from '../../../support/mapping-world.ts'
import { publishBytes } from '../../../support/mqtt-device.ts'
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
})
