// Custody `delivered` with a real NATS: the whole gateway, devices over MQTT, and the sandbox as the service.

import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { hasNats, startNats } from '../../engines/nats-engine.ts'
import type { Engine } from '../../engines/message-engine.ts'
import { createFastClock } from '../../support/fast-clock.ts'
import { newFolder } from '../../support/folders.ts'
import { eventually } from '../../support/eventually.ts'
import { messageOf, startPipeline, type PipelineOptions } from '../../support/pipeline-world.ts'
import { mappings, openDevice, openNats, publishAll } from '../../support/nats-world.ts'

const sources = `
sources:
  - name: trucks
    topic: t/{device}
    map:
      time:      { path: ts, format: ms }
      latitude:  { path: lat }
      longitude: { path: lon }
defaults: { carrier: ACME, operator: OP1, asset_type: TRACTOR }
spool: { path: ./spool, max_bytes: 1GiB, min_free_bytes: 1MiB }
ops: { listen: "127.0.0.1:0", stop_deadline: 5s }
`

function start(engine: Engine, member: string, more: PipelineOptions = {}) {
  return startPipeline({
    ...more,
    config: (baseUrl) => `
ingest:
  broker: { listeners: [] }
  bridges:
    - name: nats
      url: ${engine.urls[0]}
      member: ${member}
      topics: ["t/{device}"]
      durables: { prefix: gw, partitions: 4 }
      provision: true
      custody: delivered
      park_after: 5s
      park_for: 10s
delivery: { base_url: "${baseUrl}", batch: { linger: 100ms } }
${sources}`,
  })
}

const readings = (device: string, count: number) =>
  Array.from({ length: count }, (_, n) => ({ topic: `t/${device}`, text: messageOf(n) }))

describe.skipIf(!hasNats)('custody delivered with NATS', { timeout: 180_000 }, () => {
  test('a gateway that is lost with its disk loses nothing: the next one gets everything', async () => {
    const engine = await startNats({ lines: mappings })
    const folder = await newFolder()
    const first = await start(engine, 'gw-a', { folder, sandbox: { faults: { always: 503 } } })
    const active = (gateway: typeof first) =>
      gateway.status().messageSources[0]!.partitions.filter(({ role }) => role === 'active').length
    await first.until(() => active(first) === 4)
    const device = await openDevice(engine.nodes[0]!.mqttPort)
    await publishAll(device, [...readings('truck-1', 30), ...readings('truck-2', 30)])
    await first.until(() => first.status().totals.payloads === 60)
    expect(first.status().messageSources[0]).toMatchObject({ acked: 0, outstanding: 60 })
    await first.gateway.stop('lost')
    await rm(join(folder, 'spool'), { recursive: true, force: true })
    first.sandbox.setFaults([])
    const second = await start(engine, 'gw-b', { baseUrl: first.baseUrl })
    await second.until(() => second.status().messageSources[0]!.acked === 60)
    device.end(true)
    expect(first.sandbox.stats()).toMatchObject({ distinctPayloadIds: 60, payloadsAccepted: 60 })
    await using nats = await openNats(engine)
    await eventually(async () => (await nats.jsm.streams.info('$MQTT_msgs')).state.messages === 0)
  })

  test('payloads that fail are parked in a stream, come back and are delivered; dead letters are copied', async () => {
    const engine = await startNats({ lines: mappings })
    const fail = [{ device: 'truck-bad', error_type: 'Validation' }]
    const gateway = await start(engine, 'gw-a', {
      clock: createFastClock(4),
      sandbox: { faults: { fail } },
    })
    await gateway.until(
      () =>
        gateway.status().messageSources[0]!.partitions.filter(({ role }) => role === 'active').length === 4,
    )
    const device = await openDevice(engine.nodes[0]!.mqttPort)
    await publishAll(device, [
      ...readings('truck-bad', 3),
      ...readings('truck-1', 20),
      { topic: 't/truck-1', text: 'not json' },
    ])
    await gateway.until(() => gateway.status().messageSources[0]!.acked === 24)
    expect(gateway.status().custody).toMatchObject({ parked: 3, copied: 1, outstanding: 0 })
    await using nats = await openNats(engine)
    expect((await nats.jsm.streams.info('gw-dead')).state.messages).toBe(1)
    expect((await nats.jsm.streams.info('gw-parked')).state.messages).toBe(3)
    gateway.sandbox.setFaults([])
    await gateway.until(() => gateway.sandbox.stats().payloadsAccepted === 23)
    await eventually(async () => (await nats.jsm.streams.info('gw-parked')).state.messages === 0)
    device.end(true)
    expect(gateway.sandbox.stats()).toMatchObject({ distinctPayloadIds: 23, duplicatesAcrossBatches: 0 })
  })
})
