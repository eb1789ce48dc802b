import { connectAsync } from 'mqtt'
import { expect, test } from 'vitest'
import { createAuthority } from '../../../support/certificates.ts'
import { eventually } from '../../../support/eventually.ts'
import { openIngest, type IngestWorld, listenerTls } from '../../../support/ingest-world.ts'
import { auto } from '../../../support/memory-intake-spool.ts'
import { get, opsWorld } from '../../../support/ops-world.ts'

const place = { host: '127.0.0.1', port: 0 }
const webSocket = { path: '/mqtt', origins: [] }
const anyone = { anonymous: true, certificates: false, users: [], passwordFile: null, tokens: [] }

function openAllListeners() {
  const secure = listenerTls(createAuthority().issue())
  return openIngest(auto(), {
    access: [anyone, anyone, anyone, anyone],
    listeners: [
      { ...place, tls: null },
      { ...place, tls: secure },
      { ...place, tls: null, webSocket },
      { ...place, tls: secure, webSocket },
    ],
  })
}

/** The lines of a metric without its name, those of 0 left out. */
async function linesOf(world: IngestWorld, metric: string): Promise<readonly string[]> {
  await using ops = opsWorld()
  ops.ops.attach({ ingest: world.ingest })
  await ops.ops.start()
  const { text } = await get(ops.ops.url(), '/metrics')
  const lines = text.split('\n').filter((line) => line.startsWith(`${metric}{`))
  expect(lines.length).toBe(12)
  return lines.map((line) => line.slice(metric.length)).filter((line) => !line.endsWith(' 0'))
}

test('connections and messages are counted by version of MQTT and kind of listener', async () => {
  await using world = await openAllListeners()
  const [mqtt = '', mqtts = '', ws = '', wss = ''] = world.ingest.addresses()
  const connect = (url: string, protocolVersion: 3 | 4 | 5, clientId: string) =>
    connectAsync(url, {
      protocolVersion,
      ...(protocolVersion === 3 && { protocolId: 'MQIsdp' }),
      clientId,
      reconnectPeriod: 0,
      rejectUnauthorized: false,
    })
  const clients = [
    await connect(mqtt, 3, 'a'),
    await connect(mqtts, 4, 'b'),
    await connect(ws, 4, 'c'),
    await connect(wss, 5, 'd'),
    await connect(wss, 5, 'e'),
  ]
  for (const client of clients)
    for (const qos of [0, 1, 2] as const) await client.publishAsync('t', `${qos}`, { qos })
  await clients[4]!.endAsync()
  await eventually(() => world.ingest.counters().connections === 4)
  expect(await linesOf(world, 'gateway_client_messages_total')).toEqual([
    '{version="3.1",transport="mqtt"} 3',
    '{version="3.1.1",transport="mqtts"} 3',
    '{version="3.1.1",transport="ws"} 3',
    '{version="5",transport="wss"} 6',
  ])
  expect(await linesOf(world, 'gateway_clients_accepted_total')).toContain('{version="5",transport="wss"} 2')
  expect(await linesOf(world, 'gateway_clients_connected')).toEqual([
    '{version="3.1",transport="mqtt"} 1',
    '{version="3.1.1",transport="mqtts"} 1',
    '{version="3.1.1",transport="ws"} 1',
    '{version="5",transport="wss"} 1',
  ])
  for (const client of clients.slice(0, 4)) await client.endAsync()
  await eventually(() => world.ingest.counters().connections === 0)
  expect(await linesOf(world, 'gateway_clients_connected')).toEqual([])
})

test('a refused CONNECT and a connection without one are in none of these counts', async () => {
  await using world = await openIngest(auto(), { retain: 'refuse' })
  const refused = connectAsync(`mqtt://127.0.0.1:${world.port}`, {
    protocolVersion: 5,
    reconnectPeriod: 0,
    will: { topic: 'status', payload: Buffer.from('lost'), retain: true, qos: 0 },
  })
  await expect(refused).rejects.toThrow('Retain not supported')
  expect(await linesOf(world, 'gateway_clients_accepted_total')).toEqual([])
  expect(await linesOf(world, 'gateway_clients_connected')).toEqual([])
})

test.each([4, 5] as const)(
  'by version %s messages with the retain flag are counted, wills included',
  async (protocolVersion) => {
    await using world = await openIngest(auto(), { retain: 'accept' })
    const will = { topic: 'status', payload: Buffer.from('lost'), retain: true, qos: 0 as const }
    const options = { protocolVersion, reconnectPeriod: 0, will }
    const client = await connectAsync(`mqtt://127.0.0.1:${world.port}`, options)
    for (const qos of [0, 1, 2] as const) {
      await client.publishAsync('t', `live ${qos}`, { qos })
      await client.publishAsync('t', `kept ${qos}`, { qos, retain: true })
    }
    expect(world.ingest.counters()).toMatchObject({ received: 6, retained: 3 })
    client.stream.destroy()
    await eventually(() => world.ingest.counters().received === 7)
    expect(world.ingest.counters().retained).toBe(4)
  },
)
