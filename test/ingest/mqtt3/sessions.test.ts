// Sessions, keep alive and wills of MQTT 3.1.1. The tests run at the same time, because some of them wait.

import { test } from 'vitest'
import { newFolder } from '../../support/folders.ts'
import { cleanSession, disconnectPacket3, publishPacket3 } from '../../support/mqtt3-packets.ts'
import { packetOf, pingPacket, pubrelPacket } from '../../support/mqtt5-packets.ts'
import { overEachTransportAtOnce, positionText, topic, willTopic } from '../../support/statement-world.ts'
import { world3 } from './world3.ts'

const kept = { flags: 0 }
const unreleased = publishPacket3({ topic, qos: 2, messageId: 4, payload: positionText(1) })
const repeated = publishPacket3({ topic, qos: 2, messageId: 4, dup: true, payload: positionText(1) })
const will = { topic: willTopic, payload: positionText(900), qos: 1 }

overEachTransportAtOnce((transport) => {
  test('[MQTT-3.1.2-4] [MQTT-3.2.2-2] [MQTT-3.2.2-3] [MQTT-3.1.3-2] [MQTT-4.1.0-1] a session is resumed, also after a restart, and only by its own client id', async ({
    expect,
    onTestFinished,
  }) => {
    const folder = await newFolder(onTestFinished)
    const before = await world3(transport, { folder }, onTestFinished)
    const first = await before.connected(kept)
    expect(first.connack.sessionPresent).toBe(false)
    first.send(unreleased)
    await first.next('pubrec')
    await before.gateway.stop('a restart')
    expect(await first.gone()).toBeNull()
    const after = await world3(transport, { folder }, onTestFinished)
    expect((await after.connected({ ...kept, clientId: 'other' })).connack.sessionPresent).toBe(false)
    const second = await after.connected(kept)
    expect(second.connack.sessionPresent).toBe(true)
    second.send(repeated)
    await second.next('pubrec')
    second.send(pubrelPacket(4))
    expect(await second.next('pubcomp')).toMatchObject({ messageId: 4 })
    expect(await after.counter('gateway_messages_mapped_total')).toBe(0)
  })

  test('[MQTT-3.1.2-6] [MQTT-3.1.4-3] [MQTT-3.2.2-1] Clean Session deletes the stored session, and its own with its end', async ({
    expect,
    onTestFinished,
  }) => {
    const world = await world3(transport, { limits: 'max_in_flight: 9' }, onTestFinished)
    const first = await world.connected(kept)
    first.send(unreleased)
    await first.next('pubrec')
    first.destroy()
    for (let round = 1; round <= 2; round += 1) {
      const clean = await world.connected({ flags: cleanSession })
      expect(clean.connack).toMatchObject({ code: 0, sessionPresent: false })
      clean.send(publishPacket3({ topic, qos: 2, messageId: 4, payload: positionText(10 + round) }))
      await clean.next('pubrec')
      expect(await world.counter('gateway_messages_mapped_total')).toBe(1 + round)
      clean.destroy()
      await clean.gone()
    }
    expect((await world.connected(kept)).connack.sessionPresent).toBe(false)
  })

  test('[MQTT-4.1.0-2] a session lasts as long as its connection, beyond session_expiry', async ({
    expect,
    onTestFinished,
  }) => {
    const world = await world3(transport, { limits: 'session_expiry: 1s' }, onTestFinished)
    const device = await world.connected(kept)
    device.send(unreleased)
    await device.next('pubrec')
    const alone = await world.connected({ ...kept, clientId: 'leaves' })
    alone.send(disconnectPacket3)
    await alone.gone()
    // The other one has expired by then, so the time is long enough to be a proof.
    await expect.poll(() => world.counter('gateway_sessions_expired_total'), { timeout: 20_000 }).toBe(1)
    device.send(repeated)
    await device.next('pubrec', 1)
    expect(await world.counter('gateway_messages_mapped_total')).toBe(1)
  })

  test('[MQTT-3.1.2-24] a client that is silent for 1.5 times its keep alive is disconnected, and one that pings is not', async ({
    expect,
    onTestFinished,
  }) => {
    const world = await world3(transport, { limits: 'max_keepalive: 1h' }, onTestFinished)
    const pings = await world.connected({ clientId: 'pings', keepAliveS: 2 })
    const silent = await world.connected({ clientId: 'silent', keepAliveS: 2, will })
    const began = Date.now()
    for (let count = 0; !silent.closed; count += 1) {
      pings.send(pingPacket)
      await pings.next('pingresp', count)
      await Promise.race([silent.gone(), new Promise((resolve) => setTimeout(resolve, 200))])
    }
    expect(Date.now() - began).toBeGreaterThan(2900)
    expect(pings.closed).toBe(false)
    // As if the network had failed.
    await expect.poll(() => world.counter('gateway_messages_mapped_total'), { timeout: 15_000 }).toBe(1)
  })

  test('[MQTT-3.1.2-8] [MQTT-3.1.2-10] [MQTT-3.1.2-12] [MQTT-3.14.4-3] the end of a connection gives its will once, a DISCONNECT none', async ({
    expect,
    onTestFinished,
  }) => {
    const world = await world3(transport, {}, onTestFinished)
    const mapped = () => world.counter('gateway_messages_mapped_total')
    for (const [index, bytes] of [null, packetOf(0xf0), disconnectPacket3].entries()) {
      const payload = positionText(900 + index)
      const device = await world.connected({ will: { ...will, payload } })
      if (bytes === null) device.destroy()
      else device.send(bytes)
      await device.gone()
      await expect.poll(mapped, { timeout: 15_000 }).toBe(Math.min(index + 1, 2))
      // One without a will. The next one takes over, so the gateway has seen its end.
      const without = await world.connected()
      without.destroy()
      const last = await world.connected()
      last.send(pingPacket)
      await last.next('pingresp')
      expect(await mapped()).toBe(Math.min(index + 1, 2))
    }
  })
})
