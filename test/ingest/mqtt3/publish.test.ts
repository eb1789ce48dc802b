// PUBLISH of MQTT 3.1.1 and its acknowledgements.

import { expect, test } from 'vitest'
import { publishPacket3, subscribePacket3 } from '../../support/mqtt3-packets.ts'
import { pingPacket, pubrelPacket } from '../../support/mqtt5-packets.ts'
import { overEachTransport, topic } from '../../support/statement-world.ts'
import { world3, type World3 } from './world3.ts'

const positionOf = (world: World3, messageId: number, more: object = {}) =>
  publishPacket3({ topic, messageId, payload: world.position(messageId % 1000), ...more })

overEachTransport((transport) => {
  test('[MQTT-3.3.4-1] [MQTT-2.3.1-6] [MQTT-4.3.2-2] [MQTT-4.3.3-2] each QoS has its answer, with the same identifier', async () => {
    const world = await world3(transport)
    const device = await world.connected()
    device.send(positionOf(world, 40, { qos: 0 }))
    for (const [index, messageId] of [1, 255, 256, 65_535].entries()) {
      device.send(
        positionOf(world, messageId),
        positionOf(world, messageId - 1 || 7, { qos: 2, payload: world.position(900 + index) }),
      )
      expect(await device.next('puback', index)).toMatchObject({ messageId })
      const pubrec = await device.next('pubrec', index)
      expect(pubrec).toMatchObject({ messageId: messageId - 1 || 7 })
      device.send(pubrelPacket(pubrec.messageId))
      expect(await device.next('pubcomp', index)).toMatchObject({ messageId: pubrec.messageId })
    }
    expect(device.received).toHaveLength(13)
    expect(await world.counter('gateway_messages_mapped_total')).toBe(9)
  })

  test('[MQTT-4.3.2-2] after PUBACK an identifier is that of a new message, whatever DUP says', async () => {
    const world = await world3(transport)
    const device = await world.connected()
    for (let n = 1; n <= 3; n += 1) {
      device.send(publishPacket3({ topic, messageId: 5, dup: n > 1, payload: world.position(n) }))
      await device.next('puback', n - 1)
    }
    expect(await world.counter('gateway_messages_mapped_total')).toBe(3)
  })

  test('[MQTT-4.3.3-2] until PUBREL a second PUBLISH is answered and stored once, after PUBCOMP it is a new message', async () => {
    const world = await world3(transport)
    const device = await world.connected({ flags: 0 })
    const message = { qos: 2, payload: world.position(1) }
    device.send(
      positionOf(world, 9, message),
      positionOf(world, 9, message),
      positionOf(world, 9, { ...message, dup: true }),
    )
    await device.next('pubrec', 2)
    device.destroy()
    const again = await world.connected({ flags: 0 })
    again.send(positionOf(world, 9, { ...message, dup: true }))
    await again.next('pubrec')
    expect(await world.counter('gateway_messages_mapped_total')).toBe(1)
    again.send(pubrelPacket(9), pubrelPacket(9))
    await again.next('pubcomp', 1)
    again.send(positionOf(world, 9, { qos: 2, dup: true, payload: world.position(2) }))
    await again.next('pubrec', 1)
    expect(await world.counter('gateway_messages_mapped_total')).toBe(2)
  })

  test('[MQTT-3.3.1-1] the same message with DUP after a reconnect is one payload', async () => {
    const world = await world3(transport)
    for (let round = 0; round < 3; round += 1) {
      const device = await world.connected({ flags: 0 })
      device.send(positionOf(world, 3, { dup: round > 0 }))
      await device.next('puback')
      device.destroy()
    }
    expect(await world.counter('gateway_messages_mapped_total')).toBe(1)
    expect(await world.counter('gateway_messages_duplicate_total')).toBe(2)
  })

  test.each(['drop', 'close'])(
    '[MQTT-3.3.5-2] a message that is not allowed is acknowledged and dropped, or the connection ends (%s)',
    async (on_violation) => {
      const world = await world3(transport, {
        broker: `rules: { on_violation: ${on_violation}, publish: [{ topics: ["t/{client}"] }] }`,
      })
      for (const [qos, answer] of [
        [1, 'puback'],
        [2, 'pubrec'],
      ] as const) {
        const device = await world.connected({ clientId: 'van' })
        device.send(publishPacket3({ topic: 't/other', qos, payload: world.position(1) }))
        await (on_violation === 'drop' ? device.next(answer) : device.gone())
        expect(device.received).toHaveLength(on_violation === 'drop' ? 2 : 1)
      }
      expect(await world.counter('gateway_messages_refused_total')).toBe(2)
      expect(await world.counter('gateway_messages_mapped_total')).toBe(0)
    },
  )

  test('[MQTT-3.3.1-12] a message without RETAIN, and one with it, are stored for no subscriber', async () => {
    const world = await world3(transport)
    const device = await world.connected()
    device.send(positionOf(world, 1, { retain: true }), positionOf(world, 2))
    await device.next('puback', 1)
    const late = await world.connected({ clientId: 'listens later' })
    late.send(subscribePacket3(1, [['#', 1]]), pingPacket)
    await late.next('pingresp')
    expect(late.received.map(({ type }) => type)).toEqual(['connack', 'suback', 'pingresp'])
    expect(await world.counter('gateway_messages_mapped_total')).toBe(2)
  })

  test('[MQTT-4.7.3-3] topics up to max_topic_bytes are accepted, longer ones end the connection', async () => {
    const world = await world3(transport, { limits: 'max_topic_bytes: 65535, max_packet_bytes: 1MiB' })
    const device = await world.connected()
    device.send(publishPacket3({ topic: `t/${'x'.repeat(65_533)}`, payload: world.position(1) }))
    await device.next('puback')
    const short = await world3(transport)
    const other = await short.connected()
    other.send(publishPacket3({ topic: `t/${'x'.repeat(65_533)}`, payload: world.position(1) }))
    expect(await other.gone()).toBeNull()
  })

  test('[MQTT-4.6.0-2] [MQTT-4.6.0-3] [MQTT-7.1.1-1] acknowledgements come in the order of the packets', async () => {
    const world = await world3(transport)
    const device = await world.connected()
    const count = 500
    for (let messageId = 1; messageId <= count; messageId += 1)
      device.send(positionOf(world, messageId, { qos: 1 + (messageId % 2) }))
    await device.next('pubrec', count / 2 - 1)
    await device.next('puback', count / 2 - 1)
    const order = (type: string) =>
      device.received.filter((one) => one.type === type).map(({ messageId }) => messageId)
    expect(order('puback')).toEqual(Array.from({ length: count / 2 }, (_, index) => 2 * index + 2))
    expect(order('pubrec')).toEqual(Array.from({ length: count / 2 }, (_, index) => 2 * index + 1))
  })

  test('[MQTT-3.12.4-1] each PINGREQ has its PINGRESP', async () => {
    const world = await world3(transport)
    const device = await world.connected()
    device.send(pingPacket, positionOf(world, 1), pingPacket, pingPacket)
    await device.next('pingresp', 2)
    await device.next('puback')
    expect(device.received).toHaveLength(5)
  })
})
