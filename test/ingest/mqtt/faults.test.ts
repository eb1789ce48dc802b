// What a client may not send after its CONNECT: the message before it is acknowledged, the connection ends, with MQTT 5
// by a DISCONNECT that says the code, and nothing behind the fault is taken.

import { expect, test } from 'vitest'
import {
  bytesOf,
  packetOf,
  pingPacket,
  property,
  propertiesOf,
  publishPacket,
  pubrelPacket,
  subscribePacket,
  text,
  uint16,
  userProperty,
  variableInteger,
  type Part,
} from '../../support/mqtt5-packets.ts'
import { packetsOf, type Version, type VersionPackets } from '../../support/mqtt-versions.ts'
import { endOf, overEachTransport, positionText, topic } from '../../support/statement-world.ts'

const malformed = 0x81
const protocolError = 0x82
const either = [malformed, protocolError]

/** With MQTT 5 the DISCONNECT has one of the codes; without one it is `malformed`. */
type Fault = readonly [what: string, bytes: Buffer, codes?: number | readonly number[]]

/** With other bits in its first byte. */
const headed = (head: number, packet: Buffer) => Buffer.concat([Buffer.from([head]), packet.subarray(1)])

// ---- both versions

const notUtf8 = [[0xc0, 0x80], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80], [0xff], [0x61, 0xe2, 0x82]]

const texts = ({ publish, subscribe, unsubscribe }: VersionPackets): readonly Fault[] => [
  ...notUtf8.flatMap((bytes): Fault[] => {
    const name = Buffer.from(bytes).toString('hex')
    return [
      [`[MQTT3-1.5.3-1] [MQTT5-1.5.4-1] a topic ${name}`, publish({ topic: bytes })],
      [`[MQTT3-3.3.2-1] a topic ${name} with QoS 2`, publish({ topic: bytes, qos: 2 })],
      [`[MQTT-3.8.3-1] a filter ${name}`, subscribe(1, [[bytes, 0]])],
      [`[MQTT-3.10.3-1] a filter ${name} to unsubscribe`, unsubscribe(1, [bytes])],
    ]
  }),
  ['[MQTT3-1.5.3-2] [MQTT-4.7.3-2] a null in a topic', publish({ topic: 't/\0' })],
  ['[MQTT-4.7.3-2] a null in a topic with QoS 2', publish({ topic: '\0', qos: 2 })],
  ['[MQTT5-1.5.4-2] a null in a filter', subscribe(1, [['a\0', 0]]), [malformed, 0x8f]],
  ['[MQTT-4.7.3-2] a null in a filter to unsubscribe', unsubscribe(1, ['\0']), [malformed, 0x8f]],
]

const heads = ({ connect, publish, subscribe, unsubscribe }: VersionPackets): readonly Fault[] => [
  ['[MQTT3-2.2.2-1] [MQTT5-2.1.3-1] PUBACK with flags', packetOf(0x41, uint16(1))],
  ['PUBREC with flags', packetOf(0x51, uint16(1))],
  ['[MQTT3-2.2.2-2] PINGREQ with flags', packetOf(0xc1)],
  ['[MQTT-3.6.1-1] PUBREL without flags', packetOf(0x60, uint16(1))],
  ['PUBREL with DUP', packetOf(0x6a, uint16(1))],
  ['[MQTT-3.8.1-1] SUBSCRIBE without flags', headed(0x80, subscribe(1, [['a', 0]]))],
  ['[MQTT-3.10.1-1] UNSUBSCRIBE without flags', headed(0xa0, unsubscribe(1, ['a']))],
  ['[MQTT-3.14.1-1] DISCONNECT with flags', packetOf(0xe1)],
  ['[MQTT-3.3.1-2] QoS 0 with DUP', publish({ topic, qos: 0, dup: true })],
  ['[MQTT-3.3.1-4] QoS 3', publish({ topic, qos: 3 })],
  ['QoS 3 with DUP and RETAIN', publish({ topic, qos: 3, dup: true, retain: true })],
  ['[MQTT-3.1.0-2] a second CONNECT', connect(), protocolError],
  ['[MQTT3-4.8.0-1] a packet for clients', packetOf(0xd0), either],
  ['packet type 0', packetOf(0x00), either],
  ['PINGREQ with a body', packetOf(0xc0, 0)],
  ['a length of five bytes', Buffer.from([0x30, 0x80, 0x80, 0x80, 0x80, 1]), [malformed, 0x95]],
]

const fields = ({ publish, subscribe, unsubscribe }: VersionPackets): readonly Fault[] => [
  [
    '[MQTT3-2.3.1-1] [MQTT5-2.2.1-3] QoS 1 with identifier 0',
    publish({ topic, messageId: 0 }),
    protocolError,
  ],
  ['QoS 2 with identifier 0', publish({ topic, qos: 2, messageId: 0 }), protocolError],
  ['QoS 1 without an identifier', packetOf(0x32, text(topic), 1)],
  ['SUBSCRIBE with identifier 0', subscribe(0, [['a', 0]]), protocolError],
  ['UNSUBSCRIBE with identifier 0', unsubscribe(0, ['a']), protocolError],
  ['PUBACK without an identifier', packetOf(0x40), either],
  ['PUBREC with one byte', packetOf(0x50, 1), either],
  ['PUBLISH without a topic', packetOf(0x30)],
  ['[MQTT-3.3.2-1] a topic that is longer than its packet', packetOf(0x30, 0, 9, 0x74)],
  ['[MQTT-3.3.2-2] a topic with +', publish({ topic: 't/+' }), 0x90],
  ['[MQTT3-4.7.1-1] [MQTT5-4.7.0-1] the topic #', publish({ topic: '#', qos: 2 }), 0x90],
  ['[MQTT-4.7.3-1] an empty topic', publish({ topic: '' }), protocolError],
  ['[MQTT3-3.8.3-3] [MQTT5-3.8.3-2] SUBSCRIBE without a filter', subscribe(1, []), protocolError],
  ['[MQTT-3.10.3-2] UNSUBSCRIBE without a filter', unsubscribe(1, []), protocolError],
  ['[MQTT3-3-8.3-4] SUBSCRIBE with QoS 3', subscribe(1, [['a', 3]]), either],
  ['[MQTT5-3.8.3-5] SUBSCRIBE with reserved bits', subscribe(1, [['a', 0b0100_0000]])],
]

// ---- MQTT 3.1.1

const { subscribe: subscribe3, unsubscribe: unsubscribe3 } = packetsOf[3]

const only3: readonly Fault[] = [
  ['packet type 15', packetOf(0xf0)],
  ['PINGREQ that announces 1,000 bytes', Buffer.from([0xc0, 0xe8, 0x07])],
  ['DISCONNECT with a body', packetOf(0xe0, 0)],
  ['PUBACK with three bytes', packetOf(0x40, uint16(1), 0)],
  ['PUBREL with three bytes', packetOf(0x62, uint16(1), 0)],
  ['PUBCOMP with four bytes', packetOf(0x70, uint16(1), uint16(1))],
  ['SUBSCRIBE without a QoS', packetOf(0x82, uint16(1), text('a'))],
  ['a byte behind SUBSCRIBE', packetOf(0x82, uint16(1), text('a'), 0, 0)],
  ['a byte behind UNSUBSCRIBE', packetOf(0xa2, uint16(1), text('a'), 0)],
  ['a filter longer than its packet', packetOf(0x82, uint16(1), 0, 9, 0x74, 0)],
  ['a reserved bit for No Local', subscribe3(1, [['a', 0b100]])],
  ['an empty filter', subscribe3(1, [['', 0]])],
  ['[MQTT3-4.7.1-2] a#', subscribe3(1, [['a#', 0]])],
  ['[MQTT3-4.7.1-2] #/a', unsubscribe3(1, ['#/a'])],
  ['[MQTT3-4.7.1-3] a+', subscribe3(1, [['a+', 0]])],
  ['[MQTT3-4.7.1-3] +a/b', unsubscribe3(1, ['+a/b'])],
]

// ---- MQTT 5

const subscribeOf = (...parts: readonly Part[]) => packetOf(0x82, uint16(1), ...parts)
const unsubscribeOf = (...parts: readonly Part[]) => packetOf(0xa2, uint16(1), ...parts)
const pubrelWith = (...parts: readonly Part[]) => packetOf(0x62, uint16(1), 0, propertiesOf(...parts))
const publishWith = (...properties: readonly Part[]) => publishPacket({ topic, properties })
const sectionOf = (...section: readonly Part[]) => publishPacket({ topic, section: bytesOf(section) })
const disconnectWith = (...parts: readonly Part[]) => packetOf(0xe0, 0, propertiesOf(...parts))

const properties: readonly Fault[] = [
  ...notUtf8.flatMap((bytes): Fault[] => {
    const name = Buffer.from(bytes).toString('hex')
    return [
      [`[MQTT5-1.5.7-1] name ${name}`, publishWith(property.userProperty, text(bytes), text('v'))],
      [`value ${name}`, publishWith(property.userProperty, text('n'), text(bytes))],
      [`[MQTT5-3.3.2-19] content type ${name}`, publishWith(property.contentType, text(bytes))],
      [`[MQTT5-3.3.2-13] response topic ${name}`, publishWith(property.responseTopic, text(bytes))],
    ]
  }),
  ['a null in a name', publishWith(property.userProperty, text('a\0'), text('v'))],
  ['a null in a content type', publishWith(property.contentType, text('\0'))],
  ['[MQTT5-1.5.5-1] a length with a needless byte', sectionOf(0x80, 0)],
  ['[MQTT5-2.2.2-1] no property length', packetOf(0x32, text(topic), uint16(1))],
  ['a section behind the end', sectionOf(variableInteger(300))],
  ['a property behind the section', sectionOf(2, 0x02, 0)],
  ['an unknown property', publishWith(0x7f, 0)],
  ['a property of CONNECT', publishWith(property.sessionExpiry, 0, 0, 0, 1), either],
  ['an expiry twice', publishWith(2, 0, 0, 0, 1, 2, 0, 0, 0, 1), protocolError],
  ['a format of 2', publishWith(property.payloadFormat, 2), either],
  ['an expiry that is cut', publishWith(property.messageExpiry, 0, 0, 0)],
  ['a value behind the section', sectionOf(4, property.contentType, 0, 2, 0x61, 0x61)],
  ['a name without a value', publishWith(property.userProperty, text('a'))],
  ...[property.contentType, property.responseTopic, property.correlationData].map((number): Fault => [
    `property ${number} twice`,
    publishWith(number, text('a'), number, text('a')),
    protocolError,
  ]),
  ['[MQTT5-3.3.2-8] topic alias 0', publishWith(property.topicAlias, uint16(0)), 0x94],
  ['[MQTT5-3.3.2-9] topic alias 11 of 10', publishWith(property.topicAlias, uint16(11)), 0x94],
  [
    '[MQTT5-3.3.2-14] a response topic with a wildcard',
    publishWith(property.responseTopic, text('a/#')),
    protocolError,
  ],
  ['[MQTT5-3.3.4-6] a subscription identifier', publishWith(property.subscriptionId, 1), protocolError],
  [
    '[MQTT5-3.3.2-7] an alias that was not set',
    publishPacket({ topic: '', properties: [property.topicAlias, uint16(3)] }),
    [protocolError, 0x94],
  ],
]

const only5: readonly Fault[] = [
  ['[MQTT5-3.15.1-1] AUTH with flags', packetOf(0xf1)],
  ['[MQTT5-4.12.0-7] AUTH', packetOf(0xf0), protocolError],
  ['CONNACK', packetOf(0x20, 0, 0, 0), protocolError],
  ['a length of more bytes than needed', Buffer.from([0xc0, 0x80, 0])],
  ['SUBSCRIBE without a property length', subscribeOf()],
  ['SUBSCRIBE that ends within a filter', subscribeOf(0, 0, 5, 0x61)],
  ['SUBSCRIBE without options', subscribeOf(0, text('a'))],
  ['UNSUBSCRIBE with an identifier', unsubscribeOf(propertiesOf(property.subscriptionId, 1), text('a'))],
  ['[MQTT5-3.8.3-4] No Local on a shared filter', subscribePacket(1, [['$share/g/a', 0b101]]), protocolError],
  ['retain handling 3', subscribePacket(1, [['a', 0b11_0000]]), either],
  ['subscription identifier 0', subscribePacket(1, [['a', 0]], [0x0b, 0]), protocolError],
  ['two subscription identifiers', subscribePacket(1, [['a', 0]], [0x0b, 1, 0x0b, 2]), protocolError],
  ['PUBACK with identifier 0', packetOf(0x40, 0, 0), protocolError],
  ['PUBACK with the code of another packet', packetOf(0x40, uint16(1), 0x92), protocolError],
  ['PUBREC with an unknown code', packetOf(0x50, uint16(1), 0x01), protocolError],
  ['PUBCOMP with another code', packetOf(0x70, uint16(1), 0x10), protocolError],
  ['PUBREL with a foreign property', pubrelWith(property.payloadFormat, 1)],
  ['PUBREL with a reason twice', pubrelWith(0x1f, text(''), 0x1f, text('')), protocolError],
  ['PUBREL with a byte behind it', packetOf(0x62, uint16(1), 0, 0, 0)],
  ['[MQTT5-3.6.2-1] PUBREL with a code', packetOf(0x62, uint16(1), 0x80), either],
  ['[MQTT5-3.14.2-1] DISCONNECT with a code of a server', packetOf(0xe0, 0x8b), protocolError],
  ['DISCONNECT with an unknown code', packetOf(0xe0, 0x10), either],
  ['DISCONNECT with a server reference', disconnectWith(property.serverReference, text('x')), protocolError],
  ['DISCONNECT with a byte behind it', packetOf(0xe0, 0, 0, 0)],
  ['an expiry after none in CONNECT', disconnectWith(0x11, 0, 0, 0, 9), protocolError],
]

const both = (version: Version) => {
  const packets = packetsOf[version]
  return { texts: texts(packets), heads: heads(packets), fields: fields(packets) }
}
const groups = { 3: { ...both(3), only3 }, 5: { ...both(5), properties, only5 } }

// ---- what is allowed

/** What is rare, and how it is answered. */
const allowed3: readonly (readonly [what: string, bytes: Buffer, answer: string])[] = [
  ['a length in four bytes', Buffer.from([0x32, 0x85, 0x80, 0x80, 0, 0, 1, 0x74, 0, 9]), 'puback'],
  ['a PINGREQ with a length in two bytes', Buffer.from([0xc0, 0x80, 0]), 'pingresp'],
  ['a PUBCOMP for no message', packetOf(0x70, uint16(5)), 'pingresp'],
]
const allowed5: typeof allowed3 = [
  ['a PUBACK with a code', packetOf(0x40, uint16(1), 0x10), 'pingresp'],
  ['a PUBCOMP with a property length', packetOf(0x70, uint16(1), 0, 0), 'pingresp'],
  ['a failure', packetOf(0x50, uint16(1), 0x97, propertiesOf(userProperty('a', 'b'))), 'pingresp'],
  ['a PUBREL with a code', packetOf(0x62, uint16(1), 0x92), 'pubcomp'],
  ['a PUBREL with a reason', pubrelWith(property.reasonString, text('ok')), 'pubcomp'],
  ['options of a filter', subscribePacket(7, [['a/#', 0b0010_1110]]), 'suback'],
  ['options of a shared filter', subscribePacket(7, [['$share/g/a', 0b0001_1001]]), 'suback'],
  ['an identifier', subscribePacket(7, [['a', 0]], [property.subscriptionId, 0xff, 0x7f]), 'suback'],
]
const allowedOf = ({ publish, subscribe, unsubscribe }: VersionPackets): typeof allowed3 => [
  ['a topic with U+FFFD', publish({ topic: 'a/\ufffd' }), 'puback'],
  ['a topic that begins with /, with QoS 2', publish({ topic: '/a//', qos: 2 }), 'pubrec'],
  ['a topic with a control character', publish({ topic: 'a b\u0001' }), 'puback'],
  ['an empty payload', publish({ topic, payload: '' }), 'puback'],
  ['a PUBACK for no message', packetOf(0x40, uint16(5)), 'pingresp'],
  ['a filter with U+FFFD', subscribe(1, [['\ufffd', 2]]), 'suback'],
  ['filters that were never subscribed', unsubscribe(7, ['a', 'b/#']), 'unsuback'],
]

overEachTransport([3, 5], (open, packets, version) => {
  const { publish, disconnect } = packets

  test.each(Object.entries(groups[version]))(
    '[MQTT3-4.8.0-1] [MQTT5-4.13.1-1] a connection ends at what is not allowed: %s',
    async (_group, faults) => {
      const world = await open()
      await Promise.all(
        faults.map(async ([what, bytes, codes = malformed]) => {
          const device = await world.connected({ clientId: what })
          device.send(publish({ topic, messageId: 77, payload: positionText(1) }))
          await device.next('puback')
          device.send(bytes, publish({ topic, messageId: 78, payload: positionText(2) }), pingPacket)
          const end = await endOf(device)
          const received = device.received.map(({ type, messageId }) => `${type} ${messageId}`)
          const last = version === 5 ? ['disconnect 0'] : []
          expect(received, what).toEqual(['connack 0', 'puback 77', ...last])
          expect(version === 5 ? [codes].flat() : [null], what).toContain(end?.code ?? null)
        }),
      )
      expect(await world.counter('gateway_messages_received_total')).toBe(faults.length)
      // The operator sees each, too.
      expect(await world.counter('gateway_clients_dropped_total')).toBe(faults.length)
    },
  )

  test('what is rare and allowed is answered, and the connection stays', async () => {
    const world = await open()
    for (const [what, bytes, answer] of [...allowedOf(packets), ...(version === 5 ? allowed5 : allowed3)]) {
      const device = await world.connected()
      device.send(bytes, pingPacket)
      await device.until(() => device.received.some(({ type }) => type === answer))
      await device.next('pingresp')
      expect(device.closed, what).toBe(false)
    }
  })

  test('[MQTT3-1.5.3-3] [MQTT5-1.5.4-3] the bytes EF BB BF of a topic and of a property are kept', async () => {
    const world = await open()
    const device = await world.connected()
    const properties = [userProperty('\ufeffn', '\ufeffv')]
    device.send(publish({ topic: `\ufeff${topic}`, payload: world.position(1), properties }))
    device.send(publish({ topic, payload: world.position(1), messageId: 2 }))
    await device.next('puback', 1)
    // The first one is another topic, which no source has.
    expect(await world.counter('gateway_messages_dead_total')).toBe(1)
    expect(await world.counter('gateway_messages_mapped_total')).toBe(1)
  })

  test('what follows DISCONNECT is neither read nor a fault', async () => {
    const world = await open()
    const device = await world.connected()
    device.send(disconnect, publish({ topic }), packetOf(0xf0))
    expect(await device.gone()).toBeNull()
    expect(device.received).toHaveLength(1)
    expect(await world.counter('gateway_messages_received_total')).toBe(0)
    expect(await world.counter('gateway_clients_dropped_total')).toBe(0)
  })
})

overEachTransport([3], (open, { publish }) => {
  test('MQTT 3.1 sends PUBREL, SUBSCRIBE and UNSUBSCRIBE with DUP, and QoS 0 with DUP', async () => {
    const world = await open()
    const device = await world.connected({ name: 'MQIsdp', level: 3 })
    device.send(
      packetOf(0x8a, uint16(1), text('a'), 1),
      packetOf(0xaa, uint16(1), text('a')),
      packetOf(0x6a, uint16(9)),
      publish({ topic, qos: 0, dup: true, payload: world.position(2) }),
      publish({ topic, dup: true, payload: world.position(1) }),
    )
    await device.next('puback')
    const types = device.received.map(({ type }) => type).toSorted()
    expect(types).toEqual(['connack', 'puback', 'pubcomp', 'suback', 'unsuback'])
    expect(await world.counter('gateway_messages_mapped_total')).toBe(2)
  })
})

overEachTransport([5], (open) => {
  test('[MQTT5-2.1.3-1] [MQTT5-3.14.4-1] [MQTT5-3.14.4-2] nothing follows a DISCONNECT of the gateway', async () => {
    const world = await open()
    const device = await world.connected()
    device.send(pingPacket, packetOf(0xc1), pingPacket)
    await device.gone()
    expect(device.received.map(({ type }) => type)).toEqual(['connack', 'pingresp', 'disconnect'])
  })
  test('too many control packets are 0x96, and a PUBREL for each message of QoS 2 is none too many', async () => {
    const world = await open({ limits: 'max_control_packets_per_s: 10' })
    const device = await world.connected()
    for (let messageId = 1; messageId <= 500; messageId += 1) {
      const message = { topic, qos: 2, messageId, payload: world.position(messageId) }
      device.send(publishPacket(message), pubrelPacket(messageId))
    }
    expect(await device.next('pubcomp', 499)).toMatchObject({ messageId: 500 })
    device.send(...Array.from({ length: 5000 }, () => pingPacket))
    expect(await device.gone()).toMatchObject({ code: 0x96 })
  })

  test('the DISCONNECT comes to a client that goes on sending', async () => {
    const world = await open()
    for (let round = 0; round < 10; round += 1) {
      const device = await world.connected({ clientId: `sends-${round}` })
      const flood = publishPacket({ topic, qos: 0, payload: Buffer.alloc(64 * 1024, 0x20) })
      device.send(flood, packetsOf[5].connect(), ...Array.from({ length: 16 }, () => flood))
      expect(await device.gone()).toMatchObject({ code: 0x82 })
    }
  })
})
