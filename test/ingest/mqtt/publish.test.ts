// PUBLISH and its acknowledgements. `[MQTT-n]` is a statement of both versions, `[MQTT5-n]` of one.

import { expect, test } from 'vitest'
import {
  pingPacket,
  property,
  pubrelPacket,
  uint16,
  uint32,
  userProperty,
} from '../../support/mqtt5-packets.ts'
import { codeAtEnd, overEachTransport, topic } from '../../support/statement-world.ts'

/** A session that is kept, in both versions. */
const kept = { flags: 0, properties: [property.sessionExpiry, uint32(3600)] }

const inFlightMax = 20
const tight = { limits: `max_in_flight: ${inFlightMax}, max_topic_aliases: 0, max_packet_bytes: 4KiB` }

overEachTransport([3, 5], (open, { publish, subscribe }, version) => {
  test('[MQTT-3.3.4-1] [MQTT3-2.3.1-6] [MQTT3-4.3.3-2] [MQTT5-4.2-1] [MQTT5-2.2.1-2] [MQTT5-2.2.1-5] each QoS has its answer, with the same identifier', async () => {
    const world = await open()
    const device = await world.connected()
    device.send(publish({ topic, qos: 0, payload: world.position(0) }))
    for (const [index, messageId] of [1, 255, 256, 65_535].entries()) {
      const quiet = messageId - 1 || 7
      device.send(
        publish({ topic, messageId, payload: world.position(10 + index) }),
        publish({ topic, qos: 2, messageId: quiet, payload: world.position(20 + index) }),
      )
      expect(await device.next('puback', index)).toMatchObject({ messageId, code: 0 })
      expect(await device.next('pubrec', index)).toMatchObject({ messageId: quiet, code: 0 })
      device.send(pubrelPacket(quiet))
      expect(await device.next('pubcomp', index)).toMatchObject({ messageId: quiet, code: 0 })
    }
    expect(device.received).toHaveLength(13)
    expect(await world.counter('gateway_messages_mapped_total')).toBe(9)
  })

  test('[MQTT3-4.3.2-2] [MQTT5-4.3.2-5] [MQTT5-4.3.3-12] an identifier is free after its acknowledgement, whatever DUP says', async () => {
    const world = await open()
    const device = await world.connected()
    for (let n = 1; n <= 3; n += 1) {
      device.send(publish({ topic, messageId: 5, dup: n > 1, payload: world.position(n) }))
      await device.next('puback', n - 1)
      device.send(publish({ topic, messageId: 6, qos: 2, payload: world.position(10 + n) }))
      await device.next('pubrec', n - 1)
      device.send(pubrelPacket(6))
      await device.next('pubcomp', n - 1)
    }
    expect(await world.counter('gateway_messages_mapped_total')).toBe(6)
  })

  test('[MQTT3-4.3.3-2] [MQTT5-4.3.3-10] [MQTT5-4.3.3-8] until PUBREL a second PUBLISH is answered and stored once, after PUBCOMP it is a new message', async () => {
    const world = await open()
    const first = await world.connected(kept)
    const messageOf = (n: number, dup: boolean) =>
      publish({ topic, qos: 2, messageId: 9, dup, payload: world.position(n) })
    first.send(messageOf(1, false), messageOf(1, false), messageOf(1, true))
    await first.next('pubrec', 2)
    first.destroy()
    const again = await world.connected(kept)
    expect(again.connack.sessionPresent).toBe(true)
    again.send(messageOf(1, true))
    await again.next('pubrec')
    expect(await world.counter('gateway_messages_mapped_total')).toBe(1)
    again.send(pubrelPacket(9), pubrelPacket(9))
    expect(await again.next('pubcomp', 1)).toMatchObject({ messageId: 9, code: 0 })
    again.send(messageOf(2, true))
    await again.next('pubrec', 1)
    expect(await world.counter('gateway_messages_mapped_total')).toBe(2)
  })

  test('[MQTT5-3.7.2-1] [MQTT5-4.3.3-11] PUBREL of an unknown identifier gets PUBCOMP', async () => {
    const device = await (await open()).connected()
    device.send(pubrelPacket(4711))
    expect(await device.next('pubcomp')).toMatchObject({ messageId: 4711, code: 0 })
  })

  test('[MQTT-3.3.1-1] the same message with DUP after a reconnect is one payload', async () => {
    const world = await open()
    for (let round = 0; round < 3; round += 1) {
      const device = await world.connected(kept)
      device.send(publish({ topic, messageId: 3, dup: round > 0, payload: world.position(1) }))
      await device.next('puback')
      device.destroy()
    }
    expect(await world.counter('gateway_messages_mapped_total')).toBe(1)
    expect(await world.counter('gateway_messages_duplicate_total')).toBe(2)
  })

  const ownTopics = 'publish: [{ topics: ["t/{client}"] }]'
  const quality = [
    [1, 'puback'],
    [2, 'pubrec'],
  ] as const

  test('[MQTT3-3.3.5-2] [MQTT5-4.4.0-2] a message that is not allowed is answered, dropped and counted', async () => {
    const world = await open({ broker: `rules: { ${ownTopics} }` })
    for (const [qos, answer] of quality) {
      const device = await world.connected({ clientId: 'van' })
      device.send(publish({ topic: 't/other', qos, payload: world.position(qos) }))
      expect(await device.next(answer)).toMatchObject({ messageId: 1, code: version === 5 ? 0x87 : 0 })
      // The refusal says that the identifier is free [MQTT5-4.3.3-9].
      const messageId = version === 5 ? 1 : 2
      device.send(publish({ topic: 't/van', qos, messageId, payload: world.position(10 + qos) }))
      expect(await device.next(answer, 1)).toMatchObject({ messageId, code: 0 })
    }
    expect(await world.counter('gateway_messages_refused_total')).toBe(2)
    expect(await world.counter('gateway_messages_mapped_total')).toBe(2)
  })

  test('[MQTT3-3.3.5-2] a message that is not allowed ends the connection where the config says so', async () => {
    const world = await open({ broker: `rules: { on_violation: close, ${ownTopics} }` })
    for (const [qos, answer] of quality) {
      const device = await world.connected({ clientId: 'van' })
      device.send(publish({ topic: 't/other', qos, payload: world.position(qos) }))
      expect(await codeAtEnd(device)).toBe(version === 5 ? 0x87 : null)
      expect(device.received.map(({ type }) => type)).not.toContain(answer)
    }
    expect(await world.counter('gateway_messages_refused_total')).toBe(2)
    expect(await world.counter('gateway_messages_mapped_total')).toBe(0)
  })

  test('[MQTT3-3.3.1-12] [MQTT5-3.2.2-14] [MQTT5-3.3.1-8] a message with RETAIN is taken once, and no subscriber gets a message', async () => {
    const world = await open()
    const everything = subscribe(1, [
      ['#', 1],
      [topic, 2],
    ])
    const subscriber = await world.connected({ clientId: 'listens' })
    subscriber.send(everything)
    await subscriber.next('suback')
    const device = await world.connected()
    device.send(publish({ topic, retain: true, payload: world.position(1) }))
    device.send(publish({ topic, messageId: 2, payload: world.position(2) }))
    await device.next('puback', 1)
    const late = await world.connected({ clientId: 'listens later' })
    late.send(everything)
    for (const one of [subscriber, late]) {
      one.send(pingPacket)
      await one.next('pingresp')
      expect(one.received.map(({ type }) => type)).toEqual(['connack', 'suback', 'pingresp'])
    }
    expect(await world.counter('gateway_messages_mapped_total')).toBe(2)
  })

  test.each([100, 65_535])(
    '[MQTT-4.7.3-3] topics up to max_topic_bytes are accepted, longer ones end the connection (%d)',
    async (bytesMax) => {
      // A letter has two bytes.
      const name = `t/${'x'.repeat(bytesMax % 2)}${'\u00e4'.repeat((bytesMax >> 1) - 1)}`
      const world = await open({ limits: `max_topic_bytes: ${bytesMax}, max_packet_bytes: 1MiB` })
      const device = await world.connected()
      device.send(publish({ topic: name, payload: world.position(1) }))
      await device.next('puback')
      const short = await open({ limits: `max_topic_bytes: ${bytesMax - 1}, max_packet_bytes: 1MiB` })
      const other = await short.connected()
      other.send(publish({ topic: name, payload: world.position(1) }))
      expect(await codeAtEnd(other)).toBe(version === 5 ? 0x90 : null)
    },
  )

  test('[MQTT-4.6.0-2] [MQTT-4.6.0-3] [MQTT3-7.1.1-1] acknowledgements come in the order of the packets', async () => {
    const world = await open()
    const device = await world.connected()
    const count = 500
    for (let messageId = 1; messageId <= count; messageId += 1)
      device.send(publish({ topic, qos: 1 + (messageId % 2), messageId, payload: world.position(messageId) }))
    await device.next('pubrec', count / 2 - 1)
    await device.next('puback', count / 2 - 1)
    const order = (type: string) =>
      device.received.filter((one) => one.type === type).map(({ messageId }) => messageId)
    expect(order('puback')).toEqual(Array.from({ length: count / 2 }, (_, index) => 2 * index + 2))
    expect(order('pubrec')).toEqual(Array.from({ length: count / 2 }, (_, index) => 2 * index + 1))
  })

  test('[MQTT-3.12.4-1] each PINGREQ has its PINGRESP', async () => {
    const world = await open()
    const device = await world.connected()
    device.send(pingPacket, publish({ topic, payload: world.position(1) }), pingPacket, pingPacket)
    await device.next('pingresp', 2)
    await device.next('puback')
    expect(device.received).toHaveLength(5)
  })
})

overEachTransport([5], (open, { publish }) => {
  test('[MQTT5-3.4.2-1] [MQTT5-3.4.2-2] [MQTT5-3.4.2-3] [MQTT5-3.5.2-1] [MQTT5-3.5.2-2] [MQTT5-3.5.2-3] [MQTT5-3.7.2-2] [MQTT5-3.7.2-3] an answer has no more than it needs', async () => {
    const world = await open()
    const device = await world.connected()
    device.send(publish({ topic, messageId: 1, payload: world.position(1) }))
    // A dead letter is kept, so its answer is a success.
    device.send(publish({ topic: 'no/source', messageId: 2 }), publish({ topic, messageId: 3, payload: '{' }))
    device.send(publish({ topic, messageId: 4, qos: 2, payload: world.position(4) }), pubrelPacket(4))
    await device.next('pubcomp')
    const answers = device.received.filter(({ type }) => type !== 'connack')
    expect(answers.map(({ bytes, code }) => [bytes, code])).toEqual(answers.map(() => [4, 0]))
    expect(await world.counter('gateway_messages_dead_total')).toBe(2)
  })

  test('[MQTT5-3.3.2-12] each alias up to the maximum can be set, used and set again', async () => {
    const world = await open()
    const device = await world.connected()
    let messageId = 0
    const send = (name: string, alias: number) => {
      messageId += 1
      const properties = [property.topicAlias, uint16(alias)]
      device.send(publish({ topic: name, properties, messageId, payload: world.position(messageId) }))
    }
    for (let alias = 1; alias <= 10; alias += 1) send(`t/van-${alias}`, alias)
    for (let alias = 1; alias <= 10; alias += 1) send('', alias)
    send('t/other', 4)
    send('', 4)
    send('', 5)
    await device.next('puback', messageId - 1)
    expect(await world.counter('gateway_messages_mapped_total')).toBe(messageId)
  })

  test('[MQTT5-3.3.2-7] an alias ends with its connection', async () => {
    const world = await open()
    const properties = [property.topicAlias, uint16(1)]
    const first = await world.connected(kept)
    first.send(publish({ topic, properties, payload: world.position(1) }))
    await first.next('puback')
    first.destroy()
    const second = await world.connected(kept)
    second.send(publish({ topic: '', properties, messageId: 2, payload: world.position(2) }))
    expect([0x82, 0x94]).toContain((await second.gone())?.code)
  })

  test('[MQTT5-3.2.2-17] [MQTT5-3.2.2-18] no alias above the announced maximum', async () => {
    for (const [options, maximum] of [
      [{}, 10],
      [tight, 0],
    ] as const) {
      const world = await open(options)
      const device = await world.connected()
      expect(device.connack.properties.get(property.topicAliasMaximum) ?? 0).toBe(maximum)
      device.send(publish({ topic, properties: [property.topicAlias, uint16(maximum + 1)] }))
      expect(await device.gone()).toMatchObject({ code: 0x94 })
    }
  })

  test('a topic beyond the room for aliases is taken, and its alias ends the connection with 0x97', async () => {
    const world = await open()
    const device = await world.connected()
    const send = (alias: number, name: string) =>
      device.send(
        publish({
          topic: name,
          qos: 2,
          messageId: alias + name.length,
          properties: [property.topicAlias, uint16(alias)],
          payload: world.position(alias),
        }),
      )
    // There is room for two of them.
    for (const [index, letter] of ['a', 'b', 'c'].entries()) send(index + 1, `t/${letter.repeat(4000)}`)
    send(2, '')
    send(3, '')
    expect(await device.gone()).toMatchObject({ code: 0x97 })
    expect(await world.counter('gateway_messages_received_total')).toBe(4)
  })

  test('[MQTT5-3.2.2-15] a packet above the maximum ends the connection before it is read', async () => {
    const world = await open(tight)
    const device = await world.connected()
    device.send(publish({ topic, payload: Buffer.alloc(8192) }).subarray(0, 20))
    expect(await device.gone()).toMatchObject({ code: 0x95 })
  })

  test('[MQTT5-4.3.3-13] QoS 2 goes on after its message has expired', async () => {
    const world = await open()
    const device = await world.connected()
    const properties = [property.messageExpiry, uint32(0)]
    device.send(publish({ topic, qos: 2, properties, payload: world.position(1) }))
    await device.next('pubrec')
    device.send(pubrelPacket(1))
    await device.next('pubcomp')
    expect(await world.counter('gateway_messages_mapped_total')).toBe(1)
  })

  test('a payload that is not what its format indicator says is mapped by our rules, and counted', async () => {
    const world = await open()
    const device = await world.connected()
    const properties = [property.payloadFormat, 1]
    device.send(publish({ topic, properties, payload: Buffer.from([0xff, 0xfe]) }))
    device.send(publish({ topic, properties, messageId: 2, payload: world.position(2) }))
    expect(await device.next('puback')).toMatchObject({ code: 0 })
    expect(await device.next('puback', 1)).toMatchObject({ code: 0 })
    expect(await world.counter('gateway_payload_format_mismatches_total')).toBe(1)
  })

  test('user properties and long texts beyond the bound are skipped and counted, and the message is taken', async () => {
    const world = await open()
    const device = await world.connected()
    const many = Array.from({ length: 70 }, (_, n) => userProperty(`p${n}`, 'x'))
    const long = ['a', 'b'].map((name) => userProperty(name, 'x'.repeat(16_000)))
    for (const [index, properties] of [many, long].entries())
      device.send(publish({ topic, messageId: index + 1, properties, payload: world.position(index) }))
    await device.next('puback', 1)
    expect(await world.counter('gateway_messages_mapped_total')).toBe(2)
    expect(await world.counter('gateway_properties_skipped_total')).toBe(7)
  })

  test('[MQTT5-3.3.4-7] [MQTT5-3.3.4-8] [MQTT5-4.9.0-3] one message more than the receive maximum is 0x93, and none before', async () => {
    const world = await open(tight)
    const device = await world.connected()
    // PUBREC counts until PUBCOMP, so messages of QoS 2 stay in flight as long as the device likes.
    for (let messageId = 1; messageId <= inFlightMax; messageId += 1)
      device.send(publish({ topic, qos: 2, messageId, payload: world.position(messageId) }))
    await device.next('pubrec', inFlightMax - 1)
    device.send(pingPacket)
    await device.next('pingresp')
    device.send(pubrelPacket(1))
    await device.next('pubcomp')
    device.send(publish({ topic, messageId: 100, payload: world.position(100) }))
    await device.next('puback')
    device.send(publish({ topic, qos: 2, messageId: 101, payload: world.position(101) }))
    await device.next('pubrec', inFlightMax)
    expect(device.closed).toBe(false)
    device.send(publish({ topic, messageId: 102, payload: world.position(102) }))
    expect(await device.gone()).toMatchObject({ code: 0x93 })
  })
})
