// Bridges to a real Mosquitto, in this process. test/system/bridges.test.ts does it with killed daemons.

import { connectAsync } from 'mqtt'
import { describe, expect, test } from 'vitest'
import { bridgeOptions } from '../../../src/ingest/bridges/bridge-config.ts'
import { createAuthority } from '../../support/certificates.ts'
import { eventually } from '../../support/eventually.ts'
import { openIngest, textOf, type IngestWorld } from '../../support/ingest-world.ts'
import { createMemoryIntakeSpool } from '../../support/memory-intake-spool.ts'
import { hasMosquitto, publishAll, startMosquitto } from '../../support/mosquitto.ts'
import { parseMqttBridges } from '../../support/mqtt-bridges.ts'

async function openBridge(options: object) {
  const bridge = { name: 'depot', topics: ['t/#'], client_id: 'gw', ...options }
  const spool = createMemoryIntakeSpool({ commits: 'auto' })
  const bridges = parseMqttBridges([bridge]).map((one) => ({ ...bridgeOptions(one), reconnectFirstMs: 20 }))
  const world = await openIngest(spool, { bridges })
  return { spool, world, [Symbol.asyncDispose]: () => world[Symbol.asyncDispose]() }
}

const linksOf = ({ ingest }: IngestWorld) => ingest.messageSources()[1]!.links
const connected = (world: IngestWorld) =>
  eventually(() => linksOf(world).every(({ state }) => state === 'connected'))

const messages = (count: number, from = 0) =>
  Array.from({ length: count }, (_, index) => ({ topic: `t/${index % 7}`, payload: `m${from + index}` }))

describe.skipIf(!hasMosquitto)('a bridge to Mosquitto', () => {
  test('takes every message once by each protocol, with a client certificate over TLS', async () => {
    const authority = createAuthority()
    const server = authority.issue()
    const own = authority.issue({ names: ['gateway'] })
    const tls = ['cafile %d/ca.pem', 'certfile %d/cert.pem', 'keyfile %d/key.pem', 'require_certificate true']
    const mosquitto = await startMosquitto({
      listeners: [[], tls, ['protocol websockets'], ['protocol websockets', ...tls]],
      files: { 'ca.pem': authority.ca, 'cert.pem': server.cert, 'key.pem': server.key },
    })
    const [plain, secure, ws, wss] = mosquitto.ports
    const files = { tls: { ca: authority.ca, ...own } }
    await using v5 = await openBridge({ client_id: 'v5', url: `mqtt://127.0.0.1:${plain}` })
    await using v4 = await openBridge({
      client_id: 'v4',
      url: `mqtt://127.0.0.1:${plain}`,
      protocol: '3.1.1',
    })
    await using overTls = await openBridge({ client_id: 'tls', url: `mqtts://localhost:${secure}`, ...files })
    await using overWs = await openBridge({ client_id: 'ws', url: `ws://127.0.0.1:${ws}/mqtt` })
    await using overWss = await openBridge({ client_id: 'wss', url: `wss://localhost:${wss}/mqtt`, ...files })
    const all = [v5, v4, overTls, overWs, overWss]
    for (const { world } of all) await connected(world)
    await publishAll(`mqtt://127.0.0.1:${plain}`, messages(500))
    for (const { spool, world } of all) {
      await spool.ended(500)
      await eventually(() => world.ingest.counters().acked === 500)
      expect(new Set(spool.payloads.map(textOf)).size).toBe(500)
    }
  })

  test.each([5, '3.1.1'])(
    'by MQTT %s takes what is published with the retain flag, and not what was stored',
    async (protocol) => {
      const mosquitto = await startMosquitto()
      const url = `mqtt://127.0.0.1:${mosquitto.port}`
      const publisher = await connectAsync(url)
      const publish = (payload: string) => publisher.publishAsync('t/1', payload, { qos: 1, retain: true })
      await publish('m1')
      await using bridge = await openBridge({ url, protocol })
      await connected(bridge.world)
      await publish('m2')
      await eventually(() => bridge.spool.payloads.length > 0)
      expect(bridge.spool.payloads.map(textOf)).toEqual(['m2'])
      await publisher.endAsync()
    },
  )

  test.each([5, '3.1.1'])('by MQTT %s takes over a session that has messages of QoS 2', async (protocol) => {
    const mosquitto = await startMosquitto()
    const url = `mqtt://127.0.0.1:${mosquitto.port}`
    const former = await connectAsync(url, { clientId: 'gw', clean: false })
    await former.subscribeAsync('t/#', { qos: 2 })
    await former.endAsync()
    const publisher = await connectAsync(url)
    const publish = (text: string) => publisher.publishAsync('t/1', text, { qos: 2 })
    const waiting = Array.from({ length: 250 }, (_, index) => `m${index}`)
    for (const text of waiting) await publish(text)
    await using bridge = await openBridge({ url, protocol })
    await eventually(() => bridge.world.ingest.counters().acked === waiting.length)
    expect(bridge.spool.payloads.map(textOf)).toEqual(waiting)
    await publish('later')
    await eventually(() => bridge.spool.payloads.length === waiting.length + 1)
    expect(linksOf(bridge.world)).toMatchObject([{ sessionPresent: true, losses: 0 }])
    await publisher.endAsync()
  })

  test('gets what came while it was away, and over a restart of the broker', async () => {
    const mosquitto = await startMosquitto()
    const url = `mqtt://127.0.0.1:${mosquitto.port}`
    {
      await using first = await openBridge({ url })
      await connected(first.world)
    }
    await publishAll(url, messages(300))
    await mosquitto.stop()
    await mosquitto.start()
    await using second = await openBridge({ url })
    await connected(second.world)
    expect(linksOf(second.world)[0]!.sessionPresent).toBe(true)
    await mosquitto.stop()
    await mosquitto.start()
    await connected(second.world)
    await publishAll(url, messages(300, 300))
    const taken = () => new Set(second.spool.payloads.map(textOf)).size
    await eventually(() => taken() === 600)
    expect(second.world.ingest.counters().dead).toBe(0)
  })

  test('two members of a share group get each message once; one that left gets none', async () => {
    const mosquitto = await startMosquitto()
    const url = `mqtt://127.0.0.1:${mosquitto.port}`
    const shared = { url, share_group: 'g', leave_group_on_stop: true }
    const one = await openBridge({ ...shared, client_id: 'one', connections: 2 })
    await using other = await openBridge({ ...shared, client_id: 'other' })
    await connected(one.world)
    await connected(other.world)
    await publishAll(url, messages(300))
    await eventually(() => one.spool.payloads.length + other.spool.payloads.length === 300)
    expect(other.spool.payloads.length).toBeGreaterThan(50)
    await one[Symbol.asyncDispose]()
    const before = other.spool.payloads.length
    await publishAll(url, messages(300, 300))
    await eventually(() => other.spool.payloads.length === before + 300)
    const texts = [...one.spool.payloads, ...other.spool.payloads].map(textOf)
    expect(new Set(texts).size).toBe(600)
  })
})
