// Sessions, their expiry, and wills.

import { expect, test } from 'vitest'
import { newFolder } from '../../support/folders.ts'
import {
  cleanStart,
  disconnectPacket,
  property,
  publishPacket,
  pubrelPacket,
  uint32,
  type ConnectFields,
  type Part,
} from '../../support/mqtt5-packets.ts'
import { overEachTransport, positionText, topic, willTopic } from '../../support/statement-world.ts'
import { world5 } from './world5.ts'

const expiry = (seconds: number): readonly Part[] => [property.sessionExpiry, uint32(seconds)]
const kept: ConnectFields = { flags: 0, properties: expiry(3600) }

overEachTransport((transport) => {
  test('[MQTT-3.1.2-5] [MQTT-3.1.2-6] [MQTT-3.2.2-3] [MQTT-3.1.2-23] a session is resumed, and only by its own client id', async () => {
    const world = await world5(transport)
    const first = await world.connected(kept)
    expect(first.connack.sessionPresent).toBe(false)
    first.send(publishPacket({ topic, qos: 2, messageId: 4, payload: world.position(1) }))
    await first.next('pubrec')
    first.destroy()
    const other = await world.connected({ ...kept, clientId: 'other' })
    expect(other.connack.sessionPresent).toBe(false)
    const second = await world.connected(kept)
    expect(second.connack.sessionPresent).toBe(true)
    second.send(publishPacket({ topic, qos: 2, messageId: 4, dup: true, payload: world.position(1) }))
    await second.next('pubrec')
    second.send(pubrelPacket(4))
    await second.next('pubcomp')
    expect(await world.counter('gateway_messages_mapped_total')).toBe(1)
  })

  test('[MQTT-3.1.2-4] [MQTT-3.1.4-4] [MQTT-3.2.2-2] Clean Start deletes the stored session before CONNACK', async () => {
    const world = await world5(transport)
    const first = await world.connected(kept)
    first.send(publishPacket({ topic, qos: 2, messageId: 4, payload: world.position(1) }))
    await first.next('pubrec')
    first.destroy()
    const clean = await world.connected({ flags: cleanStart, properties: expiry(3600) })
    expect(clean.connack.sessionPresent).toBe(false)
    // The same identifier is another message now.
    clean.send(publishPacket({ topic, qos: 2, messageId: 4, payload: world.position(2) }))
    await clean.next('pubrec')
    expect(await world.counter('gateway_messages_mapped_total')).toBe(2)
    clean.destroy()
    expect((await world.connected(kept)).connack.sessionPresent).toBe(true)
  })

  test('[MQTT-3.2.2-4] [MQTT-3.2.2-5] no session is told where none is stored', async () => {
    const world = await world5(transport)
    for (const properties of [[], expiry(0)]) {
      const device = await world.connected({ clientId: 'never', flags: 0, properties })
      expect(device.connack.sessionPresent).toBe(false)
      device.send(disconnectPacket())
      await device.gone()
    }
    // Its first session ended with its connection, because no expiry was asked for.
    expect((await world.connected({ clientId: 'never', flags: 0 })).connack.sessionPresent).toBe(false)
  })

  test('DISCONNECT changes the expiry', async () => {
    const world = await world5(transport)
    const device = await world.connected(kept)
    device.send(disconnectPacket(0, expiry(0)))
    await device.gone()
    expect((await world.connected(kept)).connack.sessionPresent).toBe(false)
  })

  test('[MQTT-3.1.2-23] [MQTT-4.3.3-10] a session is known after a restart', async () => {
    const folder = await newFolder()
    const before = await world5(transport, { folder })
    const first = await before.connected(kept)
    first.send(publishPacket({ topic, qos: 2, messageId: 4, payload: positionText(1) }))
    await first.next('pubrec')
    await before.gateway.stop('a restart')
    expect(await first.gone()).toMatchObject({ code: 0x8b })
    const after = await world5(transport, { folder })
    const second = await after.connected(kept)
    expect(second.connack.sessionPresent).toBe(true)
    second.send(publishPacket({ topic, qos: 2, messageId: 4, dup: true, payload: positionText(1) }))
    await second.next('pubrec')
    second.send(pubrelPacket(4))
    await second.next('pubcomp')
    expect(await after.counter('gateway_messages_mapped_total')).toBe(0)
  })

  const willOf = (payload: string, properties: readonly Part[] = []) => ({
    topic: willTopic,
    payload,
    properties,
  })

  test('[MQTT-3.14.4-3] [MQTT-3.1.2-8] [MQTT-3.1.2-10] the end of a connection gives its will once, a DISCONNECT with 0x00 none', async () => {
    const world = await world5(transport)
    const mapped = () => world.counter('gateway_messages_mapped_total')
    for (const [index, code] of [null, 0x04, 0x80, 0x00].entries()) {
      const device = await world.connected({ will: willOf(world.position(index)) })
      device.send(publishPacket({ topic, messageId: 1, payload: world.position(20 + index) }))
      await device.next('puback')
      if (code === null) device.destroy()
      else device.send(disconnectPacket(code))
      expect(await device.gone()).toBeNull()
      await expect.poll(mapped, { timeout: 15_000 }).toBe(code === 0 ? 7 : 2 * index + 2)
      const again = await world.connected()
      again.send(disconnectPacket())
      await again.gone()
    }
    expect(await mapped()).toBe(7)
  })

  test('[MQTT-3.1.2-8] a session that ends before the delay ends the wait', async () => {
    const world = await world5(transport)
    const mapped = () => world.counter('gateway_messages_mapped_total')
    const late = (n: number) => willOf(world.position(n), [property.willDelay, uint32(3600)])
    const device = await world.connected({ will: late(1) })
    device.destroy()
    await expect.poll(mapped, { timeout: 15_000 }).toBe(1)
    const stays = await world.connected({ will: late(2), properties: expiry(3600) })
    stays.destroy()
    // Clean Start ends the session.
    await world.connected({ flags: cleanStart })
    await expect.poll(mapped, { timeout: 15_000 }).toBe(2)
  })
})
