// Sessions, their expiry, keep alive and wills. The tests run at the same time, because most of them wait.

import { test } from 'vitest'
import { newFolder } from '../../support/folders.ts'
import {
  cleanStart,
  disconnectPacket,
  packetOf,
  pingPacket,
  property,
  pubrelPacket,
  uint32,
  type Part,
} from '../../support/mqtt5-packets.ts'
import {
  codeAtEnd,
  overEachTransportAtOnce,
  positionText,
  topic,
  willTopic,
} from '../../support/statement-world.ts'

const expiry = (seconds: number): readonly Part[] => [property.sessionExpiry, uint32(seconds)]
/** Of both versions. */
const kept = { flags: 0, properties: expiry(3600) }
const expiring = { flags: 0, properties: expiry(1) }
const clean = { flags: cleanStart, properties: expiry(3600) }
const mappedTotal = 'gateway_messages_mapped_total'
const willOf = (n: number, properties: readonly Part[] = []) => ({
  topic: willTopic,
  payload: positionText(900 + n),
  properties,
})
const delay = (seconds: number) => [property.willDelay, uint32(seconds)]
const patient = { timeout: 15_000 }
const passed = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

// A limit of its own gives a test a gateway of its own, so that it can count.
const ownGateway = (n: number) => ({ limits: `max_in_flight: ${100 + n}` })

overEachTransportAtOnce([3, 5], (open, { publish, disconnect }, version) => {
  /** It has no device time, so that the session alone says whether it came before. */
  const unreleased = (n = 1, dup = false) =>
    publish({ topic: 'u/van', qos: 2, messageId: 4, dup, payload: JSON.stringify({ lat: n, lon: 13 }) })

  test('[MQTT-3.1.2-4] [MQTT-3.2.2-2] [MQTT-3.2.2-3] [MQTT-3.1.3-2] [MQTT-4.1.0-1] [MQTT5-3.1.2-5] [MQTT5-3.1.2-6] [MQTT5-3.1.2-23] a session is resumed, also after a restart, and only by its own client id', async ({
    expect,
    onTestFinished,
  }) => {
    const folder = await newFolder(onTestFinished)
    const before = await open({ folder }, onTestFinished)
    const first = await before.connected(kept)
    expect(first.connack.sessionPresent).toBe(false)
    first.send(unreleased())
    await first.next('pubrec')
    first.destroy()
    const resumed = await before.connected(kept)
    expect(resumed.connack.sessionPresent).toBe(true)
    resumed.send(unreleased(1, true))
    await resumed.next('pubrec')
    expect(await before.counter(mappedTotal)).toBe(1)
    await before.gateway.stop('a restart')
    // The gateway says that it stops [MQTT5-4.13.2-1].
    expect(await codeAtEnd(resumed)).toBe(version === 5 ? 0x8b : null)
    const after = await open({ folder }, onTestFinished)
    expect((await after.connected({ ...kept, clientId: 'other' })).connack.sessionPresent).toBe(false)
    const second = await after.connected(kept)
    expect(second.connack.sessionPresent).toBe(true)
    second.send(unreleased(1, true))
    await second.next('pubrec')
    second.send(pubrelPacket(4))
    expect(await second.next('pubcomp')).toMatchObject({ messageId: 4 })
    expect(await after.counter(mappedTotal)).toBe(0)
  })

  test('[MQTT-3.1.2-6] [MQTT3-3.1.4-3] [MQTT3-3.2.2-1] [MQTT5-3.1.2-4] [MQTT5-3.1.4-4] [MQTT5-3.2.2-2] a clean start deletes the stored session before CONNACK', async ({
    expect,
    onTestFinished,
  }) => {
    const world = await open(ownGateway(1), onTestFinished)
    const first = await world.connected(kept)
    first.send(unreleased())
    await first.next('pubrec')
    first.destroy()
    for (let round = 1; round <= 2; round += 1) {
      const next = await world.connected(clean)
      expect(next.connack).toMatchObject({ code: 0, sessionPresent: false })
      // The same identifier is another message now.
      next.send(unreleased(10 + round))
      await next.next('pubrec')
      expect(await world.counter(mappedTotal)).toBe(1 + round)
      next.destroy()
      await next.gone()
    }
    // With MQTT 3.1.1 a clean session also ends with its connection.
    expect((await world.connected(kept)).connack.sessionPresent).toBe(version === 5)
  })

  test('[MQTT-4.1.0-2] [MQTT5-4.1.0-1] a session lasts as long as its connection, and ends when its expiry has passed', async ({
    expect,
    onTestFinished,
  }) => {
    const world = await open({ limits: 'session_expiry: 1s' }, onTestFinished)
    const device = await world.connected(expiring)
    device.send(unreleased())
    await device.next('pubrec')
    const alone = await world.connected({ ...expiring, clientId: 'leaves' })
    alone.send(disconnect)
    await alone.gone()
    // The other one has expired by then, so the time is long enough to be a proof.
    await expect.poll(() => world.counter('gateway_sessions_expired_total'), patient).toBe(1)
    expect((await world.connected({ ...expiring, clientId: 'leaves' })).connack.sessionPresent).toBe(false)
    device.send(unreleased(1, true))
    await device.next('pubrec', 1)
    expect(await world.counter(mappedTotal)).toBe(1)
    device.destroy()
    expect((await world.connected(expiring)).connack.sessionPresent).toBe(true)
  })

  test('[MQTT3-3.1.2-24] [MQTT5-3.1.2-22] [MQTT5-3.2.2-22] [MQTT5-3.1.2-20] a client that is silent for 1.5 times its keep alive is disconnected, and one that pings is not', async ({
    expect,
    onTestFinished,
  }) => {
    const world = await open({ limits: 'max_keepalive: 1h' }, onTestFinished)
    const pings = await world.connected({ clientId: 'pings', keepAliveS: 2 })
    const silent = await world.connected({ clientId: 'silent', keepAliveS: 2, will: willOf(0) })
    expect(silent.connack.properties.has(property.serverKeepAlive)).toBe(false)
    const began = Date.now()
    for (let count = 0; !silent.closed; count += 1) {
      pings.send(pingPacket)
      await pings.next('pingresp', count)
      await Promise.race([silent.gone(), passed(200)])
    }
    expect(Date.now() - began).toBeGreaterThan(2900)
    expect(await codeAtEnd(silent)).toBe(version === 5 ? 0x8d : null)
    expect(pings.closed).toBe(false)
    // As if the network had failed.
    await expect.poll(() => world.counter(mappedTotal), patient).toBe(1)
  })

  const ends =
    version === 3
      ? [null, packetOf(0xf0), disconnect]
      : [null, disconnectPacket(0x04), disconnectPacket(0x80), disconnect]

  test('[MQTT-3.1.2-8] [MQTT-3.1.2-10] [MQTT3-3.1.2-12] [MQTT-3.14.4-3] the end of a connection gives its will once, a DISCONNECT without a reason none', async ({
    expect,
    onTestFinished,
  }) => {
    const world = await open(ownGateway(2), onTestFinished)
    const mapped = () => world.counter(mappedTotal)
    for (const [index, bytes] of ends.entries()) {
      const device = await world.connected({ will: { ...willOf(index), qos: 1 } })
      if (bytes === null) device.destroy()
      else device.send(bytes)
      await device.gone()
      const wills = Math.min(index + 1, ends.length - 1)
      await expect.poll(mapped, patient).toBe(wills)
      // One without a will. The next one takes over, so the gateway has seen its end.
      const without = await world.connected()
      without.destroy()
      const last = await world.connected()
      last.send(pingPacket)
      await last.next('pingresp')
      expect(await mapped()).toBe(wills)
    }
  })

  test('a CONNECT that does not come ends without a packet, and a client without a keep alive by 0x98', async ({
    expect,
    onTestFinished,
  }) => {
    const world = await open({ limits: 'connect_timeout: 1s' }, onTestFinished)
    const device = await world.open()
    expect(await device.gone()).toBeNull()
    // A machine with other work may need a second for a CONNECT.
    const patient = await open({ limits: 'idle_timeout: 2s' }, onTestFinished)
    expect(await codeAtEnd(await patient.connected())).toBe(version === 5 ? 0x98 : null)
  })
})

overEachTransportAtOnce([5], (open, { publish }) => {
  test('[MQTT5-3.2.2-4] [MQTT5-3.2.2-5] no session is told where none is stored, and DISCONNECT changes the expiry', async ({
    expect,
    onTestFinished,
  }) => {
    const world = await open({}, onTestFinished)
    const isPresent = async (properties: readonly Part[], end: Buffer) => {
      const device = await world.connected({ clientId: 'never', flags: 0, properties })
      device.send(end)
      await device.gone()
      return device.connack.sessionPresent
    }
    for (const properties of [[], expiry(0)])
      expect(await isPresent(properties, disconnectPacket())).toBe(false)
    // Its sessions ended with their connections, because no expiry was asked for.
    expect(await isPresent(expiry(3600), disconnectPacket())).toBe(false)
    expect(await isPresent(expiry(3600), disconnectPacket(0, expiry(0)))).toBe(true)
    expect(await isPresent([], disconnectPacket())).toBe(false)
  })

  test('[MQTT5-3.1.2-21] [MQTT5-3.2.2-21] the announced keep alive counts, not the one that was asked for', async ({
    expect,
    onTestFinished,
  }) => {
    const world = await open({ limits: 'max_keepalive: 1s' }, onTestFinished)
    const device = await world.connected({ keepAliveS: 3600 })
    expect(device.connack.properties.get(property.serverKeepAlive)).toBe(1)
    expect(await codeAtEnd(device)).toBe(0x8d)
  })

  test('[MQTT5-3.1.2-7] [MQTT5-3.1.3-9] a will waits for its delay, and is none where its client comes back before', async ({
    expect,
    onTestFinished,
  }) => {
    const world = await open(ownGateway(3), onTestFinished)
    const device = await world.connected({ ...clean, will: willOf(0, delay(3)) })
    const other = await world.connected({ ...clean, clientId: 'returns', will: willOf(1, delay(3)) })
    other.destroy()
    const back = await world.connected({ ...kept, clientId: 'returns' })
    device.destroy()
    const began = Date.now()
    await expect.poll(() => world.counter(mappedTotal), patient).toBe(1)
    expect(Date.now() - began).toBeGreaterThan(2500)
    await passed(1500)
    expect(back.closed).toBe(false)
    expect(await world.counter(mappedTotal)).toBe(1)
  })

  test('[MQTT5-3.1.2-8] a session that ends before the delay ends the wait', async ({
    expect,
    onTestFinished,
  }) => {
    const world = await open(ownGateway(4), onTestFinished)
    const mapped = () => world.counter(mappedTotal)
    const device = await world.connected({ will: willOf(1, delay(3600)) })
    device.destroy()
    await expect.poll(mapped, patient).toBe(1)
    const stays = await world.connected({ ...clean, will: willOf(2, delay(3600)) })
    stays.destroy()
    // Clean Start ends the session.
    const next = await world.connected({ flags: cleanStart })
    await expect.poll(mapped, patient).toBe(2)
    next.send(publish({ topic, payload: world.position(3) }))
    await next.next('puback')
    expect(await mapped()).toBe(3)
  })
})
