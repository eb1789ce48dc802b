// What a client and the gateway wait for: keep alive, expiry of sessions, will delay. These tests run at the
// same time, because they do little but wait.

import { test } from 'vitest'
import { disconnectPacket, pingPacket, property, uint32, type Part } from '../../support/mqtt5-packets.ts'
import { overEachTransportAtOnce, positionText, willTopic } from '../../support/statement-world.ts'
import { world5 } from './world5.ts'

const expiry = (seconds: number): readonly Part[] => [property.sessionExpiry, uint32(seconds)]
const will = { topic: willTopic, payload: positionText(900), properties: [property.willDelay, uint32(3)] }

overEachTransportAtOnce((transport) => {
  test('[MQTT-3.1.2-22] [MQTT-3.2.2-22] a client that is silent for 1.5 times its keep alive gets 0x8D', async ({
    expect,
    onTestFinished,
  }) => {
    const world = await world5(transport, {}, onTestFinished)
    const device = await world.connected({ clientId: 'silent', keepAliveS: 1 })
    expect(device.connack.properties.has(property.serverKeepAlive)).toBe(false)
    expect(await device.gone()).toMatchObject({ code: 0x8d })
  })

  test('[MQTT-3.1.2-21] [MQTT-3.2.2-21] the announced keep alive counts, not the one that was asked for', async ({
    expect,
    onTestFinished,
  }) => {
    const world = await world5(transport, { limits: 'max_keepalive: 1s' }, onTestFinished)
    const device = await world.connected({ keepAliveS: 3600 })
    expect(device.connack.properties.get(property.serverKeepAlive)).toBe(1)
    expect(await device.gone()).toMatchObject({ code: 0x8d })
  })

  test('[MQTT-3.1.2-20] PINGREQ keeps a connection open', async ({ expect, onTestFinished }) => {
    const world = await world5(transport, {}, onTestFinished)
    const device = await world.connected({ clientId: 'pings', keepAliveS: 2 })
    for (let count = 0; count < 8; count += 1) {
      device.send(pingPacket)
      await device.next('pingresp', count)
      await new Promise((resolve) => setTimeout(resolve, 500))
    }
    expect(device.closed).toBe(false)
  })

  test('[MQTT-4.1.0-2] a session ends when its expiry has passed', async ({ expect, onTestFinished }) => {
    const world = await world5(transport, {}, onTestFinished)
    const fields = { clientId: 'expires', flags: 0, properties: expiry(3) }
    const short = await world.connected(fields)
    short.send(disconnectPacket())
    await short.gone()
    const within = await world.connected(fields)
    expect(within.connack.sessionPresent).toBe(true)
    within.send(disconnectPacket())
    await within.gone()
    await new Promise((resolve) => setTimeout(resolve, 3500))
    expect((await world.connected(fields)).connack.sessionPresent).toBe(false)
  })

  test('[MQTT-4.1.0-1] a session is kept as long as its connection is open, also beyond its expiry', async ({
    expect,
    onTestFinished,
  }) => {
    const world = await world5(transport, {}, onTestFinished)
    const fields = { clientId: 'stays', flags: 0, properties: expiry(3) }
    const device = await world.connected(fields)
    await new Promise((resolve) => setTimeout(resolve, 4000))
    device.destroy()
    expect((await world.connected(fields)).connack.sessionPresent).toBe(true)
  })

  test('[MQTT-3.1.2-7] [MQTT-3.1.2-8] a will waits for its delay', async ({ expect, onTestFinished }) => {
    const world = await world5(transport, {}, onTestFinished)
    const device = await world.connected({ will, properties: expiry(3600) })
    device.destroy()
    const began = Date.now()
    await expect.poll(() => world.counter('gateway_messages_mapped_total'), { timeout: 20_000 }).toBe(1)
    expect(Date.now() - began).toBeGreaterThan(2500)
  })

  test('[MQTT-3.1.3-9] no will where its client came back before the delay', async ({
    expect,
    onTestFinished,
  }) => {
    const world = await world5(transport, { limits: 'max_in_flight: 9' }, onTestFinished)
    const device = await world.connected({ will, properties: expiry(3600) })
    device.destroy()
    const back = await world.connected({ flags: 0, properties: expiry(3600) })
    await new Promise((resolve) => setTimeout(resolve, 4000))
    expect(back.closed).toBe(false)
    expect(await world.counter('gateway_messages_mapped_total')).toBe(0)
  })

  test('a silent client without a keep alive: 0x98', async ({ expect, onTestFinished }) => {
    const world = await world5(transport, { limits: 'idle_timeout: 1s, connect_timeout: 1s' }, onTestFinished)
    const device = await world.connected()
    expect(await device.gone()).toMatchObject({ code: 0x98 })
  })

  test('a CONNECT that does not come ends without a packet', async ({ expect, onTestFinished }) => {
    const world = await world5(transport, { limits: 'idle_timeout: 1s, connect_timeout: 1s' }, onTestFinished)
    const device = await world.open()
    expect(await device.gone()).toBeNull()
  })
})
