// Custody `delivered` before a real engine that is killed and started in an outage of the ingestion API. The dedup window is
// shorter than the outage.

import { connectAsync, type MqttClient } from 'mqtt'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { CustodyView } from '../../../src/ingest/ingest.ts'
import { mqttStream } from '../../../src/ingest/jetstream/types.ts'
import type { Engine } from '../../engines/message-engine.ts'
import { hasNats, startNats } from '../../engines/nats-engine.ts'
import { hasRabbit, hasRabbitCluster, startRabbit } from '../../engines/rabbit-engine.ts'
import { eventually } from '../../support/eventually.ts'
import { mappings, openNats } from '../../support/nats-world.ts'
import { messageOf, startPipeline, type Pipeline } from '../../support/pipeline-world.ts'
import { openClient } from '../../support/rabbit-bridges.ts'

type Kind = {
  name: string
  isThere: boolean
  start: () => Promise<Engine>
  bridge: string
  /** Deletes the messages of the engine, also those that were delivered where it can. */
  purge: (engine: Engine) => Promise<void>
}

const natsBridge = 'topics: ["t/{device}"], durables: { prefix: gw, partitions: 4 }'
const rabbitBridge = 'queue: { prefix: fleet, partitions: 2 }, bind: { keys: ["t.#"] }'

const kinds: readonly Kind[] = [
  {
    name: 'NATS',
    isThere: hasNats,
    start: () => startNats({ lines: mappings }),
    bridge: natsBridge,
    async purge(engine) {
      await using nats = await openNats(engine)
      await nats.jsm.streams.purge(mqttStream)
    },
  },
  ...[false, true].map((isNewer) => ({
    name: `RabbitMQ ${isNewer ? '4.0' : '3.10'}`,
    isThere: isNewer ? hasRabbitCluster : hasRabbit,
    start: () => startRabbit({ isNewer }),
    bridge: rabbitBridge,
    async purge(engine: Engine) {
      await using client = await openClient(engine)
      for (const queue of ['fleet.0', 'fleet.1']) await client.channel.deleteQueue(queue)
    },
  })),
]

function start(engine: Engine, { bridge }: Kind): Promise<Pipeline> {
  return startPipeline({
    sandbox: { faults: { always: 503 } },
    config: (baseUrl) => `
ingest:
  broker: { listeners: [] }
  bridges:
    - { name: engine, url: "${engine.urls[0]}", member: gw-a, provision: true, custody: delivered, park_after: 2s, ${bridge} }
sources:
  - name: trucks
    topic: t/{device}
    map:
      time:      { path: ts, format: ms }
      latitude:  { path: lat }
      longitude: { path: lon }
defaults: { carrier: ACME, operator: OP1, asset_type: TRACTOR }
spool: { path: ./spool, max_bytes: 1GiB, min_free_bytes: 1MiB, dedup: { window: 1s } }
delivery: { base_url: "${baseUrl}", batch: { linger: 100ms, max_payloads: 10 }, max_in_flight: 1 }
ops: { listen: "127.0.0.1:0", stop_deadline: 5s }
`,
  })
}

const devices = 8
const custodyOf = (gateway: Pipeline) => gateway.status().custody as unknown as CustodyView
const sourceOf = (gateway: Pipeline) => gateway.status().messageSources[0]!
const isConnected = (gateway: Pipeline) => sourceOf(gateway).connectedAt !== null

async function openDevice(engine: Engine): Promise<MqttClient> {
  const device = await connectAsync(engine.mqttUrls[0]!, { protocolVersion: 4, reconnectPeriod: 200 })
  device.on('error', () => undefined)
  onTestFinished(() => void device.end(true))
  return device
}

async function openWorld(kind: Kind) {
  const engine = await kind.start()
  const gateway = await start(engine, kind)
  await gateway.until(
    () =>
      isConnected(gateway) &&
      sourceOf(gateway).partitions.every(({ role }) => kind.name !== 'NATS' || role === 'active'),
  )
  const device = await openDevice(engine)
  let published = 0
  async function publish(count: number): Promise<void> {
    for (let n = 0; n < count; n += 1) {
      const number = published
      published += 1
      for (let truck = 0; truck < devices; truck += 1)
        await device.publishAsync(`t/truck-${truck}`, messageOf(number), { qos: 1 })
    }
  }
  await publish(10)
  await eventually(() => gateway.status().totals.payloads === 80 && custodyOf(gateway).holds)
  return { engine, gateway, publish, count: () => published * devices }
}

/** The numbers of each device in the order of the lane. */
function ordersOf({ sandbox }: Pipeline): number[][] {
  const orders = new Map<string, number[]>()
  for (const { payload } of sandbox.received({ limit: Number.MAX_SAFE_INTEGER }).toReversed()) {
    const device = JSON.stringify(payload['deviceIdentifier'])
    orders.set(device, [...(orders.get(device) ?? []), Number(payload['signalTimestamp'])])
  }
  return [...orders.values()]
}

describe.each(kinds)('an outage of the ingestion API with $name', { timeout: 600_000 }, (kind) => {
  test.skipIf(!kind.isThere)(
    'and five kills of the engine loses nothing and stores nothing twice',
    async () => {
      const { engine, gateway, publish, count } = await openWorld(kind)
      for (let kill = 0; kill < 5; kill += 1) {
        await engine.kill(0)
        await engine.restart(0)
        // In an outage a bridge to RabbitMQ that has lost its connection waits for the end of it.
        if (kind.name === 'NATS') await eventually(() => isConnected(gateway))
        await publish(2)
      }
      expect(gateway.status().totals.payloads).toBe(80)
      expect(sourceOf(gateway).acked).toBe(0)
      gateway.sandbox.setFaults([])
      await eventually(() => sourceOf(gateway).acked === count())
      expect(gateway.status().totals).toMatchObject({ payloads: count(), duplicates: 80 })
      expect(gateway.sandbox.stats()).toMatchObject({
        distinctPayloadIds: count(),
        payloadsAccepted: count(),
        duplicatesAcrossBatches: 0,
        duplicatesUnderOneBatch: 0,
      })
      for (const order of ordersOf(gateway)) expect(order.length).toBe(count() / devices)
    },
  )

  test.skipIf(!kind.isThere)('in which its messages are deleted loses none that was taken', async () => {
    const { engine, gateway, count } = await openWorld(kind)
    await kind.purge(engine)
    gateway.sandbox.setFaults([])
    await eventually(() => gateway.sandbox.stats().payloadsAccepted === count())
    await eventually(() => gateway.status().lanes.every(({ sealed, pending }) => sealed + pending === 0))
    expect(gateway.sandbox.stats()).toMatchObject({ distinctPayloadIds: 80, duplicatesAcrossBatches: 0 })
  })
})
