// The only messages that the gateway sends: rebirth requests of Sparkplug, with QoS 0.

import { expect, test } from 'vitest'
import {
  disconnectPacket,
  pingPacket,
  property,
  publishPacket,
  subscribePacket,
  uint16,
  uint32,
  unsubscribePacket,
  type ConnectFields,
} from '../../support/mqtt5-packets.ts'
import { sparkplugPayload } from '../../support/sparkplug-payload.ts'
import { overEachTransport } from '../../support/statement-world.ts'
import { world5, type World5 } from './world5.ts'

const commandOf = (name: string) => `spBv1.0/Yard/NCMD/${name}`

/** Data of a node without a birth, which the gateway asks for. */
function dataWithoutBirth(name: string, messageId: number): Buffer {
  const payload = sparkplugPayload({
    ts: Date.now(),
    seq: messageId,
    metrics: [{ alias: 1, double: 1 }],
  })
  return publishPacket({ topic: `spBv1.0/Yard/NDATA/${name}`, messageId, payload })
}

/** A node that has subscribed to its commands in this way, and published data. */
async function node(world: World5, filters: readonly string[], fields: ConnectFields = {}) {
  const device = await world.connected({ clientId: 'node', ...fields })
  for (const [index, filter] of filters.entries()) device.send(subscribePacket(index + 1, [[filter, 1]]))
  await device.next('suback', filters.length - 1)
  return device
}

overEachTransport((transport) => {
  test('[MQTT-3.8.4-3] [MQTT-3.1.2-26] [MQTT-3.1.2-27] [MQTT-3.3.2-11] [MQTT-4.9.0-1] [MQTT-4.9.0-2] an equal filter gives one command, of QoS 0 and without an alias', async () => {
    const world = await world5(transport)
    const command = commandOf('first')
    const properties = [property.receiveMaximum, uint16(1), property.topicAliasMaximum, uint16(5)]
    const device = await node(world, [command, command, 'spBv1.0/Yard/NCMD/#'], { properties })
    device.send(dataWithoutBirth('first', 9))
    const publish = await device.next('publish')
    expect(publish).toMatchObject({ topic: command, flags: 0, messageId: 0 })
    expect(publish.properties.size).toBe(0)
    device.send(pingPacket)
    await device.next('pingresp')
    expect(device.received.filter(({ type }) => type === 'publish')).toHaveLength(1)
  })

  test('[MQTT-3.10.4-1] [MQTT-3.10.4-2] UNSUBSCRIBE ends the filter that is equal, and no other', async () => {
    const world = await world5(transport)
    const command = commandOf('second')
    const device = await node(world, [command, 'spBv1.0/Yard/NCMD/+'])
    device.send(unsubscribePacket(5, [command, 'spBv1.0/yard/NCMD/+']))
    await device.next('unsuback')
    device.send(dataWithoutBirth('second', 9))
    await device.next('publish')
    device.send(unsubscribePacket(6, ['spBv1.0/Yard/NCMD/+']))
    await device.next('unsuback', 1)
    device.send(disconnectPacket())
    await device.gone()
    expect(device.received.filter(({ type }) => type === 'publish')).toHaveLength(1)
  })

  test('[MQTT-3.1.2-25] a command that is larger than the client takes is not sent, and all goes on', async () => {
    const world = await world5(transport)
    const command = commandOf('third')
    const properties = [property.maximumPacketSize, uint32(64)]
    const device = await node(world, [command], { properties })
    device.send(dataWithoutBirth('third', 9), pingPacket)
    await device.next('puback')
    await device.next('pingresp')
    expect(device.received.map(({ type }) => type)).not.toContain('publish')
    expect(await world.counter('gateway_rebirths_unreachable_total')).toBe(1)
  })

  test('[MQTT-3.1.2-28] [MQTT-3.14.2-2] [MQTT-3.14.2-4] [MQTT-4.12.0-6] neither response information nor AUTH nor an expiry is sent', async () => {
    const world = await world5(transport)
    for (const asked of [0, 1]) {
      const properties = [property.requestResponseInformation, asked, property.requestProblemInformation, 0]
      const device = await world.connected({ clientId: `asks-${asked}`, properties })
      expect(device.connack.properties.has(property.responseInformation)).toBe(false)
      expect(device.connack.properties.has(property.reasonString)).toBe(false)
      device.send(Buffer.from([0xc1, 0]))
      // The strict reader refuses AUTH, and an expiry in DISCONNECT.
      expect((await device.gone())?.properties.size).toBe(0)
    }
  })
})
