// What a client may not send after its CONNECT: the message before it is acknowledged, DISCONNECT says the
// code, the connection ends, and nothing behind the fault is taken.

import { describe, expect, test } from 'vitest'
import {
  bytesOf,
  connectPacket,
  packetOf,
  pingPacket,
  property,
  propertiesOf,
  publishPacket,
  subscribePacket,
  text,
  uint16,
  userProperty,
  variableInteger,
  type Part,
} from '../../support/mqtt5-packets.ts'
import { overEachTransport, positionText, topic } from '../../support/statement-world.ts'
import { world5 } from './world5.ts'

const malformed = 0x81
const protocolError = 0x82

type Fault = readonly [number: string, what: string, bytes: Buffer, code: number | readonly number[]]

const notUtf8 = [[0xc0, 0x80], [0xed, 0xa0, 0x80], [0xff], [0x61, 0xe2, 0x82]]

const subscribeOf = (...parts: readonly Part[]) => packetOf(0x82, uint16(1), ...parts)
const unsubscribeOf = (...parts: readonly Part[]) => packetOf(0xa2, uint16(1), ...parts)
const publishWith = (...properties: readonly Part[]) => publishPacket({ topic, properties })

const texts: readonly Fault[] = notUtf8.flatMap((bytes): Fault[] => {
  const name = Buffer.from(bytes).toString('hex')
  return [
    ['1.5.4-1', `topic ${name}`, publishPacket({ topic: bytes }), malformed],
    ['1.5.7-1', `name ${name}`, publishWith(property.userProperty, text(bytes), text('v')), malformed],
    ['1.5.7-1', `value ${name}`, publishWith(property.userProperty, text('n'), text(bytes)), malformed],
    ['3.3.2-19', `content type ${name}`, publishWith(property.contentType, text(bytes)), malformed],
    ['3.3.2-13', `response topic ${name}`, publishWith(property.responseTopic, text(bytes)), malformed],
    ['3.8.3-1', `filter ${name}`, subscribeOf(0, text(bytes), 0), malformed],
    ['3.10.3-1', `filter ${name}`, unsubscribeOf(0, text(bytes)), malformed],
  ]
})

const nulls: readonly Fault[] = [
  ['1.5.4-2', 'name', publishWith(property.userProperty, text('a\0'), text('v')), malformed],
  ['1.5.4-2', 'content type', publishWith(property.contentType, text('\0')), malformed],
  ['1.5.4-2', 'filter', subscribeOf(0, text('a\0'), 0), [malformed, 0x8f]],
  ['4.7.3-2', 'topic', publishPacket({ topic: 't/\0' }), malformed],
]

const heads: readonly Fault[] = [
  ['2.1.3-1', 'PUBACK with flags', packetOf(0x41, uint16(1)), malformed],
  ['2.1.3-1', 'PINGREQ with flags', packetOf(0xc1), malformed],
  ['3.6.1-1', 'PUBREL without flags', packetOf(0x60, uint16(1)), malformed],
  ['3.8.1-1', 'SUBSCRIBE without flags', packetOf(0x80, uint16(1), 0, text('a'), 0), malformed],
  ['3.10.1-1', 'UNSUBSCRIBE without flags', packetOf(0xa0, uint16(1), 0, text('a')), malformed],
  ['3.14.1-1', 'DISCONNECT with flags', packetOf(0xe1), malformed],
  ['3.15.1-1', 'AUTH with flags', packetOf(0xf1), malformed],
  ['4.12.0-7', 'AUTH', packetOf(0xf0), protocolError],
  ['3.1.0-2', 'a second CONNECT', connectPacket(), protocolError],
  ['2.2.1-3', 'PUBLISH with identifier 0', publishPacket({ topic, messageId: 0 }), protocolError],
  ['2.2.1-3', 'SUBSCRIBE with identifier 0', packetOf(0x82, uint16(0), 0, text('a'), 0), protocolError],
  ['2.2.1-3', 'UNSUBSCRIBE with identifier 0', packetOf(0xa2, uint16(0), 0, text('a')), protocolError],
  ['3.3.1-2', 'DUP with QoS 0', publishPacket({ topic, qos: 0, dup: true }), malformed],
  ['3.3.1-4', 'QoS 3', publishPacket({ topic, qos: 3 }), malformed],
  ['4.13.1-1', 'a packet for clients', packetOf(0xd0), [malformed, protocolError]],
]

const sections: readonly Fault[] = [
  [
    '1.5.5-1',
    'a length with a needless byte',
    publishPacket({ topic, section: Buffer.from([0x80, 0]) }),
    malformed,
  ],
  ['2.2.2-1', 'no property length', packetOf(0x32, text(topic), uint16(1)), malformed],
  [
    '4.13.1-1',
    'a section behind the end',
    publishPacket({ topic, section: variableInteger(300) }),
    malformed,
  ],
  [
    '4.13.1-1',
    'a property behind the section',
    publishPacket({ topic, section: bytesOf([2, 0x02, 0]) }),
    malformed,
  ],
  ['4.13.1-1', 'an unknown property', publishWith(0x7f, 0), malformed],
  [
    '4.13.1-1',
    'a property of CONNECT',
    publishWith(property.sessionExpiry, 0, 0, 0, 1),
    [malformed, protocolError],
  ],
  ['4.13.1-1', 'an expiry twice', publishWith(2, 0, 0, 0, 1, 2, 0, 0, 0, 1), protocolError],
  ['4.13.1-1', 'a format of 2', publishWith(property.payloadFormat, 2), [malformed, protocolError]],
]

const publishes: readonly Fault[] = [
  ['3.3.2-1', 'no topic', packetOf(0x32, 0), malformed],
  ['3.3.2-2', 'a wildcard', publishPacket({ topic: 't/+' }), 0x90],
  ['4.7.0-1', 'a wildcard for all', publishPacket({ topic: '#' }), 0x90],
  ['3.3.2-8', 'topic alias 0', publishWith(property.topicAlias, uint16(0)), 0x94],
  ['3.3.2-9', 'topic alias 11 of 10', publishWith(property.topicAlias, uint16(11)), 0x94],
  [
    '3.3.2-14',
    'a response topic with a wildcard',
    publishWith(property.responseTopic, text('a/#')),
    protocolError,
  ],
  ['3.3.4-6', 'a subscription identifier', publishWith(property.subscriptionId, 1), protocolError],
  ['4.7.3-1', 'no topic and no alias', publishPacket({ topic: '' }), protocolError],
  [
    '3.3.2-7',
    'an alias that was not set',
    publishPacket({ topic: '', properties: [property.topicAlias, uint16(3)] }),
    [protocolError, 0x94],
  ],
]

const filters: readonly Fault[] = [
  ['3.8.3-2', 'SUBSCRIBE without a filter', subscribeOf(0), protocolError],
  ['3.10.3-2', 'UNSUBSCRIBE without a filter', unsubscribeOf(0), protocolError],
  ['3.8.3-4', 'No Local on a shared filter', subscribePacket(1, [['$share/g/a', 0b101]]), protocolError],
  ['3.8.3-5', 'reserved bits', subscribePacket(1, [['a', 0b0100_0000]]), malformed],
  ['3.8.3-5', 'QoS 3', subscribePacket(1, [['a', 3]]), [malformed, protocolError]],
  ['3.8.3-5', 'retain handling 3', subscribePacket(1, [['a', 0b11_0000]]), [malformed, protocolError]],
  ['4.13.1-1', 'subscription identifier 0', subscribePacket(1, [['a', 0]], [0x0b, 0]), protocolError],
  [
    '4.13.1-1',
    'two subscription identifiers',
    subscribePacket(1, [['a', 0]], [0x0b, 1, 0x0b, 2]),
    protocolError,
  ],
]

const others: readonly Fault[] = [
  ['3.6.2-1', 'PUBREL with a code', packetOf(0x62, uint16(1), 0x80), [malformed, protocolError]],
  ['3.14.2-1', 'DISCONNECT with a code', packetOf(0xe0, 0x10), [malformed, protocolError]],
  [
    '4.13.1-1',
    'an expiry after none in CONNECT',
    packetOf(0xe0, 0, propertiesOf(0x11, 0, 0, 0, 9)),
    protocolError,
  ],
]

const groups = { texts, nulls, heads, sections, publishes, filters, others }

overEachTransport((transport) => {
  describe.each(Object.entries(groups))('%s', (_group, faults) => {
    test.each(faults)('[MQTT-%s] %s', async (_number, _what, bytes, code) => {
      const world = await world5(transport)
      const device = await world.connected()
      const before = publishPacket({ topic, messageId: 77, payload: positionText(1) })
      const after = publishPacket({ topic, messageId: 78, payload: positionText(2) })
      device.send(before)
      await device.next('puback')
      device.send(bytes, after, pingPacket)
      const disconnect = await device.gone()
      expect([code].flat()).toContain(disconnect?.code)
      expect(device.received.map(({ type, messageId }) => `${type} ${messageId}`)).toEqual([
        'connack 0',
        'puback 77',
        'disconnect 0',
      ])
      expect(await world.counter('gateway_messages_received_total')).toBe(1)
      // The statement names the reason of the fault to the operator, too.
      expect(await world.counter('gateway_clients_dropped_total')).toBe(1)
    })
  })

  test('[MQTT-2.1.3-1] [MQTT-3.14.4-1] [MQTT-3.14.4-2] nothing follows a DISCONNECT of the gateway', async () => {
    const world = await world5(transport)
    const device = await world.connected()
    device.send(pingPacket, packetOf(0xc1), pingPacket)
    await device.gone()
    expect(device.received.map(({ type }) => type)).toEqual(['connack', 'pingresp', 'disconnect'])
  })

  test('[MQTT-1.5.4-3] the bytes EF BB BF of a topic and of a property are kept', async () => {
    const world = await world5(transport)
    const device = await world.connected()
    const properties = [userProperty('\ufeffn', '\ufeffv')]
    device.send(publishPacket({ topic: `\ufeff${topic}`, payload: world.position(1), properties }))
    device.send(publishPacket({ topic, payload: world.position(1), messageId: 2 }))
    await device.next('puback', 1)
    // The first one is another topic, which no source has.
    expect(await world.counter('gateway_messages_dead_total')).toBe(1)
    expect(await world.counter('gateway_messages_mapped_total')).toBe(1)
  })
})
