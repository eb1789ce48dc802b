// What a bridge gets from NATS and RabbitMQ by their MQTT: all that was acknowledged to the publisher, over kills of the
// daemon and of the broker; and what they do not have, said to the person: MQTT 5, and shared subscriptions.

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { Status } from '../../src/ops/status-schema/status-schema.ts'
import type { Engine } from '../engines/message-engine.ts'
import { hasNats, startNats } from '../engines/nats-engine.ts'
import { hasRabbit, startRabbit } from '../engines/rabbit-engine.ts'
import { eventually } from '../support/eventually.ts'
import { newFolder } from '../support/folders.ts'
import { publishAll } from '../support/mosquitto.ts'
import { startSandbox } from '../support/pipeline-world.ts'
import { spawnCommand, startSpawnedDaemon, type SpawnedDaemon } from '../support/spawned-daemon.ts'

async function configOf(port: number, serviceUrl: string, bridge: string): Promise<string> {
  const path = join(await newFolder(), 'gateway.yaml')
  await writeFile(
    path,
    `
ingest:
  broker: { listeners: [] }
  bridges:
    - { name: depot, url: "mqtt://127.0.0.1:${port}", topics: ["t/+"], client_id: gw, keepalive: 2s, reconnect_max: 1s, ${bridge} }
sources: [{ name: a, topic: "t/{device}", map: { time: { path: t, format: ms }, latitude: { path: x }, longitude: { path: y } } }]
defaults: { carrier: ACME, operator: OP1, asset_type: TRACTOR }
spool: { path: ./spool, max_bytes: 1GiB, min_free_bytes: 1MiB }
delivery: { base_url: "${serviceUrl}", batch: { max_payloads: 100, linger: 5ms } }
ops: { listen: "127.0.0.1:0", stop_deadline: 5s }
`,
  )
  return path
}

const startMs = Date.now() - 3_600_000

function publish({ mqttUrls }: Engine, from: number, count: number): Promise<void> {
  const messages = Array.from({ length: count }, (_, index) => ({
    topic: `t/truck-${index % 20}`,
    payload: JSON.stringify({ t: startMs + from + index, x: 52 + (from + index) / 1e7, y: 13 }),
  }))
  return publishAll(mqttUrls[0]!, messages, {
    protocolVersion: 4,
    clientId: `publisher-${from}`,
  })
}

const statusOf = async ({ url }: SpawnedDaemon) => (await (await fetch(`${url}/status`)).json()) as Status

async function connectionOf(daemon: SpawnedDaemon) {
  const { messageSources } = await statusOf(daemon)
  return messageSources.find(({ name }) => name === 'depot')!.connections[0]!
}

const isConnected = async (daemon: SpawnedDaemon) => (await connectionOf(daemon)).state === 'connected'

const conditionOf = async (daemon: SpawnedDaemon, wanted: string) =>
  (await statusOf(daemon)).conditions.find(({ code }) => code === wanted)

describe.each([
  { name: 'NATS', isThere: hasNats, startEngine: startNats },
  { name: 'RabbitMQ', isThere: hasRabbit, startEngine: startRabbit },
])('a bridge to $name', ({ isThere, startEngine }) => {
  test.skipIf(!isThere)(
    'loses nothing that the broker acknowledged, over kills of the daemon and of the broker',
    async () => {
      const { sandbox, url: serviceUrl } = await startSandbox({})
      const engine = await startEngine()
      const config = await configOf(engine.nodes[0]!.mqttPort, serviceUrl, 'protocol: 3.1.1')
      const first = await startSpawnedDaemon(config)
      await eventually(() => isConnected(first))
      const beforeKill = publish(engine, 0, 2000)
      await eventually(() => sandbox.stats().distinctPayloadIds > 200)
      await first.kill()
      await beforeKill
      await publish(engine, 2000, 1000)
      const second = await startSpawnedDaemon(config)
      await eventually(() => isConnected(second))
      expect((await connectionOf(second)).sessionPresent).toBe(true)
      await eventually(() => sandbox.stats().distinctPayloadIds >= 3000)
      await second.stop()
      await publish(engine, 3000, 500)
      await engine.kill(0)
      await engine.restart(0)
      const third = await startSpawnedDaemon(config)
      await eventually(() => sandbox.stats().distinctPayloadIds >= 3500)
      await publish(engine, 3500, 100)
      await eventually(() => sandbox.stats().distinctPayloadIds >= 3600)
      expect(sandbox.stats().distinctPayloadIds).toBe(3600)
      const { totals, conditions } = await statusOf(third)
      expect({ dropped: totals.dropped, unmappable: totals.unmappable }).toEqual({
        dropped: 0,
        unmappable: 0,
      })
      expect(conditions.map(({ code }) => code).filter((code) => code.startsWith('MESSAGE_SOURCE'))).toEqual(
        [],
      )
    },
    120_000,
  )

  test.skipIf(!isThere)(
    'with MQTT 5 it says to set protocol: 3.1.1, and the check grants QoS 1 with that',
    async () => {
      const { url: serviceUrl } = await startSandbox({})
      const engine = await startEngine()
      const newer = await configOf(engine.nodes[0]!.mqttPort, serviceUrl, '')
      expect(await spawnCommand(['check', '--connect', '--config', newer]).ended).toContain('protocol: 3.1.1')
      const older = await configOf(engine.nodes[0]!.mqttPort, serviceUrl, 'protocol: 3.1.1')
      expect(await spawnCommand(['check', '--connect', '--config', older]).ended).toContain('QoS 1 for t/+')
      const daemon = await startSpawnedDaemon(newer)
      await eventually(
        async () => (await conditionOf(daemon, 'MESSAGE_SOURCE_DISCONNECTED'))?.why !== undefined,
      )
      expect((await conditionOf(daemon, 'MESSAGE_SOURCE_DISCONNECTED'))?.act).toContain('protocol: 3.1.1')
    },
    60_000,
  )

  test.skipIf(!isThere)(
    'with a share group nothing comes, and MESSAGE_SOURCE_SILENT says so',
    async () => {
      const { sandbox, url: serviceUrl } = await startSandbox({})
      const engine = await startEngine()
      const bridge = 'protocol: 3.1.1, share_group: g, silent_after: 2s'
      const daemon = await startSpawnedDaemon(await configOf(engine.nodes[0]!.mqttPort, serviceUrl, bridge))
      await eventually(() => isConnected(daemon))
      await publish(engine, 0, 100)
      await eventually(async () => (await conditionOf(daemon, 'MESSAGE_SOURCE_SILENT')) !== undefined)
      expect((await conditionOf(daemon, 'MESSAGE_SOURCE_SILENT'))?.why).toContain('share_group')
      expect(sandbox.stats().distinctPayloadIds).toBe(0)
    },
    60_000,
  )
})
