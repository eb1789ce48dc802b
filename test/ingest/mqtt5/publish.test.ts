// PUBLISH, its acknowledgements, topic aliases and the receive maximum.

import { expect, test } from 'vitest'
import {
  pingPacket,
  property,
  publishPacket,
  pubrelPacket,
  subscribePacket,
  uint16,
  uint32,
  userProperty,
} from '../../support/mqtt5-packets.ts'
import { overEachTransport, topic } from '../../support/statement-world.ts'
import { world5 } from './world5.ts'

const expiring = [property.sessionExpiry, uint32(3600)]
const inFlightMax = 20
const tight = {
  limits: `max_in_flight: ${inFlightMax}, max_topic_aliases: 0, max_packet_bytes: 4KiB, max_topic_bytes: 100`,
}

overEachTransport((transport) => {
  test('[MQTT-4.2-1] [MQTT-3.3.4-1] [MQTT-2.2.1-2] [MQTT-2.2.1-5] each QoS has its answer', async () => {
    const world = await world5(transport)
    const device = await world.connected()
    device.send(publishPacket({ topic, qos: 0, payload: world.position(0) }))
    for (const [index, messageId] of [1, 255, 256, 65_535].entries()) {
      device.send(publishPacket({ topic, messageId, payload: world.position(10 + index) }))
      device.send(
        publishPacket({ topic, qos: 2, messageId: messageId - 1 || 7, payload: world.position(20 + index) }),
      )
      expect(await device.next('puback', index)).toMatchObject({ messageId, code: 0 })
      const pubrec = await device.next('pubrec', index)
      expect(pubrec).toMatchObject({ messageId: messageId - 1 || 7, code: 0 })
      device.send(pubrelPacket(pubrec.messageId))
      expect(await device.next('pubcomp', index)).toMatchObject({ messageId: pubrec.messageId, code: 0 })
    }
    expect(device.received).toHaveLength(13)
    expect(await world.counter('gateway_messages_mapped_total')).toBe(9)
  })

  test('[MQTT-3.4.2-1] [MQTT-3.4.2-2] [MQTT-3.4.2-3] [MQTT-3.5.2-1] [MQTT-3.5.2-2] [MQTT-3.5.2-3] [MQTT-3.7.2-2] [MQTT-3.7.2-3] an answer has no more than it needs', async () => {
    const world = await world5(transport)
    const device = await world.connected()
    device.send(publishPacket({ topic, messageId: 1, payload: world.position(1) }))
    // A dead letter is kept, so its answer is a success.
    device.send(
      publishPacket({ topic: 'no/source', messageId: 2 }),
      publishPacket({ topic, messageId: 3, payload: '{' }),
    )
    device.send(publishPacket({ topic, messageId: 4, qos: 2, payload: world.position(4) }), pubrelPacket(4))
    await device.next('pubcomp')
    const answers = device.received.filter(({ type }) => type !== 'connack')
    expect(answers.map(({ bytes, code }) => [bytes, code])).toEqual(answers.map(() => [4, 0]))
    expect(await world.counter('gateway_messages_dead_total')).toBe(2)
  })

  test('[MQTT-4.4.0-2] a message that is not allowed is refused by 0x87 and counted', async () => {
    const world = await world5(transport, { broker: 'rules: { publish: [{ topics: ["t/{client}"] }] }' })
    const device = await world.connected({ clientId: 'van' })
    device.send(publishPacket({ topic: 't/other', messageId: 1, payload: world.position(1) }))
    device.send(publishPacket({ topic: 't/van', messageId: 2, payload: world.position(2) }))
    device.send(publishPacket({ topic: 't/other', messageId: 3, qos: 2, payload: world.position(3) }))
    expect(await device.next('puback')).toMatchObject({ messageId: 1, code: 0x87 })
    expect(await device.next('puback', 1)).toMatchObject({ messageId: 2, code: 0 })
    expect(await device.next('pubrec')).toMatchObject({ messageId: 3, code: 0x87 })
    expect(await world.counter('gateway_messages_refused_total')).toBe(2)
    // [MQTT-4.3.3-9]: the identifier is free.
    device.send(publishPacket({ topic: 't/van', messageId: 3, qos: 2, payload: world.position(4) }))
    expect(await device.next('pubrec', 1)).toMatchObject({ messageId: 3, code: 0 })
    expect(await world.counter('gateway_messages_mapped_total')).toBe(2)
  })

  test('[MQTT-3.3.2-12] each alias up to the maximum can be set, used and set again', async () => {
    const world = await world5(transport)
    const device = await world.connected()
    const aliasOf = (alias: number) => [property.topicAlias, uint16(alias)]
    let messageId = 0
    const publish = (name: string, alias: number) =>
      device.send(
        publishPacket({
          topic: name,
          properties: aliasOf(alias),
          messageId: (messageId += 1),
          payload: world.position(messageId),
        }),
      )
    for (let alias = 1; alias <= 10; alias += 1) publish(`t/van-${alias}`, alias)
    for (let alias = 1; alias <= 10; alias += 1) publish('', alias)
    publish('t/other', 4)
    publish('', 4)
    publish('', 5)
    await device.next('puback', messageId - 1)
    expect(await world.counter('gateway_messages_mapped_total')).toBe(messageId)
  })

  test('[MQTT-3.3.2-7] an alias ends with its connection', async () => {
    const world = await world5(transport)
    const properties = [property.topicAlias, uint16(1)]
    const first = await world.connected({ properties: expiring })
    first.send(publishPacket({ topic, properties, payload: world.position(1) }))
    await first.next('puback')
    first.destroy()
    const second = await world.connected({ flags: 0, properties: expiring })
    second.send(publishPacket({ topic: '', properties, messageId: 2, payload: world.position(2) }))
    expect([0x82, 0x94]).toContain((await second.gone())?.code)
  })

  test('[MQTT-3.2.2-17] [MQTT-3.2.2-18] no alias above the announced maximum', async () => {
    for (const [options, maximum] of [
      [{}, 10],
      [tight, 0],
    ] as const) {
      const world = await world5(transport, options)
      const device = await world.connected()
      expect(device.connack.properties.get(property.topicAliasMaximum) ?? 0).toBe(maximum)
      device.send(publishPacket({ topic, properties: [property.topicAlias, uint16(maximum + 1)] }))
      expect(await device.gone()).toMatchObject({ code: 0x94 })
    }
  })

  test('a topic beyond the room for aliases is taken, and its alias ends the connection with 0x97', async () => {
    const world = await world5(transport)
    const device = await world.connected()
    const publish = (alias: number, name: string) =>
      publishPacket({
        topic: name,
        qos: 2,
        messageId: alias + name.length,
        properties: [property.topicAlias, uint16(alias)],
        payload: world.position(alias),
      })
    // There is room for two of them.
    const topics = ['a', 'b', 'c'].map((letter) => `t/${letter.repeat(4000)}`)
    device.send(...topics.map((name, index) => publish(index + 1, name)), publish(2, ''), publish(3, ''))
    expect(await device.gone()).toMatchObject({ code: 0x97 })
    expect(await world.counter('gateway_messages_received_total')).toBe(4)
  })

  test('[MQTT-3.2.2-14] [MQTT-3.3.1-8] a message with RETAIN is taken once, and no subscriber gets a message', async () => {
    const world = await world5(transport)
    const subscriber = await world.connected({ clientId: 'listens' })
    subscriber.send(
      subscribePacket(1, [
        ['#', 1],
        [topic, 2],
      ]),
    )
    await subscriber.next('suback')
    const device = await world.connected()
    device.send(publishPacket({ topic, retain: true, payload: world.position(1) }))
    device.send(publishPacket({ topic, messageId: 2, payload: world.position(2) }))
    await device.next('puback', 1)
    const late = await world.connected({ clientId: 'listens later' })
    late.send(subscribePacket(1, [['#', 1]]), pingPacket)
    subscriber.send(pingPacket)
    await Promise.all([late.next('pingresp'), subscriber.next('pingresp')])
    for (const one of [subscriber, late])
      expect(one.received.map(({ type }) => type)).not.toContain('publish')
    expect(await world.counter('gateway_messages_mapped_total')).toBe(2)
  })

  test('[MQTT-3.2.2-15] a packet above the maximum ends the connection before it is read', async () => {
    const world = await world5(transport, tight)
    const device = await world.connected()
    const head = publishPacket({ topic, payload: Buffer.alloc(8192) }).subarray(0, 20)
    device.send(head)
    expect(await device.gone()).toMatchObject({ code: 0x95 })
  })

  test('[MQTT-4.7.3-3] topics up to max_topic_bytes are accepted, longer ones get 0x90', async () => {
    const world = await world5(transport, tight)
    const device = await world.connected()
    device.send(publishPacket({ topic: `t/${'x'.repeat(98)}`, payload: world.position(1) }))
    await device.next('puback')
    device.send(publishPacket({ topic: `t/${'x'.repeat(99)}`, messageId: 2 }))
    expect(await device.gone()).toMatchObject({ code: 0x90 })
  })

  test('[MQTT-4.3.2-5] [MQTT-4.3.3-12] an identifier is free after its acknowledgement, whatever DUP says', async () => {
    const world = await world5(transport)
    const device = await world.connected()
    for (let n = 1; n <= 3; n += 1) {
      device.send(publishPacket({ topic, messageId: 5, dup: n > 1, payload: world.position(n) }))
      await device.next('puback', n - 1)
      device.send(publishPacket({ topic, messageId: 6, qos: 2, payload: world.position(10 + n) }))
      await device.next('pubrec', n - 1)
      device.send(pubrelPacket(6))
      await device.next('pubcomp', n - 1)
    }
    expect(await world.counter('gateway_messages_mapped_total')).toBe(6)
  })

  test('[MQTT-4.3.3-10] [MQTT-4.3.3-8] a second PUBLISH with an unreleased identifier is answered and stored once', async () => {
    const world = await world5(transport)
    const device = await world.connected({ flags: 0, properties: expiring })
    const message = { topic, messageId: 9, qos: 2, payload: world.position(1) }
    device.send(publishPacket(message), publishPacket({ ...message, dup: true }))
    await device.next('pubrec', 1)
    device.destroy()
    const again = await world.connected({ flags: 0, properties: expiring })
    expect(again.connack.sessionPresent).toBe(true)
    again.send(publishPacket({ ...message, dup: true }))
    await again.next('pubrec')
    again.send(pubrelPacket(9))
    expect(await again.next('pubcomp')).toMatchObject({ messageId: 9, code: 0 })
    expect(await world.counter('gateway_messages_mapped_total')).toBe(1)
  })

  test('[MQTT-3.7.2-1] [MQTT-4.3.3-11] PUBREL of an unknown identifier gets PUBCOMP 0', async () => {
    const world = await world5(transport)
    const device = await world.connected()
    device.send(pubrelPacket(4711))
    expect(await device.next('pubcomp')).toMatchObject({ messageId: 4711, code: 0 })
  })

  test('[MQTT-4.3.3-13] QoS 2 goes on after its message has expired', async () => {
    const world = await world5(transport)
    const device = await world.connected()
    const properties = [property.messageExpiry, uint32(0)]
    device.send(publishPacket({ topic, qos: 2, properties, payload: world.position(1) }))
    await device.next('pubrec')
    device.send(pubrelPacket(1))
    await device.next('pubcomp')
    expect(await world.counter('gateway_messages_mapped_total')).toBe(1)
  })

  test('[MQTT-3.3.1-1] the same message with DUP after a reconnect is one payload', async () => {
    const world = await world5(transport)
    for (let round = 0; round < 3; round += 1) {
      const device = await world.connected({ flags: 0, properties: expiring })
      device.send(publishPacket({ topic, messageId: 3, dup: round > 0, payload: world.position(1) }))
      await device.next('puback')
      device.destroy()
    }
    expect(await world.counter('gateway_messages_mapped_total')).toBe(1)
    expect(await world.counter('gateway_messages_duplicate_total')).toBe(2)
  })

  test('a payload that is not what its format indicator says is mapped by our rules, and counted', async () => {
    const world = await world5(transport)
    const device = await world.connected()
    const properties = [property.payloadFormat, 1]
    device.send(publishPacket({ topic, properties, payload: Buffer.from([0xff, 0xfe]) }))
    device.send(publishPacket({ topic, properties, messageId: 2, payload: world.position(2) }))
    expect(await device.next('puback')).toMatchObject({ code: 0 })
    expect(await device.next('puback', 1)).toMatchObject({ code: 0 })
    expect(await world.counter('gateway_payload_format_mismatches_total')).toBe(1)
  })

  test('user properties and long texts beyond the bound are skipped and counted, and the message is taken', async () => {
    const world = await world5(transport)
    const device = await world.connected()
    const many = Array.from({ length: 70 }, (_, n) => userProperty(`p${n}`, 'x'))
    const long = ['a', 'b'].map((name) => userProperty(name, 'x'.repeat(16_000)))
    for (const [index, properties] of [many, long].entries())
      device.send(publishPacket({ topic, messageId: index + 1, properties, payload: world.position(index) }))
    await device.next('puback', 1)
    expect(await world.counter('gateway_messages_mapped_total')).toBe(2)
    expect(await world.counter('gateway_properties_skipped_total')).toBe(7)
  })

  test('[MQTT-3.3.4-7] [MQTT-3.3.4-8] [MQTT-4.9.0-3] [MQTT-3.12.4-1] one message more than the receive maximum is 0x93, and none before', async () => {
    const world = await world5(transport, tight)
    const device = await world.connected()
    // PUBREC counts until PUBCOMP, so messages of QoS 2 stay in flight as long as the device likes.
    for (let messageId = 1; messageId <= inFlightMax; messageId += 1)
      device.send(publishPacket({ topic, qos: 2, messageId, payload: world.position(messageId) }))
    await device.next('pubrec', inFlightMax - 1)
    device.send(pingPacket)
    await device.next('pingresp')
    device.send(pubrelPacket(1))
    await device.next('pubcomp')
    device.send(publishPacket({ topic, messageId: 100, payload: world.position(100) }))
    await device.next('puback')
    device.send(publishPacket({ topic, qos: 2, messageId: 101, payload: world.position(101) }))
    await device.next('pubrec', inFlightMax)
    expect(device.closed).toBe(false)
    device.send(publishPacket({ topic, messageId: 102, payload: world.position(102) }))
    expect(await device.gone()).toMatchObject({ code: 0x93 })
  })

  test('[MQTT-4.6.0-2] [MQTT-4.6.0-3] acknowledgements come in the order of the packets', async () => {
    const world = await world5(transport)
    const device = await world.connected()
    const count = 500
    for (let messageId = 1; messageId <= count; messageId += 1)
      device.send(
        publishPacket({ topic, qos: 1 + (messageId % 2), messageId, payload: world.position(messageId) }),
      )
    await device.next('pubrec', count / 2 - 1)
    await device.next('puback', count / 2 - 1)
    const order = (type: string) =>
      device.received.filter((one) => one.type === type).map(({ messageId }) => messageId)
    expect(order('puback')).toEqual(Array.from({ length: count / 2 }, (_, index) => 2 * index + 2))
    expect(order('pubrec')).toEqual(Array.from({ length: count / 2 }, (_, index) => 2 * index + 1))
  })
})
