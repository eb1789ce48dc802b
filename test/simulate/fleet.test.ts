import { once } from 'node:events'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { Aedes } from 'aedes'
import { describe, expect, test } from 'vitest'
import { systemClock } from '../../src/std/clock.ts'
import { newRandomId } from '../../src/domain/ids.ts'
import { createFleet, seededRandom } from '../../src/simulate/simulate.ts'
import type { FleetOptions } from '../../src/simulate/simulate.ts'
import { openMqttServer } from '../support/mqtt-server.ts'
import type { Received } from '../support/mqtt-server.ts'

function fleetOf(options: FleetOptions, seed = 1) {
  return createFleet({ clock: systemClock, random: seededRandom(seed), newId: newRandomId }, options)
}

const soon = () => AbortSignal.timeout(20_000)

/** `truck-1 17`: which reading of which device. */
function nameOf(payload: string): string {
  const { device, seq } = JSON.parse(payload) as { device: string; seq: number }
  return `${device} ${seq}`
}

describe('a fleet on a broker that works', () => {
  test('publishes the requested number of messages, every device in turn, and all are acked', async () => {
    const broker = await Aedes.createBroker()
    const server = createServer({ noDelay: true }, broker.handle)
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const published: string[] = []
    broker.on('publish', ({ topic, payload, qos }, client) => {
      if (client && qos === 1) published.push(`${topic} ${nameOf(payload.toString())}`)
    })
    const problems: unknown[] = []
    broker.on('clientError', (_, error) => problems.push(error))
    broker.on('connectionError', (_, error) => problems.push(error))
    const acks: string[] = []
    const fleet = fleetOf({
      brokerUrl: `mqtt://127.0.0.1:${(server.address() as AddressInfo).port}`,
      devices: 4,
      ratePerS: 1000,
      count: 200,
      onAck: ({ device }) => acks.push(device),
    })
    fleet.start()
    expect(await fleet.whenAcked(soon())).toBe(true)
    await fleet.stop(soon())

    const expected = Array.from({ length: 200 }, (_, index) => {
      const device = `truck-${(index % 4) + 1}`
      return `telemetry/v1/${device} ${device} ${Math.floor(index / 4) + 1}`
    })
    expect(published.sort()).toEqual(expected.sort())
    expect(acks).toHaveLength(200)
    expect(fleet.stats()).toMatchObject({
      devices: 4,
      connected: 0,
      published: 200,
      acked: 200,
      unacked: 0,
      resent: 0,
      reconnects: 0,
      lastProblem: null,
      latency: { count: 200 },
    })
    expect(problems).toEqual([])
    broker.close()
    server.close()
    await once(server, 'close')
  })

  test('sends DISCONNECT when it stops', async () => {
    await using server = await openMqttServer({ onPublish: () => 'ack' })
    const fleet = fleetOf({ brokerUrl: server.url, devices: 2, ratePerS: 500, count: 10 })
    fleet.start()
    await fleet.whenAcked(soon())
    await fleet.stop(soon())
    expect(server.packets.filter((name) => name === 'disconnect')).toHaveLength(2)
  })

  test('publishes at the requested rate', async () => {
    await using server = await openMqttServer({ onPublish: () => 'ack' })
    const fleet = fleetOf({ brokerUrl: server.url, devices: 3, ratePerS: 200, count: 100 })
    const startedAtMs = systemClock.monotonic()
    fleet.start()
    await fleet.whenAcked(soon())
    const tookMs = systemClock.monotonic() - startedAtMs
    await fleet.stop(soon())
    // The hundredth falls due after 99 gaps of 5 ms; a busy machine may only be later.
    expect(tookMs).toBeGreaterThanOrEqual(495)
    expect(fleet.stats().stalled).toBe(0)
  })
})

describe('a fleet on a broker that fails', () => {
  test('loses nothing when connections are cut, and marks with DUP what it sends again', async () => {
    const acked = new Set<string>()
    await using server = await openMqttServer({
      onPublish: ({ payload, connection }, soFar) => {
        if (connection % 2 === 0 && soFar % 23 === 0) return 'cut'
        // What comes now is on the wire, unacked, when the connection goes.
        if (soFar % 16 === 0) return 'stall'
        acked.add(nameOf(payload))
        return 'ack'
      },
    })
    const fleet = fleetOf({ brokerUrl: server.url, devices: 3, ratePerS: 400, count: 240 })
    fleet.start()
    expect(await fleet.whenAcked(soon())).toBe(true)
    await fleet.stop(soon())

    expect(acked.size).toBe(240)
    const { resent, reconnects, unacked } = fleet.stats()
    expect(unacked).toBe(0)
    expect(reconnects).toBeGreaterThanOrEqual(3)
    expect(resent).toBeGreaterThan(0)

    const bySending = Map.groupBy(server.received, ({ payload }) => payload)
    expect(bySending.size).toBe(240)
    for (const sendings of bySending.values()) {
      expect(new Set(sendings.map(({ messageId }) => messageId)).size).toBe(1)
      expect(sendings.slice(1).every(({ dup }) => dup)).toBe(true)
    }
    const firstConnections = server.received.filter(({ connection }) => connection <= 3)
    expect(firstConnections.some(({ dup }) => dup)).toBe(false)
  })

  test('sends again in the order in which the vehicle made the messages', async () => {
    await using server = await openMqttServer({
      onPublish: ({ connection }, soFar) => (connection > 1 ? 'ack' : soFar === 30 ? 'cut' : 'silence'),
    })
    const fleet = fleetOf({ brokerUrl: server.url, devices: 1, ratePerS: 1000, count: 50 })
    fleet.start()
    await fleet.whenAcked(soon())
    await fleet.stop(soon())
    const again = server.received.filter(({ connection }) => connection === 2)
    expect(again.map(({ payload }) => nameOf(payload))).toEqual(
      Array.from({ length: 50 }, (_, index) => `truck-1 ${index + 1}`),
    )
    expect(again.slice(0, 30).every(({ dup }) => dup)).toBe(true)
  })

  test('continues to connect when the broker refuses it', async () => {
    let refusals = 0
    await using server = await openMqttServer({
      onPublish: () => 'ack',
      onConnect: () => (++refusals <= 2 ? 5 : 0),
    })
    const fleet = fleetOf({ brokerUrl: server.url, devices: 1, ratePerS: 100, count: 5 })
    fleet.start()
    expect(await fleet.whenAcked(soon())).toBe(true)
    expect(fleet.stats().lastProblem).toMatch(/Connection refused: Not authorized/)
    expect(fleet.stats().reconnects).toBe(0)
    await fleet.stop(soon())
  })

  test('has at most 64 unacked messages on a connection', async () => {
    const seen = Promise.withResolvers<void>()
    const received: Received[] = []
    await using server = await openMqttServer({
      onPublish: (publish) => {
        received.push(publish)
        if (received.length === 64) seen.resolve()
        return 'silence'
      },
    })
    const fleet = fleetOf({ brokerUrl: server.url, devices: 1, ratePerS: 2000, count: 200 })
    fleet.start()
    await seen.promise
    await fleet.stop(AbortSignal.timeout(100))
    expect(received).toHaveLength(64)
    const { acked, unacked, published } = fleet.stats()
    expect(acked).toBe(0)
    expect(unacked).toBe(published)
  })

  test('counts messages that it could not publish while every device was at its limit, and ends at its deadline', async () => {
    const port = await closedPort()
    const fleet = fleetOf({ brokerUrl: `mqtt://127.0.0.1:${port}`, devices: 2, ratePerS: 1_000_000 })
    fleet.start()
    await expect.poll(() => fleet.stats().stalled).toBeGreaterThan(0)
    await fleet.stop(AbortSignal.abort())
    expect(fleet.stats()).toMatchObject({ published: 2000, acked: 0, unacked: 2000, connected: 0 })
    expect(fleet.stats().lastProblem).toMatch(/ECONNREFUSED/)
  })
})

/** A port of this machine where nobody listens. */
async function closedPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}
