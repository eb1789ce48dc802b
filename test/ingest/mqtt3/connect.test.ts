// CONNECT of MQTT 3.1.1: what ends without an answer, what is refused with which return code, what is accepted.

import { expect, test } from 'vitest'
import {
  cleanSession,
  connectPacket3,
  publishPacket3,
  subscribePacket3,
  type ConnectFields3,
} from '../../support/mqtt3-packets.ts'
import { packetOf, pingPacket, text, uint16 } from '../../support/mqtt5-packets.ts'
import { endOf, overEachTransport, positionText, topic } from '../../support/statement-world.ts'
import { world3 } from './world3.ts'

const willFlag = 0x04
const userFlag = 0x80
const passwordFlag = 0x40
const surrogate = [0xed, 0xa0, 0x80]
const payload = positionText(1)

const silentEnds: readonly (readonly [number: string, what: string, bytes: Buffer])[] = [
  ['3.1.0-1', 'PINGREQ first', pingPacket],
  ['3.1.0-1', 'PUBLISH first', publishPacket3({ topic, payload })],
  ['3.1.0-1', 'SUBSCRIBE first', subscribePacket3(1, [['a', 0]])],
  ['3.1.0-1', 'DISCONNECT first', packetOf(0xe0)],
  ['3.1.2-1', 'the protocol MQXX', connectPacket3({ name: 'MQXX' })],
  ['3.1.2-1', 'the protocol mqtt', connectPacket3({ name: 'mqtt' })],
  ['2.2.2-2', 'CONNECT with flags', Buffer.concat([Buffer.from([0x11]), connectPacket3().subarray(1)])],
]

const malformed: readonly (readonly [number: string, what: string, fields: ConnectFields3])[] = [
  ['3.1.2-3', 'the reserved flag', { flags: cleanSession | 0x01 }],
  ['3.1.2-9', 'a will flag without a will', { flags: cleanSession | willFlag }],
  ['3.1.2-9', 'a will without a message', { flags: cleanSession | willFlag, rest: [text('w')] }],
  ['3.1.2-11', 'a will without its flag', { rest: [text('w'), text('')] }],
  ['3.1.2-13', 'will QoS without a will', { flags: cleanSession | 0x08 }],
  ['3.1.2-14', 'will QoS 3', { will: { topic: 'w', payload: '', qos: 3 } }],
  ['3.1.2-15', 'will retain without a will', { flags: cleanSession | 0x20 }],
  ['3.1.2-18', 'a user name without its flag', { rest: [text('u')] }],
  ['3.1.2-19', 'the flag of a user name without one', { flags: cleanSession | userFlag }],
  [
    '3.1.2-20',
    'a password without its flag',
    { flags: cleanSession | userFlag, rest: [text('u'), text('p')] },
  ],
  [
    '3.1.2-21',
    'the flag of a password without one',
    { flags: cleanSession | userFlag | passwordFlag, rest: [text('u')] },
  ],
  ['3.1.2-22', 'a password without a user name', { password: 'p' }],
  ['3.1.3-1', 'a byte behind the fields', { rest: [0] }],
  [
    '3.1.3-1',
    'a user name before the will',
    { flags: cleanSession | userFlag | willFlag, rest: [text('u'), text('w')] },
  ],
  ['3.1.3-4', 'a client id that is not UTF-8', { clientId: surrogate }],
  ['1.5.3-2', 'a client id with a null', { clientId: 'a\0' }],
  [
    '3.1.3-10',
    'a will topic that is not UTF-8',
    { flags: cleanSession | willFlag, rest: [text(surrogate), text('')] },
  ],
  ['3.1.3-11', 'a user name that is not UTF-8', { flags: cleanSession | userFlag, rest: [text(surrogate)] }],
  ['3.2.2-6', 'a will topic with a wildcard', { will: { topic: 'w/+', payload: '' } }],
]

const ends = [
  ...silentEnds,
  ...malformed.map(([number, what, fields]) => [number, what, connectPacket3(fields)] as const),
  ['3.1.3-3', 'no client id', packetOf(0x10, text('MQTT'), 4, cleanSession, uint16(0))] as const,
  ['3.1.3-1', 'no byte at all', packetOf(0x10)] as const,
  ['3.1.3-1', 'an end in the name', packetOf(0x10, 0, 4, 0x4d)] as const,
  ['3.1.3-1', 'an end before the flags', packetOf(0x10, text('MQTT'), 4)] as const,
  ['3.1.3-1', 'an end within the keepalive', packetOf(0x10, text('MQTT'), 4, cleanSession, 0)] as const,
  ['3.1.3-1', 'a length of five bytes', Buffer.from([0x10, 0x8c, 0x80, 0x80, 0x80, 0])] as const,
]

const plain = connectPacket3()

/** What is rare and accepted. */
const accepted: readonly (readonly [what: string, bytes: Buffer])[] = [
  ['level 0x84 of bridges', connectPacket3({ level: 0x84 })],
  ['MQTT 3.1', connectPacket3({ name: 'MQIsdp', level: 3 })],
  ['MQTT 3.1 of a bridge', connectPacket3({ name: 'MQIsdp', level: 0x83 })],
  ['MQTT 3.1 with a long client id', connectPacket3({ name: 'MQIsdp', level: 3, clientId: 'x'.repeat(40) })],
  ['a user name without a password', connectPacket3({ userName: 'u' })],
  ['an empty user name', connectPacket3({ userName: '' })],
  ['an empty password', connectPacket3({ userName: 'u', password: '' })],
  ['an empty will', connectPacket3({ will: { topic: 'w', payload: '' } })],
  ['a will with RETAIN', connectPacket3({ will: { topic: 'w', payload: '', retain: true } })],
  ['a client id with U+FFFD', connectPacket3({ clientId: '\ufffd' })],
  [
    'a length in more bytes than it needs',
    Buffer.from([0x10, plain[1]! | 0x80, 0x80, 0, ...plain.subarray(2)]),
  ],
]

const refusals: readonly (readonly [number: string, what: string, fields: ConnectFields3, code: number])[] = [
  ['3.1.2-2', 'protocol level 6', { level: 6 }, 1],
  ['3.1.2-2', 'protocol level 127', { level: 127 }, 1],
  ['3.1.2-2', 'protocol level 0', { level: 0 }, 1],
  ['3.1.2-2', 'protocol level 2', { level: 2 }, 1],
  ['3.1.2-2', 'the name of MQTT 3.1 with level 4', { name: 'MQIsdp' }, 1],
  ['3.1.2-2', 'protocol level 6 of a bridge', { level: 0x86 }, 1],
  ['3.1.3-8', 'no client id where the session is to be kept', { flags: 0, clientId: '' }, 2],
  ['3.1.3-9', 'a client id that is too long', { clientId: 'x'.repeat(300) }, 2],
]

overEachTransport((transport) => {
  test('[MQTT-3.1.4-1] a CONNECT that is wrong, or another packet before it, ends without an answer', async () => {
    const world = await world3(transport)
    await Promise.all(
      ends.map(async ([number, what, bytes]) => {
        const device = await world.open()
        device.send(bytes, publishPacket3({ topic, payload }), pingPacket)
        await endOf(device)
        expect(device.received, `[MQTT-${number}] ${what}`).toEqual([])
      }),
    )
    expect(await world.counter('gateway_messages_received_total')).toBe(0)
  })

  test('[MQTT-3.1.4-5] [MQTT-3.2.2-4] [MQTT-3.2.2-5] what cannot be accepted is refused with its return code', async () => {
    const world = await world3(transport)
    for (const [number, what, fields, code] of refusals) {
      const device = await world.open()
      device.send(connectPacket3(fields), publishPacket3({ topic, payload }), pingPacket)
      await endOf(device)
      const connack = { type: 'connack', code, sessionPresent: false }
      expect(device.received, `[MQTT-${number}] ${what}`).toMatchObject([connack])
    }
    expect(await world.counter('gateway_messages_received_total')).toBe(0)
  })

  test('[MQTT-3.1.4-5] [MQTT-3.2.2-5] takes nothing from a client whose password is wrong', async () => {
    const world = await world3(transport, {
      access: '{ users: [{ name: van, password: "${env:PASSWORD}" }] }',
    })
    for (const [fields, code] of [
      [{}, 5],
      [{ userName: 'van', password: 'wrong' }, 4],
    ] as const) {
      const device = await world.open()
      device.send(connectPacket3(fields), publishPacket3({ topic, payload }))
      expect(await device.next('connack')).toMatchObject({ code })
      await device.gone()
    }
    expect(await world.counter('gateway_messages_received_total')).toBe(0)
    expect((await world.connected({ userName: 'van', password: 'right' })).connack.code).toBe(0)
  })

  test('[MQTT-3.2.0-1] [MQTT-3.1.4-4] answers CONNECT before all that follows it', async () => {
    const world = await world3(transport)
    const device = await world.open()
    device.send(connectPacket3(), publishPacket3({ topic, payload }), pingPacket)
    await device.next('puback')
    await device.next('pingresp')
    expect(device.received[0]).toMatchObject({ type: 'connack', code: 0, sessionPresent: false })
    expect(device.received).toHaveLength(3)
  })

  test('what is rare and allowed in a CONNECT is accepted', async () => {
    const world = await world3(transport)
    for (const [what, bytes] of accepted) {
      const device = await world.open()
      device.send(bytes)
      expect((await device.next('connack')).code, what).toBe(0)
    }
  })

  test('[MQTT-3.1.3-5] accepts client ids of 1 to 23 letters and digits', async () => {
    const world = await world3(transport)
    for (const clientId of ['a', '0123456789abcdefghijABC', 'klmnopqrstuvwxyzDEFGHIJ', 'KLMNOPQRSTUVWXYZ'])
      expect((await world.connected({ clientId })).connack.code).toBe(0)
  })

  test('[MQTT-3.1.3-6] clients without an id do not take over from each other', async () => {
    const world = await world3(transport)
    const devices = await Promise.all(Array.from({ length: 20 }, () => world.connected({ clientId: '' })))
    for (const device of devices) device.send(pingPacket)
    await Promise.all(devices.map((device) => device.next('pingresp')))
    expect(await world.counter('gateway_clients_taken_over_total')).toBe(0)
  })

  test('[MQTT-3.1.4-2] [MQTT-3.1.3-2] the older connection of a client id ends, and no other', async () => {
    const world = await world3(transport)
    const other = await world.connected({ clientId: 'van-2' })
    let older = await world.connected({ clientId: 'van-1' })
    for (let round = 0; round < 20; round += 1) {
      const newer = await world.connected({ clientId: 'van-1' })
      expect(await older.gone()).toBeNull()
      older = newer
    }
    expect([other.closed, older.closed]).toEqual([false, false])
  })

  test('[MQTT-3.1.4-1] a CONNECT with one wrong byte is answered or closed, and the gateway goes on', async () => {
    const world = await world3(transport)
    const whole = connectPacket3({
      clientId: 'fuzz',
      userName: 'u',
      password: 'p',
      will: { topic: 'w', payload: 'x' },
    })
    const wrong = Array.from(whole, (byte, at) => Buffer.from(whole).fill(byte ^ 0xff, at, at + 1))
    await Promise.all(
      wrong.slice(2).map(async (bytes) => {
        const device = await world.open()
        // The fault behind it ends the connection where the CONNECT is accepted.
        device.send(bytes, packetOf(0xf1))
        await device.gone()
      }),
    )
    expect((await world.connected()).connack.code).toBe(0)
  })
})
