// Custody `delivered` before a real engine: what it stores there and takes back, and an outage of the ingestion API that
// is longer than the dedup window, in which the engine is killed.

import { connectAsync } from 'mqtt'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { CustodyView } from '../../../src/ingest/ingest.ts'
import type { Engine } from '../../engines/message-engine.ts'
import { hasNats, startNats } from '../../engines/nats-engine.ts'
import { hasRabbit, hasRabbitCluster, startRabbit } from '../../engines/rabbit-engine.ts'
import { eventually } from '../../support/eventually.ts'
import { mappings, openNats } from '../../support/nats-world.ts'
import { messageOf, startPipeline } from '../../support/pipeline-world.ts'
import { openClient } from '../../support/rabbit-bridges.ts'

const natsBridge = 'topics: ["t/{device}"], durables: { prefix: gw, partitions: 4 }'
// For messages of devices: what a gateway has parked is larger than the message in it.
const rabbitBridge =
  'queue: { prefix: fleet, partitions: 2 }, bind: { keys: ["t.#"] }, max_message_bytes: 1KiB'

const kinds = [
  {
    name: 'NATS',
    isThere: hasNats,
    start: () => startNats({ lines: mappings }),
    bridge: natsBridge,
    async storedIn(engine: Engine, queue: string) {
      await using nats = await openNats(engine)
      return (await nats.jsm.streams.info(`gw-${queue}`)).state.messages
    },
  },
  ...[false, true].map((isNewer) => ({
    name: `RabbitMQ ${isNewer ? '4.0' : '3.10'}`,
    isThere: isNewer ? hasRabbitCluster : hasRabbit,
    start: () => startRabbit({ isNewer }),
    bridge: rabbitBridge,
    async storedIn(engine: Engine, queue: string) {
      await using client = await openClient(engine)
      return (await client.channel.checkQueue(`fleet.${queue}`)).messageCount
    },
  })),
]

const configOf = (engine: Engine, bridge: string) => (baseUrl: string) => `
ingest:
  broker: { listeners: [] }
  bridges:
    - { name: engine, url: "${engine.urls[0]}", member: gw-a, provision: true, custody: delivered, park_after: 2s, park_for: 10s, ${bridge} }
sources:
  - name: trucks
    topic: t/{device}
    map:
      time:      { path: ts, format: ms }
      latitude:  { path: lat }
      longitude: { path: lon }
defaults: { carrier: ACME, operator: OP1, asset_type: TRACTOR }
spool: { path: ./spool, max_bytes: 32MiB, min_free_bytes: 1MiB, dedup: { window: 1s } }
delivery: { base_url: "${baseUrl}", batch: { linger: 100ms, max_payloads: 10 }, max_in_flight: 1 }
ops: { listen: "127.0.0.1:0", stop_deadline: 5s }
`

describe.each(kinds)('custody delivered with $name', { timeout: 300_000 }, (kind) => {
  async function open(sandbox: { faults: object }) {
    const engine = await kind.start()
    const gateway = await startPipeline({ sandbox, config: configOf(engine, kind.bridge) })
    const source = () => gateway.status().messageSources[0]!
    const isActive = () => source().partitions.every(({ role }) => role === 'active')
    await gateway.until(() => source().connectedAt !== null && (kind.name !== 'NATS' || isActive()))
    const device = await connectAsync(engine.mqttUrls[0]!, { protocolVersion: 4, reconnectPeriod: 200 })
    device.on('error', () => undefined)
    onTestFinished(() => void device.end(true))
    const publish = (truck: string, text: string) => device.publishAsync(`t/${truck}`, text, { qos: 1 })
    const custody = () => gateway.status().custody as unknown as CustodyView
    return { engine, gateway, source, custody, publish }
  }

  test.skipIf(!kind.isThere)(
    'payloads that fail are parked, come back and are delivered; dead letters are copied',
    async () => {
      const faults = { fail: [{ device: 'truck-bad', error_type: 'Validation' }] }
      const { engine, gateway, source, custody, publish } = await open({ faults })
      for (let n = 0; n < 3; n += 1) await publish('truck-bad', messageOf(n))
      for (let n = 0; n < 20; n += 1) await publish('truck-1', messageOf(n))
      await publish('truck-1', 'not json')
      await gateway.until(() => source().acked === 24)
      expect(custody()).toMatchObject({ parked: 3, copied: 1, outstanding: 0 })
      gateway.sandbox.setFaults([])
      await gateway.until(() => gateway.sandbox.stats().payloadsAccepted === 23)
      expect(await kind.storedIn(engine, 'dead')).toBe(1)
      expect(custody()).toMatchObject({ takenBack: 3, parkedDuplicates: 0 })
      // What has no acknowledgement would be there again after a stop.
      await gateway.gateway.stop('end')
      expect(await kind.storedIn(engine, 'parked')).toBe(0)
      expect(gateway.sandbox.stats()).toMatchObject({ distinctPayloadIds: 23, duplicatesAcrossBatches: 0 })
    },
  )

  test.skipIf(!kind.isThere)(
    'an outage with two kills of the engine loses nothing and stores nothing twice',
    async () => {
      const { engine, gateway, source, custody, publish } = await open({ faults: { always: 503 } })
      const publishFrom = async (from: number, count: number) => {
        for (let n = from; n < from + count; n += 1) await publish(`truck-${n % 8}`, messageOf(n))
      }
      await publishFrom(0, 80)
      await eventually(() => gateway.status().totals.payloads === 80 && custody().holds)
      for (let kill = 0; kill < 2; kill += 1) {
        await engine.kill(0)
        await engine.restart(0)
        // In an outage a bridge to RabbitMQ that has lost its connection waits for the end of it.
        if (kind.name === 'NATS') await eventually(() => source().connectedAt !== null)
        await publishFrom(80 + kill * 16, 16)
      }
      expect(gateway.status().totals.payloads).toBe(80)
      expect(source().acked).toBe(0)
      gateway.sandbox.setFaults([])
      await eventually(() => source().acked === 112)
      expect(gateway.status().totals).toMatchObject({ payloads: 112, duplicates: 80 })
      expect(gateway.sandbox.stats()).toMatchObject({
        distinctPayloadIds: 112,
        payloadsAccepted: 112,
        duplicatesAcrossBatches: 0,
        duplicatesUnderOneBatch: 0,
      })
    },
  )
})
