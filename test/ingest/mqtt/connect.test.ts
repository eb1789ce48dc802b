// CONNECT: what ends without an answer, what is refused with which code, and what is accepted.

import { expect, test } from 'vitest'
import { rowsBeside } from '../../support/case-rows.ts'
import {
  cleanStart,
  packetOf,
  pingPacket,
  property,
  text,
  uint16,
  uint32,
  userProperty,
} from '../../support/mqtt5-packets.ts'
import type { Version } from '../../support/mqtt-versions.ts'
import { fieldsFrom, packetFrom, type PacketRow } from '../../support/packet-rows.ts'
import { codeAtEnd, endOf, overEachTransport, positionText, topic } from '../../support/statement-world.ts'

const shownAs = {
  tcp: 'MQTT 5',
  tls: 'MQTT 5 over TLS',
  ws: 'MQTT 5 over WebSocket',
  wss: 'MQTT 5 over WebSocket with TLS',
}

type Row = readonly [what: string, packet: PacketRow]
type Fields = object | null

const rows = rowsBeside(import.meta.filename) as {
  [kind in 'wrong' | 'wrong3' | 'wrong5']: [what: string, fields: object, codes?: number | number[]][]
} & { [kind in 'silent' | 'silent3' | 'accepted3']: Row[] } & {
  refused3: [what: string, fields: object, code: number][]
  at_bounds: [reason: string, code3: number, code5: number, before: Fields, fields: object][]
}

const malformed = 0x81
const named = text('MQTT')
const van = { clientId: 'van', userName: 'van', password: 'right' }

/** What ends without an answer. */
const silentOf = (version: Version): Row[] => {
  if (version === 5) return rows.silent
  const wrong = [...rows.wrong, ...rows.wrong3].map(([what, connect]): Row => [what, { connect }])
  return [...rows.silent, ...rows.silent3, ...wrong]
}

const bounded = {
  limits: 'max_in_flight: 77, max_packet_bytes: 100KiB, session_expiry: 1h, max_keepalive: 60s',
}

overEachTransport([3, 5], (open, packets, version) => {
  const { connect, publish } = packets

  test('[MQTT3-3.1.4-1] [MQTT5-3.14.0-1] a CONNECT that is wrong, or another packet before it, ends without an answer', async () => {
    const world = await open()
    await Promise.all(
      silentOf(version).map(async ([what, packet]) => {
        const device = await world.open()
        device.send(packetFrom(packet, packets), publish({ topic, payload: positionText(1) }), pingPacket)
        await endOf(device)
        expect(device.received, what).toEqual([])
      }),
    )
    expect(await world.counter('gateway_messages_received_total')).toBe(0)
  })

  test('[MQTT-3.1.4-2] [MQTT3-3.1.4-5] [MQTT3-3.2.2-5] [MQTT5-3.1.4-6] a client that may not connect hears why, and nothing behind its CONNECT is taken', async () => {
    const user = (name: string) => `{ name: ${name}, password: "\${env:PASSWORD}" }`
    const access = `{ users: [${user('van')}, ${user('bus')}] }`
    const world = await open({ access, limits: 'max_connections_per_identity: 1' })
    for (const [reason, code3, code5, before, fields] of rows.at_bounds) {
      const first = before === null ? null : await world.connected(before)
      const device = await world.open()
      device.send(connect(fields), publish({ topic }), pingPacket)
      await endOf(device)
      const code = version === 3 ? code3 : code5
      expect(device.received, reason).toMatchObject([{ type: 'connack', code, sessionPresent: false }])
      const told = device.received[0]?.properties.get(property.reasonString)
      expect(told).toBe(version === 3 ? undefined : reason)
      first?.send(packets.disconnect)
      await first?.gone()
    }
    expect(await world.counter('gateway_messages_received_total')).toBe(0)
    expect((await world.connected(van)).connack.code).toBe(0)
  })

  test('[MQTT-3.2.0-1] [MQTT3-3.1.4-4] [MQTT5-3.1.4-5] [MQTT5-3.2.0-2] answers CONNECT before all that follows it', async () => {
    const world = await open()
    const device = await world.open()
    device.send(connect(), publish({ topic, payload: positionText(1) }), pingPacket)
    await device.next('puback')
    await device.next('pingresp')
    expect(device.received[0]).toMatchObject({ type: 'connack', code: 0, sessionPresent: false })
    expect(device.received).toHaveLength(3)
  })

  test('[MQTT-3.1.3-5] accepts client ids of 1 to 23 letters and digits', async () => {
    const world = await open()
    for (const clientId of ['a', '0123456789abcdefghijABC', 'klmnopqrstuvwxyzDEFGHIJ', 'KLMNOPQRSTUVWXYZ'])
      expect((await world.connected({ clientId })).connack.code).toBe(0)
  })

  test('[MQTT-3.1.3-6] [MQTT5-3.1.3-7] [MQTT5-3.2.2-16] each client without an id gets one of its own', async () => {
    const world = await open()
    const devices = await Promise.all(Array.from({ length: 20 }, () => world.connected({ clientId: '' })))
    for (const device of devices) device.send(pingPacket)
    await Promise.all(devices.map((device) => device.next('pingresp')))
    expect(await world.counter('gateway_clients_taken_over_total')).toBe(0)
    const idOf = (device: (typeof devices)[0]) => device.connack.properties.get(property.assignedClientId)
    expect(new Set(devices.map(idOf)).size).toBe(version === 3 ? 1 : 20)
    expect(devices.map(idOf).includes(undefined)).toBe(version === 3)
    expect(idOf(await world.connected({ clientId: 'named' }))).toBeUndefined()
  })

  test('[MQTT5-3.1.2-14] takes wills of each QoS without retain', async () => {
    const world = await open()
    for (const qos of [0, 1, 2]) {
      const device = await world.connected({ clientId: `will-${qos}`, will: { topic, payload: 'gone', qos } })
      expect(device.connack.code).toBe(0)
    }
  })

  test('[MQTT3-3.1.4-2] [MQTT5-3.1.4-3] [MQTT-3.1.3-2] the older connection of a client id ends, and no other', async () => {
    const world = await open()
    const other = await world.connected({ clientId: 'van-2' })
    let older = await world.connected({ clientId: 'van-1' })
    for (let round = 0; round < 20; round += 1) {
      const newer = await world.connected({ clientId: 'van-1' })
      expect(await codeAtEnd(older)).toBe(version === 3 ? null : 0x8e)
      older = newer
    }
    expect([other.closed, older.closed]).toEqual([false, false])
  })

  test('[MQTT5-3.1.4-1] a CONNECT with one wrong byte is answered or closed, and the gateway goes on', async () => {
    const world = await open()
    const whole = connect({
      clientId: 'fuzz',
      userName: 'u',
      password: 'p',
      properties: [property.sessionExpiry, uint32(9), userProperty('a', 'b')],
      will: { topic: 'w', payload: 'x', properties: [property.willDelay, uint32(3)] },
    })
    const wrongOnes = Array.from(whole, (byte, at) => Buffer.from(whole).fill(byte ^ 0xff, at, at + 1))
    const levelAt = 8
    await Promise.all(
      wrongOnes.map(async (bytes, at) => {
        // One of another level is answered in the layout of 3.1.1. The length is another test.
        if (at < 2 || (at === levelAt && version === 5)) return
        const device = await world.open()
        // The end of the stream is the end of a CONNECT that now announces more than it has.
        device.send(bytes, packets.disconnect, packetOf(0xf1))
        await device.until(() => device.closed || device.received.length > 0)
        device.destroy()
      }),
    )
    expect((await world.connected()).connack.code).toBe(0)
  })
})

overEachTransport([3], (open, packets) => {
  const { connect, publish } = packets

  test('[MQTT3-3.2.2-4] [MQTT3-3.1.4-5] [MQTT3-3.2.2-5] what cannot be accepted is refused with its return code', async () => {
    const world = await open()
    for (const [what, fields, code] of rows.refused3) {
      const device = await world.open()
      device.send(connect(fieldsFrom(fields)), publish({ topic, payload: positionText(1) }), pingPacket)
      await endOf(device)
      expect(device.received, what).toMatchObject([{ type: 'connack', code, sessionPresent: false }])
    }
    expect(await world.counter('gateway_messages_received_total')).toBe(0)
  })

  test('what is rare and allowed in a CONNECT is accepted', async () => {
    const world = await open()
    for (const [what, packet] of rows.accepted3) {
      const device = await world.open()
      device.send(packetFrom(packet, packets))
      expect((await device.next('connack')).code, what).toBe(0)
    }
  })
})

overEachTransport([5], (open, { connect, publish, subscribe }, _version, transport) => {
  test('[MQTT5-3.2.2-6] [MQTT5-3.2.2-7] [MQTT5-3.2.2-8] a CONNECT that is wrong is refused with a code, and nothing behind it is taken', async () => {
    const world = await open()
    const all = [...rows.wrong, ...rows.wrong5].map(
      ([what, fields, codes]) => [what, connect(fieldsFrom(fields)), codes] as const,
    )
    const noClientId = packetOf(0x10, named, 5, cleanStart, uint16(0), 0)
    await Promise.all(
      [...all, ['[MQTT5-3.1.3-3] no client id', noClientId, malformed] as const].map(
        async ([what, bytes, codes = malformed]) => {
          const device = await world.open()
          // What follows in the same segment is not taken [MQTT5-3.1.4-6].
          device.send(bytes, publish({ topic, payload: positionText(1) }), pingPacket)
          await endOf(device)
          const found = device.received.map((one) => [one.type, one.sessionPresent])
          expect(found, what).toEqual([['connack', false]])
          expect([codes].flat(), what).toContain(device.received[0]?.code)
        },
      ),
    )
    expect(await world.counter('gateway_messages_received_total')).toBe(0)
  })

  test('[MQTT5-3.1.2-2] an unknown level is answered in the layout of 3.1.1, and the connection ends', async () => {
    const world = await open()
    for (const level of [6, 127]) {
      const device = await world.open()
      device.send(connect({ level }))
      // 20 02 00 01 has no properties, so the strict reader throws at it.
      await expect(device.gone()).rejects.toThrow('ends within')
    }
  })

  test('[MQTT5-3.2.2-9] [MQTT5-3.2.2-1] CONNACK announces what the gateway supports', async () => {
    const world = await open(bounded)
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
    const world = await open(bounded)
    for (const asked of [0xffff_ffff, 3601, 3600]) {
      const { connack } = await world.connected({
        clientId: `asks-${asked}`,
        properties: [property.sessionExpiry, uint32(asked)],
      })
      expect(connack.properties.get(property.sessionExpiry)).toBe(asked === 3600 ? undefined : 3600)
    }
  })

  test('[MQTT5-3.1.2-24] [MQTT5-3.2.2-19] [MQTT5-3.2.2-20] [MQTT5-3.14.2-3] nothing is larger than the client takes', async () => {
    const world = await open()
    for (const [size, types] of [
      [100, ['connack 0', 'suback 0', 'disconnect 129']],
      [64, ['connack 0', 'suback 0', 'disconnect 129']],
      // No room for CONNACK, which would say what the gateway takes: not admitted.
      [20, ['connack 149']],
      [4, []],
    ] as const) {
      const device = await world.open()
      const properties = [property.maximumPacketSize, uint32(size)]
      device.send(connect({ clientId: `small-${size}`, properties }))
      // The first SUBACK has 106 bytes.
      const many = Array.from({ length: 100 }, (_, index) => [`t${index}`, 0] as const)
      device.send(subscribe(1, many), subscribe(2, [['a', 0]]), packetOf(0xc1))
      await device.gone()
      expect(device.received.map(({ type, code }) => `${type} ${code}`)).toEqual(types)
      for (const packet of device.received) expect(packet.bytes).toBeLessThanOrEqual(size)
    }
  })

  test('a client that wants no reasons gets codes only', async () => {
    const world = await open()
    for (const wanted of [0, 1]) {
      const properties = [property.requestProblemInformation, wanted]
      const device = await world.connected({ clientId: `wants-${wanted}`, properties })
      device.send(packetOf(0xc1))
      const reasons = [...((await device.gone())?.properties.values() ?? [])]
      expect(reasons).toEqual(wanted === 1 ? ['protocol_error'] : [])
    }
  })

  test('the device view shows the version, the transport and the properties', async () => {
    const world = await open(bounded)
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
    device.send(publish({ topic, messageId: 1, payload: positionText(1) }))
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
    const text = (await page.text()).replaceAll(/<[^>]+>/g, ' ').replaceAll(/\s+/g, ' ')
    expect(text).toContain(
      'Keepalive 1 min, asked: 10 min Session new: none was stored Session expiry 1 h, asked: never ' +
        'Receive maximum 20 messages Topic alias maximum 3 Will delay 30 s User property firmware=4.2',
    )
  })
})
