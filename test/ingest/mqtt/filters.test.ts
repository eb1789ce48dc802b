// SUBSCRIBE and UNSUBSCRIBE, and the only messages that the gateway sends: rebirth requests of Sparkplug, with QoS 0.

import { expect, test } from 'vitest'
import { topicFilterOf } from '../../../src/mapping/mapping.ts'
import {
  packetOf,
  pingPacket,
  property,
  subscribePacket,
  uint16,
  uint32,
  type ConnectFields,
} from '../../support/mqtt5-packets.ts'
import { packetsOf, type Version } from '../../support/mqtt-versions.ts'
import { sparkplugPayload } from '../../support/sparkplug-payload.ts'
import { overEachTransport, type StatementWorld } from '../../support/statement-world.ts'

/** Each test has nodes of its own: a node is asked at most once in a while. */
let nodes = 0
function newNode() {
  nodes += 1
  return { name: `GW-${nodes}`, command: `spBv1.0/Yard/NCMD/GW-${nodes}` }
}

type Node = { version: Version; name: string; packets: readonly Buffer[]; fields?: ConnectFields }

/** The commands that a node gets which has sent these packets, and then data without a birth. */
async function commandsOf(world: StatementWorld, { version, name, packets, fields }: Node) {
  const device = await world.connected({ clientId: name, ...fields })
  const payload = sparkplugPayload({ ts: Date.now(), seq: 9, metrics: [{ alias: 1, double: 1 }] })
  device.send(...packets, packetsOf[version].publish({ topic: `spBv1.0/Yard/NDATA/${name}`, payload }))
  // The request is sent with the message that asks for it, so it is before the acknowledgement or not sent.
  await device.next('puback')
  device.send(pingPacket)
  await device.next('pingresp')
  return device.received.filter(({ type }) => type === 'publish')
}

test('[MQTT-4.7.2-1] a filter that begins with a wildcard takes no topic that begins with $', () => {
  for (const filter of ['#', '+/NCMD/a']) {
    const found = topicFilterOf(filter)
    expect(found.kind === 'filter' && found.matches('$share/NCMD/a')).toBe(false)
    expect(found.kind === 'filter' && found.matches('share/NCMD/a')).toBe(true)
  }
})

overEachTransport([3, 5], (open, { subscribe, unsubscribe }, version) => {
  test('[MQTT-3.8.4-1] [MQTT-3.8.4-2] [MQTT-3.8.4-5] [MQTT-3.8.4-6] [MQTT-3.9.3-1] [MQTT3-2.3.1-7] [MQTT3-3.8.4-4] [MQTT5-2.2.1-6] [MQTT5-3.8.4-7] [MQTT5-3.9.2-1] [MQTT5-3.9.2-2] one SUBACK has a code for each filter in their order', async () => {
    const device = await (await open()).connected()
    device.send(
      subscribe(65_535, [
        ['a', 2],
        ['b/+/c', 0],
        ['#', 1],
        ['a', 0],
      ]),
    )
    const suback = await device.next('suback')
    expect(suback).toMatchObject({ messageId: 65_535, codes: [2, 0, 1, 0] })
    expect(suback.properties.size).toBe(0)
    expect(device.received).toHaveLength(2)
  })

  test('[MQTT-3.9.3-2] a filter is refused with a code, and the connection stays', async () => {
    const device = await (await open({ broker: 'subscriptions: refuse' })).connected()
    device.send(
      subscribe(3, [
        ['a', 2],
        ['#', 0],
      ]),
      unsubscribe(4, ['a']),
      pingPacket,
    )
    const refused = version === 5 ? 0x87 : 0x80
    expect(await device.next('suback')).toMatchObject({ codes: [refused, refused] })
    expect(await device.next('unsuback')).toMatchObject({ codes: version === 5 ? [0x11] : [] })
    await device.next('pingresp')
  })

  test('[MQTT-3.10.4-4] [MQTT-3.10.4-5] [MQTT-3.10.4-6] [MQTT3-2.3.1-7] [MQTT5-3.11.3-1] [MQTT5-3.11.3-2] [MQTT5-3.11.2-1] [MQTT5-3.11.2-2] one UNSUBACK answers all filters, known or not', async () => {
    const device = await (await open()).connected()
    device.send(subscribe(1, [['a', 0]]), unsubscribe(513, ['a', 'never', 'never/#']))
    const unsuback = await device.next('unsuback')
    expect(unsuback.messageId).toBe(513)
    expect(unsuback.codes).toHaveLength(version === 5 ? 3 : 0)
    for (const code of unsuback.codes) expect([0, 0x11]).toContain(code)
    expect(unsuback.properties.size).toBe(0)
    expect(device.received).toHaveLength(3)
  })

  test('[MQTT-3.8.4-3] [MQTT3-3.8.4-6] [MQTT3-2.3.1-5] [MQTT3-4.3.1-1] [MQTT5-3.1.2-26] [MQTT5-3.1.2-27] [MQTT5-3.3.2-11] [MQTT5-4.9.0-1] [MQTT5-4.9.0-2] an equal filter gives one command, of QoS 0, without DUP, identifier and alias', async () => {
    const world = await open()
    const { name, command } = newNode()
    const packets = [
      subscribe(1, [
        [command, 0],
        [command, 2],
      ]),
      subscribe(2, [['spBv1.0/Yard/NCMD/#', 1]]),
    ]
    const properties = [property.receiveMaximum, uint16(1), property.topicAliasMaximum, uint16(5)]
    const commands = await commandsOf(world, { version, name, packets, fields: { properties } })
    expect(commands).toMatchObject([{ topic: command, flags: 0, messageId: 0 }])
    expect(commands[0]!.properties.size).toBe(0)
    // A message of Sparkplug begins with its time: field 1, a number. An identifier would be before it.
    expect(commands[0]!.payload[0]).toBe(0x08)
  })

  test('a filter gives the commands that match it, [MQTT3-3.8.3-2] with and [MQTT3-4.7.3-4] without a wildcard', async () => {
    const world = await open()
    for (const [pattern, count] of [
      ['spBv1.0/+/NCMD/#', 1],
      ['spBv1.0/Yard/NCMD/GW-0', 1],
      ['spBv1.0/yard/NCMD/GW-0', 0],
      ['/spBv1.0/Yard/NCMD/GW-0', 0],
      ['spBv1.0/Yard/NCMD/GW-0/', 0],
      ['spBv1.0/Yard/NCMD/gw-0', 0],
    ] as const) {
      const { name } = newNode()
      const filter = pattern.replace(/-0/, name.slice(2))
      const packets = [subscribe(1, [[filter, 1]])]
      expect(await commandsOf(world, { version, name, packets }), filter).toHaveLength(count)
    }
  })

  test('[MQTT-3.10.4-1] [MQTT-3.10.4-2] UNSUBSCRIBE ends the filter that is equal, and no other', async () => {
    const world = await open()
    for (const [filter, left] of [
      ['spBv1.0/yard/NCMD/+', 1],
      ['spBv1.0/Yard/NCMD/+', 0],
    ] as const) {
      const { name, command } = newNode()
      const both = subscribe(1, [
        [command, 1],
        ['spBv1.0/Yard/NCMD/+', 1],
      ])
      const packets = [both, unsubscribe(2, [command, filter])]
      expect(await commandsOf(world, { version, name, packets }), filter).toHaveLength(left)
    }
  })
})

overEachTransport([5], (open, { subscribe, unsubscribe }, version) => {
  test('[MQTT5-4.7.1-1] [MQTT5-4.7.1-2] [MQTT5-4.8.2-1] [MQTT5-4.8.2-2] a filter that is not valid is refused, and the connection stays', async () => {
    const world = await open()
    for (const filter of ['a#', '#/a', 'a+', '+a/b', '$share/', '$share/g', '$share/+/a', '$share/g/']) {
      const device = await world.connected()
      const filters = [
        ['a', 0],
        [filter, 1],
      ] as const
      device.send(subscribe(1, filters), unsubscribe(2, [filter]))
      const { codes } = await device.next('suback')
      expect(codes[0]).toBe(0)
      expect(filter.startsWith('$share') ? [0x8f, 0x9e] : [0x8f], filter).toContain(codes[1])
      const unsuback = await device.next('unsuback')
      expect(unsuback.codes[0], filter).toBeGreaterThan(0)
      expect(device.closed).toBe(false)
    }
  })

  test('shared subscriptions and subscription identifiers are refused, since they are announced as not available', async () => {
    const device = await (await open()).connected()
    device.send(subscribe(1, [['$share/g/a', 1]]))
    device.send(subscribePacket(2, [['a', 0]], [property.subscriptionId, 5]))
    expect((await device.next('suback')).codes).toEqual([0x9e])
    expect((await device.next('suback', 1)).codes).toEqual([0xa1])
  })

  test('[MQTT5-3.1.2-25] a command that is larger than the client takes is not sent, and all goes on', async () => {
    const world = await open()
    const { name, command } = newNode()
    const fields = { properties: [property.maximumPacketSize, uint32(64)] }
    const packets = [subscribe(1, [[command, 1]])]
    expect(await commandsOf(world, { version, name, packets, fields })).toEqual([])
    expect(await world.counter('gateway_rebirths_unreachable_total')).toBe(1)
  })

  test('[MQTT5-3.1.2-28] [MQTT5-3.14.2-2] [MQTT5-3.14.2-4] [MQTT5-4.12.0-6] neither response information nor AUTH nor an expiry is sent', async () => {
    const world = await open()
    for (const asked of [0, 1]) {
      const properties = [property.requestResponseInformation, asked, property.requestProblemInformation, 0]
      const device = await world.connected({ clientId: `asks-${asked}`, properties })
      expect(device.connack.properties.has(property.responseInformation)).toBe(false)
      expect(device.connack.properties.has(property.reasonString)).toBe(false)
      device.send(packetOf(0xc1))
      // The strict reader refuses AUTH, and an expiry in DISCONNECT.
      expect((await device.gone())?.properties.size).toBe(0)
    }
  })
})
