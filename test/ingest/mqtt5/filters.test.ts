// SUBSCRIBE, UNSUBSCRIBE and the commands that a subscriber gets.

import { expect, test } from 'vitest'
import { topicFilterOf } from '../../../src/mapping/mapping.ts'
import { property, subscribePacket, unsubscribePacket } from '../../support/mqtt5-packets.ts'
import { overEachTransport } from '../../support/statement-world.ts'
import { world5 } from './world5.ts'

test('[MQTT-4.7.2-1] a filter that begins with a wildcard takes no topic that begins with $', () => {
  for (const filter of ['#', '+/NCMD/a']) {
    const found = topicFilterOf(filter)
    expect(found.kind === 'filter' && found.matches('$share/NCMD/a')).toBe(false)
    expect(found.kind === 'filter' && found.matches('share/NCMD/a')).toBe(true)
  }
})

overEachTransport((transport) => {
  test('[MQTT-3.8.4-1] [MQTT-3.8.4-2] [MQTT-2.2.1-6] [MQTT-3.8.4-5] [MQTT-3.8.4-6] [MQTT-3.9.3-1] [MQTT-3.8.4-7] [MQTT-3.9.3-2] one SUBACK has a code for each filter in their order', async () => {
    const world = await world5(transport)
    const device = await world.connected()
    device.send(
      subscribePacket(65_535, [
        ['a', 0],
        ['a#', 1],
        ['b/+/c', 1],
        ['$share/g/a', 1],
        ['c', 2],
      ]),
    )
    expect(await device.next('suback')).toMatchObject({ messageId: 65_535, codes: [0, 0x8f, 1, 0x9e, 2] })
  })

  test('[MQTT-4.7.1-1] [MQTT-4.7.1-2] [MQTT-4.8.2-1] [MQTT-4.8.2-2] a filter that is not valid is refused, and the connection stays', async () => {
    const world = await world5(transport)
    for (const filter of ['a#', '#/a', 'a+', '+a/b', '$share/', '$share/g', '$share/+/a', '$share/g/']) {
      const device = await world.connected()
      device.send(subscribePacket(1, [[filter, 1]]), unsubscribePacket(2, [filter]))
      const { codes } = await device.next('suback')
      expect(filter.startsWith('$share') ? [0x8f, 0x9e] : [0x8f], filter).toContain(codes[0])
      expect((await device.next('unsuback')).codes[0], filter).toBeGreaterThan(0)
      expect(device.closed).toBe(false)
    }
  })

  test('where subscriptions are refused, SUBSCRIBE has 0x87 and UNSUBSCRIBE 0x11', async () => {
    const world = await world5(transport, { broker: 'subscriptions: refuse' })
    const device = await world.connected()
    device.send(subscribePacket(1, [['a', 0]]), unsubscribePacket(2, ['a']))
    expect((await device.next('suback')).codes).toEqual([0x87])
    expect((await device.next('unsuback')).codes).toEqual([0x11])
  })

  test('[MQTT-3.10.4-4] [MQTT-3.10.4-5] [MQTT-3.10.4-6] [MQTT-3.11.3-1] [MQTT-3.11.3-2] one UNSUBACK has a code for each filter', async () => {
    const world = await world5(transport)
    const device = await world.connected()
    device.send(subscribePacket(1, [['a', 0]]), unsubscribePacket(2, ['a', 'never', 'a#']))
    const { messageId, codes } = await device.next('unsuback')
    expect(messageId).toBe(2)
    expect(codes).toHaveLength(3)
    expect([0, 0x11]).toContain(codes[0])
    expect([0, 0x11]).toContain(codes[1])
    expect(codes[2]).toBe(0x8f)
  })

  test('[MQTT-3.9.2-1] [MQTT-3.9.2-2] [MQTT-3.11.2-1] [MQTT-3.11.2-2] the answers have no properties', async () => {
    const world = await world5(transport)
    const device = await world.connected()
    device.send(subscribePacket(1, [['a#', 0]]), unsubscribePacket(2, ['a#']))
    expect((await device.next('suback')).properties.size).toBe(0)
    expect((await device.next('unsuback')).properties.size).toBe(0)
  })

  test('a subscription identifier is answered by 0xA1, since it is announced as not available', async () => {
    const world = await world5(transport)
    const device = await world.connected()
    device.send(subscribePacket(1, [['a', 0]], [property.subscriptionId, 5]))
    expect(await device.next('suback')).toMatchObject({ codes: [0xa1] })
  })
})
