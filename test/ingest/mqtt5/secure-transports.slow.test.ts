// What the statements say holds over TLS, too: connect, each QoS, flow control, the ends of a connection. The
// tests run at the same time, because some of them wait.

import { test } from 'vitest'
import {
  connectPacket,
  disconnectPacket,
  packetOf,
  pingPacket,
  property,
  publishPacket,
  pubrelPacket,
  uint16,
  uint32,
} from '../../support/mqtt5-packets.ts'
import { overTransportsAtOnce, positionText, topic } from '../../support/statement-world.ts'
import { world5 } from './world5.ts'

overTransportsAtOnce(['tls', 'wss'], (transport) => {
  test('[MQTT-3.1.4-5] [MQTT-3.2.0-1] [MQTT-3.2.0-2] [MQTT-3.1.4-6] answers CONNECT first, and takes nothing behind one that it refuses', async ({
    expect,
    onTestFinished,
  }) => {
    const access = '{ users: [{ name: van, password: "${env:PASSWORD}" }] }'
    const world = await world5(transport, { access }, onTestFinished)
    const message = publishPacket({ topic, payload: positionText(1) })
    const wrong = await world.open()
    wrong.send(connectPacket({ userName: 'van', password: 'no' }), message)
    expect(await wrong.next('connack')).toMatchObject({ code: 0x86 })
    await wrong.gone()
    expect(await world.counter('gateway_messages_received_total')).toBe(0)
    const right = await world.open()
    right.send(connectPacket({ userName: 'van', password: 'right' }), message, pingPacket)
    await right.next('puback')
    await right.next('pingresp')
    expect(right.received[0]).toMatchObject({ type: 'connack', code: 0, sessionPresent: false })
    expect(await world.counter('gateway_messages_mapped_total')).toBe(1)
  })

  test('[MQTT-3.3.4-1] [MQTT-4.6.0-2] [MQTT-4.6.0-3] [MQTT-4.3.3-10] messages of each QoS, in their order, and once', async ({
    expect,
    onTestFinished,
  }) => {
    const world = await world5(transport, {}, onTestFinished)
    const device = await world.connected({ flags: 0, properties: [property.sessionExpiry, uint32(60)] })
    const count = 300
    for (let messageId = 1; messageId <= count; messageId += 1)
      device.send(publishPacket({ topic, qos: messageId % 3, messageId, payload: positionText(messageId) }))
    await device.next('pubrec', count / 3 - 1)
    await device.next('puback', count / 3 - 1)
    const order = (type: string) =>
      device.received.filter((one) => one.type === type).map(({ messageId }) => messageId)
    expect(order('puback')).toEqual(Array.from({ length: count / 3 }, (_, index) => 3 * index + 1))
    expect(order('pubrec')).toEqual(Array.from({ length: count / 3 }, (_, index) => 3 * index + 2))
    device.destroy()
    const again = await world.connected({ flags: 0 })
    expect(again.connack.sessionPresent).toBe(true)
    again.send(
      publishPacket({ topic, qos: 2, messageId: 2, dup: true, payload: positionText(2) }),
      pubrelPacket(2),
    )
    expect(await again.next('pubcomp')).toMatchObject({ messageId: 2, code: 0 })
    expect(await world.counter('gateway_messages_mapped_total')).toBe(count)
  })

  test('[MQTT-3.3.4-7] [MQTT-3.3.4-8] [MQTT-4.9.0-3] one message more than the receive maximum is 0x93, and none before', async ({
    expect,
    onTestFinished,
  }) => {
    const world = await world5(transport, { limits: 'max_in_flight: 5' }, onTestFinished)
    const device = await world.connected()
    expect(device.connack.properties.get(property.receiveMaximum)).toBe(5)
    for (let messageId = 1; messageId <= 5; messageId += 1)
      device.send(publishPacket({ topic, qos: 2, messageId, payload: positionText(messageId) }))
    await device.next('pubrec', 4)
    device.send(pubrelPacket(1))
    await device.next('pubcomp')
    device.send(publishPacket({ topic, qos: 2, messageId: 6, payload: positionText(6) }), pingPacket)
    await device.next('pubrec', 5)
    await device.next('pingresp')
    device.send(publishPacket({ topic, messageId: 7, payload: positionText(7) }))
    expect(await device.gone()).toMatchObject({ code: 0x93 })
  })

  test('[MQTT-4.13.1-1] [MQTT-3.14.4-1] [MQTT-3.2.2-15] [MQTT-3.1.4-3] a DISCONNECT says why, and nothing follows it', async ({
    expect,
    onTestFinished,
  }) => {
    const world = await world5(transport, { limits: 'max_packet_bytes: 4KiB' }, onTestFinished)
    const large = publishPacket({ topic, payload: Buffer.alloc(8192) })
    for (const [bytes, code] of [
      [packetOf(0xc1), 0x81],
      [connectPacket(), 0x82],
      [publishPacket({ topic, properties: [property.topicAlias, uint16(11)] }), 0x94],
      [large, 0x95],
    ] as const) {
      const device = await world.connected()
      device.send(bytes, pingPacket)
      expect(await device.gone()).toMatchObject({ code })
      expect(device.received).toHaveLength(2)
    }
    const older = await world.connected()
    const newer = await world.connected()
    expect(await older.gone()).toMatchObject({ code: 0x8e })
    const gone = newer.gone()
    await world.gateway.stop('the test')
    expect(await gone).toMatchObject({ code: 0x8b })
  })

  test('[MQTT-3.1.2-22] [MQTT-3.1.2-20] a silent client gets 0x8D, and PINGREQ keeps another one connected', async ({
    expect,
    onTestFinished,
  }) => {
    const world = await world5(transport, undefined, onTestFinished)
    const silent = await world.connected({ clientId: 'silent', keepAliveS: 2 })
    const pings = await world.connected({ clientId: 'pings', keepAliveS: 2 })
    for (let count = 0; !silent.closed; count += 1) {
      pings.send(pingPacket)
      await pings.next('pingresp', count)
      await Promise.race([silent.gone(), new Promise((resolve) => setTimeout(resolve, 200))])
    }
    expect(await silent.gone()).toMatchObject({ code: 0x8d })
    expect(pings.closed).toBe(false)
  })

  test.for([0, 4])(
    '[MQTT-3.14.4-3] [MQTT-3.1.2-10] DISCONNECT %i ends the connection, and decides about the will',
    async (code, { expect, onTestFinished }) => {
      const world = await world5(transport, { source: 'wills: take' }, onTestFinished)
      const device = await world.connected({ will: { topic, payload: positionText(900) } })
      device.send(publishPacket({ topic, payload: positionText(1) }))
      await device.next('puback')
      device.send(disconnectPacket(code))
      expect(await device.gone()).toBeNull()
      const last = await world.connected()
      last.send(publishPacket({ topic, payload: positionText(2) }))
      await last.next('puback')
      const expected = code === 0 ? 2 : 3
      await expect
        .poll(() => world.counter('gateway_messages_mapped_total'), { timeout: 15_000 })
        .toBe(expected)
    },
  )
})
