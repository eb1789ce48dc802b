// What a client of MQTT 3.1.1 may not send: the message before it is acknowledged, the connection ends without
// another packet, and nothing behind the fault is taken.

import { expect, test } from 'vitest'
import {
  connectPacket3,
  disconnectPacket3,
  publishPacket3,
  subscribePacket3,
  unsubscribePacket3,
} from '../../support/mqtt3-packets.ts'
import { packetOf, pingPacket, text, uint16 } from '../../support/mqtt5-packets.ts'
import { endOf, overEachTransport, positionText, topic } from '../../support/statement-world.ts'
import { world3 } from './world3.ts'

type Fault = readonly [number: string, what: string, bytes: Buffer]

const notUtf8 = [[0xc0, 0x80], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80], [0xff], [0x61, 0xe2, 0x82]]

const texts: readonly Fault[] = notUtf8.flatMap((bytes): Fault[] => {
  const name = Buffer.from(bytes).toString('hex')
  return [
    ['1.5.3-1', `a topic ${name}`, publishPacket3({ topic: bytes })],
    ['3.3.2-1', `a topic ${name} with QoS 2`, publishPacket3({ topic: bytes, qos: 2 })],
    ['3.8.3-1', `a filter ${name}`, subscribePacket3(1, [[bytes, 0]])],
    ['3.10.3-1', `a filter ${name} to unsubscribe`, unsubscribePacket3(1, [bytes])],
  ]
})

const nulls: readonly Fault[] = [
  ['1.5.3-2', 'a null in a topic', publishPacket3({ topic: 't/\0' })],
  ['4.7.3-2', 'a null in a topic with QoS 2', publishPacket3({ topic: '\0', qos: 2 })],
  ['4.7.3-2', 'a null in a filter', subscribePacket3(1, [['a\0', 0]])],
  ['4.7.3-2', 'a null in a filter to unsubscribe', unsubscribePacket3(1, ['\0'])],
]

const flags: readonly Fault[] = [
  ['2.2.2-1', 'PUBACK with flags', packetOf(0x42, uint16(1))],
  ['2.2.2-1', 'PUBREC with flags', packetOf(0x51, uint16(1))],
  ['2.2.2-2', 'PINGREQ with flags', packetOf(0xc8)],
  ['3.6.1-1', 'PUBREL without flags', packetOf(0x60, uint16(1))],
  ['3.6.1-1', 'PUBREL with DUP', packetOf(0x6a, uint16(1))],
  ['3.8.1-1', 'SUBSCRIBE without flags', packetOf(0x80, uint16(1), text('a'), 0)],
  ['3.10.1-1', 'UNSUBSCRIBE without flags', packetOf(0xa0, uint16(1), text('a'))],
  ['3.14.1-1', 'DISCONNECT with flags', packetOf(0xe1)],
  ['3.3.1-2', 'QoS 0 with DUP', publishPacket3({ topic, qos: 0, dup: true })],
  ['3.3.1-4', 'QoS 3', publishPacket3({ topic, qos: 3 })],
  ['3.3.1-4', 'QoS 3 with DUP and RETAIN', publishPacket3({ topic, qos: 3, dup: true, retain: true })],
]

const identifiers: readonly Fault[] = [
  ['2.3.1-1', 'QoS 1 with identifier 0', publishPacket3({ topic, messageId: 0 })],
  ['2.3.1-1', 'QoS 2 with identifier 0', publishPacket3({ topic, qos: 2, messageId: 0 })],
  ['2.3.1-1', 'QoS 1 without an identifier', packetOf(0x32, text(topic))],
  ['2.3.1-1', 'SUBSCRIBE with identifier 0', subscribePacket3(0, [['a', 0]])],
  ['2.3.1-1', 'UNSUBSCRIBE with identifier 0', unsubscribePacket3(0, ['a'])],
]

const topics: readonly Fault[] = [
  ['3.3.2-1', 'PUBLISH without a topic', packetOf(0x30)],
  ['3.3.2-1', 'a topic that is longer than its packet', packetOf(0x30, 0, 9, 0x74)],
  ['3.3.2-2', 'a topic with +', publishPacket3({ topic: 't/+' })],
  ['4.7.1-1', 'the topic #', publishPacket3({ topic: '#', qos: 2 })],
  ['4.7.3-1', 'an empty topic', publishPacket3({ topic: '' })],
  ['4.7.3-1', 'an empty filter', subscribePacket3(1, [['', 0]])],
]

const filters: readonly Fault[] = [
  ['3.8.3-3', 'SUBSCRIBE without a filter', subscribePacket3(1, [])],
  ['3.10.3-2', 'UNSUBSCRIBE without a filter', unsubscribePacket3(1, [])],
  ['3-8.3-4', 'QoS 3', subscribePacket3(1, [['a', 3]])],
  ['3-8.3-4', 'reserved bits', subscribePacket3(1, [['a', 0b100]])],
  ['4.7.1-2', 'a#', subscribePacket3(1, [['a#', 0]])],
  ['4.7.1-2', '#/a', unsubscribePacket3(1, ['#/a'])],
  ['4.7.1-3', 'a+', subscribePacket3(1, [['a+', 0]])],
  ['4.7.1-3', '+a/b', unsubscribePacket3(1, ['+a/b'])],
]

const others: readonly Fault[] = [
  ['3.1.0-2', 'a second CONNECT', connectPacket3()],
  ['4.8.0-1', 'a packet for clients', packetOf(0xd0)],
  ['4.8.0-1', 'packet type 15', packetOf(0xf0)],
  ['4.8.0-1', 'a length of five bytes', Buffer.from([0x30, 0x80, 0x80, 0x80, 0x80, 1])],
  ['4.8.0-1', 'DISCONNECT with a body', packetOf(0xe0, 0)],
  ['4.8.0-1', 'packet type 0', packetOf(0x00)],
  ['4.8.0-1', 'PINGREQ with a body', packetOf(0xc0, 0)],
  ['4.8.0-1', 'PINGREQ that announces 1,000 bytes', Buffer.from([0xc0, 0xe8, 0x07])],
  ['4.8.0-1', 'PUBACK without an identifier', packetOf(0x40)],
  ['4.8.0-1', 'PUBACK with three bytes', packetOf(0x40, uint16(1), 0)],
  ['4.8.0-1', 'PUBREC with one byte', packetOf(0x50, 1)],
  ['4.8.0-1', 'PUBREL with three bytes', packetOf(0x62, uint16(1), 0)],
  ['4.8.0-1', 'PUBCOMP with four bytes', packetOf(0x70, uint16(1), uint16(1))],
  ['4.8.0-1', 'SUBSCRIBE without a QoS', packetOf(0x82, uint16(1), text('a'))],
  ['4.8.0-1', 'a byte behind SUBSCRIBE', packetOf(0x82, uint16(1), text('a'), 0, 0)],
  ['4.8.0-1', 'a byte behind UNSUBSCRIBE', packetOf(0xa2, uint16(1), text('a'), 0)],
  ['4.8.0-1', 'a filter longer than its packet', packetOf(0x82, uint16(1), 0, 9, 0x74, 0)],
]

/** What is rare and allowed, and how it is answered. */
const allowed: readonly (readonly [what: string, bytes: Buffer, answer: string])[] = [
  ['a topic with U+FFFD', publishPacket3({ topic: 'a/\ufffd' }), 'puback'],
  ['a topic that begins with /, with QoS 2', publishPacket3({ topic: '/a//', qos: 2 }), 'pubrec'],
  ['a topic with a control character', publishPacket3({ topic: 'a b\u0001' }), 'puback'],
  ['an empty payload', publishPacket3({ topic, payload: '' }), 'puback'],
  ['a length in four bytes', Buffer.from([0x32, 0x85, 0x80, 0x80, 0, 0, 1, 0x74, 0, 9]), 'puback'],
  ['a PINGREQ with a length in two bytes', Buffer.from([0xc0, 0x80, 0]), 'pingresp'],
  ['a PUBACK for no message', packetOf(0x40, uint16(5)), 'pingresp'],
  ['a PUBCOMP for no message', packetOf(0x70, uint16(5)), 'pingresp'],
  ['a filter with U+FFFD', subscribePacket3(1, [['\ufffd', 2]]), 'suback'],
]

const groups = { texts, nulls, flags, identifiers, topics, filters, others }

overEachTransport((transport) => {
  test.each(Object.entries(groups))(
    'a connection ends at what is not allowed: %s',
    async (_group, faults) => {
      const world = await world3(transport)
      await Promise.all(
        faults.map(async ([number, what, bytes]) => {
          const device = await world.connected({ clientId: what })
          device.send(publishPacket3({ topic, messageId: 77, payload: positionText(1) }))
          await device.next('puback')
          device.send(bytes, publishPacket3({ topic, messageId: 78, payload: positionText(2) }), pingPacket)
          await endOf(device)
          const received = device.received.map(({ type, messageId }) => `${type} ${messageId}`)
          expect(received, `[MQTT-${number}] ${what}`).toEqual(['connack 0', 'puback 77'])
        }),
      )
      expect(await world.counter('gateway_messages_received_total')).toBe(faults.length)
      expect(await world.counter('gateway_clients_dropped_total')).toBe(faults.length)
    },
  )

  test('what is rare and allowed is answered, and the connection stays', async () => {
    const world = await world3(transport)
    for (const [what, bytes, answer] of allowed) {
      const device = await world.connected()
      device.send(bytes, pingPacket)
      await device.until(() => device.received.some(({ type }) => type === answer))
      expect(device.closed, what).toBe(false)
    }
  })

  test('MQTT 3.1 sends PUBREL, SUBSCRIBE and UNSUBSCRIBE with DUP, and QoS 0 with DUP', async () => {
    const world = await world3(transport)
    const device = await world.connected({ name: 'MQIsdp', level: 3 })
    const message = publishPacket3({ topic, payload: world.position(1) })
    message[0]! |= 0b1000
    device.send(packetOf(0x8a, uint16(1), text('a'), 1), packetOf(0xaa, uint16(1), text('a')))
    device.send(
      packetOf(0x6a, uint16(9)),
      publishPacket3({ topic, qos: 0, dup: true, payload: world.position(2) }),
    )
    device.send(message)
    await device.next('puback')
    const types = device.received.map(({ type }) => type).toSorted()
    expect(types).toEqual(['connack', 'puback', 'pubcomp', 'suback', 'unsuback'])
    expect(await world.counter('gateway_messages_mapped_total')).toBe(2)
  })

  test('[MQTT-1.5.3-3] the bytes EF BB BF of a topic are kept', async () => {
    const world = await world3(transport)
    const device = await world.connected()
    device.send(publishPacket3({ topic: `\ufeff${topic}`, payload: world.position(1) }))
    device.send(publishPacket3({ topic, payload: world.position(1), messageId: 2 }))
    await device.next('puback', 1)
    // The first one is another topic, which no source has.
    expect(await world.counter('gateway_messages_dead_total')).toBe(1)
    expect(await world.counter('gateway_messages_mapped_total')).toBe(1)
  })

  test('what follows DISCONNECT is neither read nor a fault', async () => {
    const world = await world3(transport)
    const device = await world.connected()
    device.send(disconnectPacket3, publishPacket3({ topic }), packetOf(0xf0))
    expect(await device.gone()).toBeNull()
    expect(device.received).toHaveLength(1)
    expect(await world.counter('gateway_messages_received_total')).toBe(0)
    expect(await world.counter('gateway_clients_dropped_total')).toBe(0)
  })
})
