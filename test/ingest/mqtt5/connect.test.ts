// CONNECT: what is refused with which code of CONNACK, what is closed without an answer, and what is accepted.

import { expect, test } from 'vitest'
import {
  cleanStart,
  connectPacket,
  disconnectPacket,
  packetOf,
  pingPacket,
  property,
  propertiesOf,
  publishPacket,
  subscribePacket,
  text,
  uint16,
  uint32,
  userProperty,
  type ConnectFields,
} from '../../support/mqtt5-packets.ts'
import { endOf, overEachTransport, positionText, topic } from '../../support/statement-world.ts'
import { world5 } from './world5.ts'

const shownAs = {
  tcp: 'MQTT 5',
  tls: 'MQTT 5 over TLS',
  ws: 'MQTT 5 over WebSocket',
  wss: 'MQTT 5 over WebSocket with TLS',
}

const malformed = 0x81
const protocolError = 0x82

const willFlag = 0x04
const userFlag = 0x80
const passwordFlag = 0x40
const notUtf8 = [0xc0, 0x80]
const van = { clientId: 'van', userName: 'van', password: 'right' }

type Refusal = readonly [
  number: string,
  what: string,
  fields: ConnectFields,
  code: number | readonly number[],
]

const refusals: readonly Refusal[] = [
  ['3.1.2-3', 'the reserved flag', { flags: cleanStart | 0x01 }, malformed],
  ['3.1.2-9', 'a will flag without a will', { flags: cleanStart | willFlag }, malformed],
  ['3.1.2-9', 'a will without a topic', { flags: cleanStart | willFlag, rest: [0] }, malformed],
  ['3.1.2-9', 'a will without a message', { flags: cleanStart | willFlag, rest: [0, text('w')] }, malformed],
  ['3.1.2-11', 'will QoS without a will', { flags: cleanStart | 0x08 }, malformed],
  ['3.1.2-12', 'will QoS 3', { will: { topic: 'w', payload: '', qos: 3 } }, malformed],
  ['3.1.2-13', 'will retain without a will', { flags: cleanStart | 0x20 }, malformed],
  ['3.1.2-16', 'a user name without its flag', { rest: [text('u')] }, malformed],
  ['3.1.2-17', 'the flag of a user name without one', { flags: cleanStart | userFlag }, malformed],
  [
    '3.1.2-18',
    'a password without its flag',
    { flags: cleanStart | userFlag, rest: [text('u'), text('p')] },
    malformed,
  ],
  ['3.1.2-19', 'the flag of a password without one', { flags: cleanStart | passwordFlag }, malformed],
  ['3.1.3-1', 'a byte behind the fields', { rest: [0] }, malformed],
  ['3.1.3-4', 'a client id that is not UTF-8', { clientId: notUtf8 }, [malformed, 0x85]],
  ['1.5.4-2', 'a client id with a null', { clientId: 'a\0' }, [malformed, 0x85]],
  ['3.1.3-8', 'a client id that is too long', { clientId: 'x'.repeat(300) }, 0x85],
  [
    '3.1.3-11',
    'a will topic that is not UTF-8',
    { flags: cleanStart | willFlag, rest: [0, text(notUtf8), text('')] },
    [malformed, 0x90],
  ],
  [
    '3.1.3-12',
    'a user name that is not UTF-8',
    { flags: cleanStart | userFlag, rest: [text(notUtf8)] },
    malformed,
  ],
  ['3.2.2-13', 'a will with retain', { will: { topic: 'w', payload: '', retain: true } }, 0x9a],
  [
    '4.12.0-1',
    'enhanced authentication',
    { properties: [property.authenticationMethod, text('SCRAM')] },
    0x8c,
  ],
  ['2.2.2-1', 'no property length', { section: Buffer.alloc(0) }, malformed],
  ['1.5.5-1', 'a property length of 80 00', { section: Buffer.from([0x80, 0]) }, malformed],
  [
    '3.1.2-29',
    'problem information 2',
    { properties: [property.requestProblemInformation, 2] },
    protocolError,
  ],
  ['4.13.1-1', 'receive maximum 0', { properties: [property.receiveMaximum, uint16(0)] }, protocolError],
  [
    '4.13.1-1',
    'maximum packet size 0',
    { properties: [property.maximumPacketSize, uint32(0)] },
    protocolError,
  ],
  [
    '4.13.1-1',
    'a session expiry twice',
    { properties: [property.sessionExpiry, uint32(1), property.sessionExpiry, uint32(1)] },
    protocolError,
  ],
  [
    '4.13.1-1',
    'authentication data without a method',
    { properties: [property.authenticationData, text('x')] },
    [protocolError, 0x8c],
  ],
  [
    '4.13.1-1',
    'a property of PUBLISH',
    { properties: [property.topicAlias, uint16(1)] },
    [malformed, protocolError],
  ],
]

const silentEnds: readonly (readonly [number: string, what: string, bytes: Buffer])[] = [
  ['3.1.0-1', 'PINGREQ first', pingPacket],
  ['3.1.0-1', 'PUBLISH first', publishPacket({ topic })],
  ['3.1.0-1', 'DISCONNECT first', packetOf(0xe0)],
  ['3.1.0-1', 'AUTH first', packetOf(0xf0)],
  ['3.1.2-1', 'the protocol MQXX', connectPacket({ name: 'MQXX' })],
  ['3.1.2-1', 'the protocol mqtt', connectPacket({ name: 'mqtt' })],
  ['2.1.3-1', 'CONNECT with flags', Buffer.concat([Buffer.from([0x11]), connectPacket().subarray(1)])],
]

/** At a bound of a gateway with users: the fields of a client before it, then its own. */
const atBounds: readonly (readonly [
  reason: string,
  code: number,
  before: ConnectFields | null,
  fields: ConnectFields,
])[] = [
  ['no_user_name', 0x87, null, {}],
  ['bad_credentials', 0x86, null, { userName: 'van', password: 'no' }],
  ['client_id_in_use', 0x85, van, { ...van, userName: 'bus' }],
  ['max_connections_per_identity', 0x97, van, { ...van, clientId: 'second' }],
]

const bounded = {
  limits: 'max_in_flight: 77, max_packet_bytes: 100KiB, session_expiry: 1h, max_keepalive: 60s',
}

overEachTransport((transport) => {
  test('[MQTT-3.2.2-6] [MQTT-3.2.2-7] [MQTT-3.2.2-8] a CONNECT that is wrong is refused with a code, and nothing behind it is taken', async () => {
    const world = await world5(transport)
    await Promise.all(
      refusals.map(async ([number, what, fields, code]) => {
        const device = await world.open()
        // What follows in the same segment is not taken [MQTT-3.1.4-6].
        device.send(connectPacket(fields), publishPacket({ topic, payload: positionText(1) }), pingPacket)
        await endOf(device)
        const found = device.received.map((one) => [one.type, one.sessionPresent])
        expect(found, `[MQTT-${number}] ${what}`).toEqual([['connack', false]])
        expect([code].flat(), what).toContain(device.received[0]?.code)
      }),
    )
    expect(await world.counter('gateway_messages_received_total')).toBe(0)
  })

  test('[MQTT-3.14.0-1] what is not a CONNECT ends without an answer', async () => {
    const world = await world5(transport)
    for (const [number, what, bytes] of silentEnds) {
      const device = await world.open()
      device.send(bytes, publishPacket({ topic, payload: positionText(1) }), pingPacket)
      await endOf(device)
      expect(device.received, `[MQTT-${number}] ${what}`).toEqual([])
    }
    expect(await world.counter('gateway_messages_received_total')).toBe(0)
  })

  test('[MQTT-3.1.4-2] [MQTT-3.1.4-6] a client that may not connect hears why, and nothing behind its CONNECT is taken', async () => {
    const access =
      '{ users: [{ name: van, password: "${env:PASSWORD}" }, { name: bus, password: "${env:PASSWORD}" }] }'
    const world = await world5(transport, { access, limits: 'max_connections_per_identity: 1' })
    for (const [reason, code, before, fields] of atBounds) {
      const first = before === null ? null : await world.connected(before)
      const device = await world.open()
      device.send(connectPacket(fields), publishPacket({ topic }), pingPacket)
      await endOf(device)
      expect(device.received, reason).toMatchObject([{ type: 'connack', code, sessionPresent: false }])
      expect(device.received[0]?.properties.get(property.reasonString)).toBe(reason)
      first?.send(disconnectPacket())
      await first?.gone()
    }
    expect(await world.counter('gateway_messages_received_total')).toBe(0)
    expect((await world.connected(van)).connack.code).toBe(0)
  })

  test('[MQTT-3.1.4-5] [MQTT-3.2.0-1] [MQTT-3.2.0-2] answers CONNECT before all that follows it', async () => {
    const world = await world5(transport)
    const device = await world.open()
    device.send(connectPacket(), publishPacket({ topic, payload: positionText(1) }), pingPacket)
    await device.next('puback')
    await device.next('pingresp')
    expect(device.received[0]).toMatchObject({ type: 'connack', code: 0, sessionPresent: false })
    expect(device.received.filter(({ type }) => type === 'connack')).toHaveLength(1)
  })

  test('[MQTT-3.1.3-5] accepts client ids of 1 to 23 letters and digits', async () => {
    const world = await world5(transport)
    for (const clientId of ['a', 'Z9abcdefghijklmnopqrstu'.slice(0, 23)])
      expect((await world.connected({ clientId })).connack.code).toBe(0)
  })

  test('[MQTT-3.1.3-6] [MQTT-3.1.3-7] [MQTT-3.2.2-16] each client without an id gets one of its own', async () => {
    const world = await world5(transport)
    const devices = await Promise.all(Array.from({ length: 20 }, () => world.connected({ clientId: '' })))
    const ids = devices.map(({ connack }) => connack.properties.get(property.assignedClientId))
    expect(new Set(ids).size).toBe(20)
    expect(ids).not.toContain(undefined)
    const named = await world.connected({ clientId: 'named' })
    expect(named.connack.properties.has(property.assignedClientId)).toBe(false)
  })

  test('[MQTT-3.1.2-14] [MQTT-3.1.2-12] takes wills of each QoS without retain', async () => {
    const world = await world5(transport)
    for (const qos of [0, 1, 2]) {
      const clientId = `will-${qos}`
      const { connack } = await world.connected({ clientId, will: { topic, payload: 'gone', qos } })
      expect(connack.code).toBe(0)
    }
  })

  test('[MQTT-3.1.4-3] [MQTT-3.1.3-2] the older connection of a client id gets 0x8E', async () => {
    const world = await world5(transport)
    const other = await world.connected({ clientId: 'van-2' })
    let older = await world.connected({ clientId: 'van-1' })
    for (let round = 0; round < 20; round += 1) {
      const newer = await world.connected({ clientId: 'van-1' })
      expect(await older.gone()).toMatchObject({ code: 0x8e })
      older = newer
    }
    expect(other.closed).toBe(false)
  })

  test('[MQTT-3.1.4-1] a CONNECT with one wrong byte is answered or closed, and the gateway goes on', async () => {
    const world = await world5(transport)
    const levelAt = 8
    const whole = connectPacket({
      clientId: 'fuzz',
      userName: 'u',
      password: 'p',
      properties: [property.sessionExpiry, uint32(9), userProperty('a', 'b')],
      will: { topic: 'w', payload: 'x', properties: [property.willDelay, uint32(3)] },
    })
    const wrong = Array.from(whole, (byte, at) => Buffer.from(whole).fill(byte ^ 0xff, at, at + 1))
    // One of another level is answered in the layout of 3.1.1.
    await Promise.all(
      wrong
        .toSpliced(levelAt, 1)
        .slice(2)
        .map(async (bytes) => {
          const device = await world.open()
          // The end of the stream is the end of a CONNECT that now announces more than it has.
          device.send(bytes, packetOf(0xe0), packetOf(0xf1))
          await device.until(() => device.closed || device.received.length > 0)
          device.destroy()
        }),
    )
    expect((await world.connected()).connack.code).toBe(0)
  })

  test('[MQTT-3.1.2-2] an unknown level is answered in the layout of 3.1.1, and the connection ends', async () => {
    const world = await world5(transport)
    for (const level of [6, 127]) {
      const device = await world.open()
      device.send(connectPacket({ level }))
      // 20 02 00 01 has no properties, so the strict reader throws at it.
      await expect(device.gone()).rejects.toThrow('ends within')
    }
  })

  test('[MQTT-3.2.2-9] [MQTT-3.2.2-1] CONNACK announces what the gateway supports', async () => {
    const world = await world5(transport, bounded)
    const { connack } = await world.connected({
      properties: [property.requestResponseInformation, 1, property.sessionExpiry, uint32(30)],
      flags: 0,
    })
    const { properties } = connack
    expect(properties.get(property.receiveMaximum)).toBe(77)
    expect(properties.get(property.maximumPacketSize)).toBeGreaterThanOrEqual(100 * 1024)
    expect(properties.get(property.topicAliasMaximum)).toBe(10)
    expect(properties.get(property.retainAvailable)).toBe(0)
    expect(properties.get(property.wildcardsAvailable)).toBe(0)
    expect(properties.get(property.subscriptionIdsAvailable)).toBe(0)
    expect(properties.get(property.sharedAvailable)).toBe(0)
    for (const absent of [
      property.maximumQos,
      property.responseInformation,
      property.sessionExpiry,
      property.authenticationMethod,
      property.serverReference,
    ])
      expect(properties.has(absent)).toBe(false)
  })

  test('a session expiry beyond the setting is announced, and so is the one without an end', async () => {
    const world = await world5(transport, bounded)
    for (const asked of [0xffff_ffff, 3601, 3600]) {
      const { connack } = await world.connected({
        clientId: `asks-${asked}`,
        properties: [property.sessionExpiry, uint32(asked)],
      })
      expect(connack.properties.get(property.sessionExpiry)).toBe(asked === 3600 ? undefined : 3600)
    }
  })

  test('[MQTT-3.1.2-24] [MQTT-3.2.2-19] [MQTT-3.2.2-20] [MQTT-3.14.2-3] nothing is larger than the client takes', async () => {
    const world = await world5(transport)
    for (const [size, types] of [
      [100, ['connack 0', 'suback 0', 'disconnect 129']],
      [64, ['connack 0', 'suback 0', 'disconnect 129']],
      // No room for CONNACK, which would say what the gateway takes: not admitted.
      [20, ['connack 149']],
      [4, []],
    ] as const) {
      const device = await world.open()
      const properties = [property.maximumPacketSize, uint32(size)]
      device.send(connectPacket({ clientId: `small-${size}`, properties }))
      // The first SUBACK has 106 bytes.
      const many = Array.from({ length: 100 }, (_, index) => [`t${index}`, 0] as const)
      device.send(subscribePacket(1, many), subscribePacket(2, [['a', 0]]), packetOf(0xc1))
      await device.gone()
      expect(device.received.map(({ type, code }) => `${type} ${code}`)).toEqual(types)
      for (const packet of device.received) expect(packet.bytes).toBeLessThanOrEqual(size)
    }
  })

  test('a client that wants no reasons gets codes only', async () => {
    const world = await world5(transport)
    for (const wanted of [0, 1]) {
      const properties = [property.requestProblemInformation, wanted]
      const device = await world.connected({ clientId: `wants-${wanted}`, properties })
      device.send(packetOf(0xc1))
      const reasons = [...((await device.gone())?.properties.values() ?? [])]
      expect(reasons).toEqual(wanted === 1 ? ['protocol_error'] : [])
    }
  })

  test('[MQTT-3.1.3-3] a CONNECT without a client id field is refused', async () => {
    const world = await world5(transport)
    const device = await world.open()
    device.send(packetOf(0x10, text('MQTT'), 5, cleanStart, uint16(0), propertiesOf()))
    expect(await device.next('connack')).toMatchObject({ code: malformed })
    await device.gone()
  })

  test('the device view shows the version, the transport and the properties', async () => {
    const world = await world5(transport, bounded)
    const device = await world.connected({
      clientId: 'shown',
      keepAliveS: 600,
      properties: [
        property.sessionExpiry,
        uint32(0xffff_ffff),
        property.receiveMaximum,
        uint16(20),
        property.topicAliasMaximum,
        uint16(3),
        userProperty('firmware', '4.2'),
        userProperty('Api-Token', 'xyz'),
      ],
      flags: 0x04,
      will: { topic: 'status', payload: 'lost', properties: [property.willDelay, uint32(30)] },
    })
    device.send(publishPacket({ topic, messageId: 1, payload: positionText(1) }))
    await device.next('puback')
    const answer = await fetch(`${world.gateway.addresses.ops}/devices/van`)
    const { client } = (await answer.json()) as { client: object }
    expect(client).toMatchObject({
      protocol: shownAs[transport],
      connect: {
        keepaliveAsked: 600,
        keepalive: 60,
        sessionExpiryAsked: null,
        sessionExpiry: 3600,
        cleanStart: false,
        sessionPresent: false,
        receiveMaximum: 20,
        topicAliasMaximum: 3,
        maximumPacketSize: null,
        willDelay: 30,
        userProperties: { firmware: '4.2', 'Api-Token': '***' },
      },
    })
    const page = await fetch(`${world.gateway.addresses.ops}/page/device?key=van`, {
      headers: { accept: 'text/html' },
    })
    const text = (await page.text()).replaceAll(/<[^>]+>/g, '').replaceAll(/\s+/g, ' ')
    expect(text).toContain(
      'keepalive 1 min, asked: 10 min, session new: none was stored, session expiry 1 h, asked: never, ' +
        'receive maximum 20 messages, topic alias maximum 3, will delay 30 s, user property firmware=4.2',
    )
  })
})
