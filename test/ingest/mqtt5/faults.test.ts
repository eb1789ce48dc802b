// What a client may not send after its CONNECT: the message before it is acknowledged, DISCONNECT says the
// code, the connection ends, and nothing behind the fault is taken.

import { expect, test } from 'vitest'
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
  unsubscribePacket,
  userProperty,
  variableInteger,
  type Part,
} from '../../support/mqtt5-packets.ts'
import { endOf, overEachTransport, positionText, topic } from '../../support/statement-world.ts'
import { world5 } from './world5.ts'

const malformed = 0x81
const protocolError = 0x82

type Fault = readonly [number: string, what: string, bytes: Buffer, code: number | readonly number[]]

const notUtf8 = [[0xc0, 0x80], [0xed, 0xa0, 0x80], [0xff], [0x61, 0xe2, 0x82]]

const subscribeOf = (...parts: readonly Part[]) => packetOf(0x82, uint16(1), ...parts)
const unsubscribeOf = (...parts: readonly Part[]) => packetOf(0xa2, uint16(1), ...parts)
const pubrelWith = (...parts: readonly Part[]) => packetOf(0x62, uint16(1), 0, propertiesOf(...parts))
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
  ['4.13.1-1', 'CONNACK', packetOf(0x20, 0, 0, 0), protocolError],
  ['4.13.1-1', 'PINGREQ with a body', packetOf(0xc0, 0), malformed],
  ['1.5.5-1', 'a length of more bytes than needed', Buffer.from([0xc0, 0x80, 0]), malformed],
  ['1.5.5-1', 'a length of five bytes', Buffer.from([0x30, 0xff, 0xff, 0xff, 0xff, 1]), [malformed, 0x95]],
  ['2.2.1-3', 'no room for the identifier', packetOf(0x32, text(topic), 1), malformed],
  ['3.3.2-1', 'a topic behind the end', packetOf(0x30, 0, 9, 0x74), malformed],
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
  ['4.13.1-1', 'an expiry that is cut', publishWith(property.messageExpiry, 0, 0, 0), malformed],
  [
    '4.13.1-1',
    'a value behind the section',
    packetOf(0x30, text(topic), 4, property.contentType, 0, 2, 0x61, 0x61),
    malformed,
  ],
  ['4.13.1-1', 'a name without a value', publishWith(property.userProperty, text('a')), malformed],
  ...([property.contentType, property.responseTopic, property.correlationData] as const).map(
    (number): Fault => [
      '4.13.1-1',
      `property ${number} twice`,
      publishWith(number, text('a'), number, text('a')),
      protocolError,
    ],
  ),
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
  ['4.13.1-1', 'SUBSCRIBE without a property length', subscribeOf(), malformed],
  ['4.13.1-1', 'SUBSCRIBE that ends within a filter', subscribeOf(0, 0, 5, 0x61), malformed],
  ['4.13.1-1', 'SUBSCRIBE without options', subscribeOf(0, text('a')), malformed],
  [
    '4.13.1-1',
    'UNSUBSCRIBE with an identifier property',
    unsubscribeOf(propertiesOf(property.subscriptionId, 1), text('a')),
    malformed,
  ],
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
  ['2.2.1-3', 'PUBACK without an identifier', packetOf(0x40, 1), protocolError],
  ['2.2.1-3', 'PUBACK with identifier 0', packetOf(0x40, 0, 0), protocolError],
  ['4.13.1-1', 'PUBACK with the code of another packet', packetOf(0x40, uint16(1), 0x92), protocolError],
  ['4.13.1-1', 'PUBREC with an unknown code', packetOf(0x50, uint16(1), 0x01), protocolError],
  ['4.13.1-1', 'PUBCOMP with another code', packetOf(0x70, uint16(1), 0x10), protocolError],
  ['4.13.1-1', 'PUBREL with a foreign property', pubrelWith(property.payloadFormat, 1), malformed],
  ['4.13.1-1', 'PUBREL with a reason twice', pubrelWith(0x1f, text(''), 0x1f, text('')), protocolError],
  ['4.13.1-1', 'PUBREL with a byte behind it', packetOf(0x62, uint16(1), 0, 0, 0), malformed],
  ['3.14.2-1', 'DISCONNECT with a code of a server', packetOf(0xe0, 0x8b), protocolError],
  [
    '4.13.1-1',
    'DISCONNECT with a server reference',
    packetOf(0xe0, 0, propertiesOf(property.serverReference, text('x'))),
    protocolError,
  ],
  ['4.13.1-1', 'DISCONNECT with a byte behind it', packetOf(0xe0, 0, 0, 0), malformed],
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

/** What a client may send, whatever the gateway does with it. */
const allowed: readonly Buffer[] = [
  packetOf(0x40, uint16(1)),
  packetOf(0x40, uint16(1), 0x10),
  packetOf(0x70, uint16(1), 0, 0),
  packetOf(0x50, uint16(1), 0x97, propertiesOf(userProperty('a', 'b'))),
  packetOf(0x62, uint16(1), 0x92),
  packetOf(0x62, uint16(1), 0, propertiesOf(property.reasonString, text('ok'))),
  subscribePacket(7, [
    ['a/#', 0b0010_1110],
    ['$share/g/a', 0b0001_1001],
  ]),
  subscribePacket(7, [['a', 0]], [property.subscriptionId, 0xff, 0x7f]),
  unsubscribePacket(7, ['a', 'b/#']),
]

overEachTransport((transport) => {
  test.each(Object.entries(groups))(
    '[MQTT-4.13.1-1] a connection ends with the code of what is not allowed: %s',
    async (_group, faults) => {
      const world = await world5(transport)
      await Promise.all(
        faults.map(async ([number, what, bytes, code]) => {
          const device = await world.connected({ clientId: `${number} ${what}` })
          device.send(publishPacket({ topic, messageId: 77, payload: positionText(1) }))
          await device.next('puback')
          const after = publishPacket({ topic, messageId: 78, payload: positionText(2) })
          device.send(bytes, after, pingPacket)
          const disconnect = await endOf(device)
          const received = device.received.map(({ type, messageId }) => `${type} ${messageId}`)
          expect(received, `[MQTT-${number}] ${what}`).toEqual(['connack 0', 'puback 77', 'disconnect 0'])
          expect([code].flat(), `[MQTT-${number}] ${what}`).toContain(disconnect?.code)
        }),
      )
      expect(await world.counter('gateway_messages_received_total')).toBe(faults.length)
      // The operator sees each, too.
      expect(await world.counter('gateway_clients_dropped_total')).toBe(faults.length)
    },
  )

  test('what a client may send does not end its connection', async () => {
    const world = await world5(transport)
    for (const packet of allowed) {
      const device = await world.connected()
      device.send(packet, pingPacket)
      await endOf(device)
      expect(device.closed, packet.toString('hex')).toBe(false)
    }
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
