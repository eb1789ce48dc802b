// SUBSCRIBE and UNSUBSCRIBE of MQTT 3.1.1, and the only messages that the gateway sends: rebirth requests of
// Sparkplug, with QoS 0.

import { expect, test } from 'vitest'
import { publishPacket3, subscribePacket3, unsubscribePacket3 } from '../../support/mqtt3-packets.ts'
import { pingPacket } from '../../support/mqtt5-packets.ts'
import { sparkplugPayload } from '../../support/sparkplug-payload.ts'
import { overEachTransport } from '../../support/statement-world.ts'
import { world3, type World3 } from './world3.ts'

/** Each test has nodes of its own: a node is asked at most once in a while. */
let nodes = 0
function newNode() {
  nodes += 1
  return { name: `GW-${nodes}`, command: `spBv1.0/Yard/NCMD/GW-${nodes}` }
}

/** Data of a node without a birth, which the gateway asks for. */
function dataWithoutBirth(name: string): Buffer {
  const payload = sparkplugPayload({ ts: Date.now(), seq: 9, metrics: [{ alias: 1, double: 1 }] })
  return publishPacket3({ topic: `spBv1.0/Yard/NDATA/${name}`, payload })
}

/** The commands that a node gets which has sent these packets, and then data. */
async function commandsOf(world: World3, name: string, packets: readonly Buffer[]) {
  const device = await world.connected({ clientId: name })
  device.send(...packets, dataWithoutBirth(name))
  // The request is sent with the message that asks for it, so it is before the acknowledgement or not sent.
  await device.next('puback')
  device.send(pingPacket)
  await device.next('pingresp')
  return device.received.filter(({ type }) => type === 'publish')
}

overEachTransport((transport) => {
  test('[MQTT-3.8.4-1] [MQTT-3.8.4-2] [MQTT-2.3.1-7] [MQTT-3.8.4-4] [MQTT-3.8.4-5] [MQTT-3.9.3-1] one SUBACK has a code for each filter in their order', async () => {
    const world = await world3(transport)
    const device = await world.connected()
    device.send(
      subscribePacket3(65_535, [
        ['a', 2],
        ['b/+/c', 0],
        ['#', 1],
        ['a', 0],
      ]),
    )
    expect(await device.next('suback')).toMatchObject({ messageId: 65_535, codes: [2, 0, 1, 0] })
    expect(device.received).toHaveLength(2)
  })

  test('[MQTT-3.9.3-2] a filter is refused with 0x80, and the connection stays', async () => {
    const world = await world3(transport, { broker: 'subscriptions: refuse' })
    const device = await world.connected()
    device.send(
      subscribePacket3(3, [
        ['a', 2],
        ['#', 0],
      ]),
      pingPacket,
    )
    expect(await device.next('suback')).toMatchObject({ codes: [0x80, 0x80] })
    await device.next('pingresp')
  })

  test('[MQTT-3.10.4-4] [MQTT-3.10.4-5] [MQTT-3.10.4-6] [MQTT-2.3.1-7] one UNSUBACK answers all filters, known or not', async () => {
    const world = await world3(transport)
    const device = await world.connected()
    device.send(subscribePacket3(1, [['a', 0]]), unsubscribePacket3(513, ['a', 'never', 'never/#']))
    expect(await device.next('unsuback')).toMatchObject({ messageId: 513, codes: [] })
    expect(device.received).toHaveLength(3)
  })

  test('[MQTT-3.8.4-3] [MQTT-3.8.4-6] [MQTT-2.3.1-5] [MQTT-4.3.1-1] an equal filter gives one command, of QoS 0, without DUP and identifier', async () => {
    const world = await world3(transport)
    const { name, command } = newNode()
    const twice = subscribePacket3(1, [
      [command, 0],
      [command, 2],
    ])
    const commands = await commandsOf(world, name, [twice])
    expect(commands).toMatchObject([{ topic: command, flags: 0 }])
    // A message of Sparkplug begins with its time: field 1, a number. An identifier would be before it.
    expect(commands[0]!.payload[0]).toBe(0x08)
  })

  test('a filter gives the commands that match it, [MQTT-3.8.3-2] with and [MQTT-4.7.3-4] without a wildcard', async () => {
    const world = await world3(transport)
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
      expect(await commandsOf(world, name, [subscribePacket3(1, [[filter, 1]])]), filter).toHaveLength(count)
    }
  })

  test('[MQTT-3.10.4-1] [MQTT-3.10.4-2] UNSUBSCRIBE ends the filter that is equal, and no other', async () => {
    const world = await world3(transport)
    for (const [filter, left] of [
      ['spBv1.0/yard/NCMD/+', 1],
      ['spBv1.0/Yard/NCMD/+', 0],
    ] as const) {
      const { name, command } = newNode()
      const subscribe = subscribePacket3(1, [
        [command, 1],
        ['spBv1.0/Yard/NCMD/+', 1],
      ])
      const packets = [subscribe, unsubscribePacket3(2, [command, filter])]
      expect(await commandsOf(world, name, packets), filter).toHaveLength(left)
    }
  })
})
