// The deployments of config/examples with three nodes and three gateways: their files work together, each device may publish
// under its own name only, and nothing that was acknowledged is lost when a node or a gateway is killed.

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Status } from '../../src/ops/status-schema/status-schema.ts'
import { runCli } from '../support/cli-world.ts'
import { eventually } from '../support/eventually.ts'
import { publishAll } from '../support/mosquitto.ts'
import { startSandbox } from '../support/pipeline-world.ts'
import { startSpawnedDaemon, type SpawnedDaemon } from '../support/spawned-daemon.ts'
import {
  deviceCount,
  passwordOf,
  startNatsExample,
  startRabbitExample,
  type ExampleCluster,
} from './example-cluster.ts'
import { hasNatsCluster } from './nats-engine.ts'
import { hasRabbitCluster } from './rabbit-engine.ts'

const startMs = Date.now() - 3_600_000
let lastMs = startMs
const partitions = 6

/** Again until it is acknowledged: what comes twice has the same payloadId. */
async function publishAs(device: string, { mqttPorts, ca }: ExampleCluster, node: number, count: number) {
  const messages = Array.from({ length: count }, () => {
    lastMs += 1
    const payload = JSON.stringify({ ts: lastMs, gps: { lat: 52 + (lastMs % 1e5) / 1e6, lon: 13 } })
    return { topic: `telemetry/v1/${device}`, payload }
  })
  const options = {
    ca,
    username: device,
    password: passwordOf(device),
    clientId: device,
    protocolVersion: 4 as const,
    reconnectPeriod: 200,
  }
  await publishAll(`mqtts://localhost:${mqttPorts[node]}`, messages, options)
}

const devices = Array.from({ length: deviceCount }, (_, index) => `truck-${index + 7}`)

async function publishAsEach(cluster: ExampleCluster, nodes: readonly number[], each: number): Promise<void> {
  const publications = devices.map((device, index) =>
    publishAs(device, cluster, nodes[index % nodes.length]!, each),
  )
  await Promise.all(publications)
}

const statusOf = async ({ url }: SpawnedDaemon) => (await (await fetch(`${url}/status`)).json()) as Status

async function activeOf(daemon: SpawnedDaemon): Promise<string[]> {
  const { messageSources } = await statusOf(daemon)
  const fleet = messageSources.find(({ name }) => name === 'fleet')
  return (fleet?.partitions ?? []).filter(({ role }) => role === 'active').map(({ partition }) => partition)
}

/** Its queues or durables exist. */
async function isConnected(daemon: SpawnedDaemon): Promise<boolean> {
  const { messageSources } = await statusOf(daemon)
  const fleet = messageSources.find(({ name }) => name === 'fleet')
  const states = fleet?.connections.map(({ state }) => state) ?? []
  return fleet?.partitions.length === partitions && states.every((state) => state === 'connected')
}

/** All partitions have a gateway, and each gateway has some. */
async function areSpread(gateways: readonly SpawnedDaemon[]): Promise<boolean> {
  const active = await Promise.all(gateways.map(activeOf))
  return new Set(active.flat()).size === partitions && active.every((own) => own.length > 0)
}

describe.each([
  { name: 'NATS', isThere: hasNatsCluster, startExample: startNatsExample },
  { name: 'RabbitMQ', isThere: hasRabbitCluster, startExample: startRabbitExample },
])('the example of $name', ({ isThere, startExample }) => {
  test.skipIf(!isThere)('runs as it is written', async () => {
    const cluster = await startExample()
    const { sandbox, url } = await startSandbox({})
    const accepted = () => sandbox.stats().distinctPayloadIds
    let published = 0
    const allArrive = async () => {
      await eventually(() => accepted() >= published)
      expect(accepted()).toBe(published)
    }

    const gateways: SpawnedDaemon[] = []
    for (const index of [1, 2, 3]) {
      const folder = await mkdtemp(join(tmpdir(), 'gateway-example-'))
      onTestFinished(() => rm(folder, { recursive: true, force: true }))
      const config = await cluster.gatewayConfig(folder, url)
      const env = { GATEWAY_MEMBER: `gateway-${index}` }
      const { status, stdout, stderr } = await runCli(['check', '--config', config], { env })
      expect([status, stderr], stdout).toEqual([0, ''])
      gateways.push(await startSpawnedDaemon(config, { env }))
    }
    await eventually(async () => (await Promise.all(gateways.map(isConnected))).every(Boolean))

    await publishAsEach(cluster, [0, 1, 2], 20)
    published += deviceCount * 20
    await allArrive()
    // RabbitMQ does not say which gateway has a queue before a message comes.
    await eventually(() => areSpread(gateways))

    // Under another name: NATS acknowledges and drops it, RabbitMQ closes the connection.
    const strange = publishAll(
      `mqtts://localhost:${cluster.mqttPorts[0]}`,
      [
        {
          topic: 'telemetry/v1/truck-8',
          payload: JSON.stringify({ ts: startMs - 1, gps: { lat: 1, lon: 1 } }),
        },
      ],
      {
        ca: cluster.ca,
        username: 'truck-7',
        password: passwordOf('truck-7'),
        clientId: 'stranger',
        protocolVersion: 4,
        reconnectPeriod: 0,
      },
    )
    await Promise.race([strange, new Promise((resolve) => void setTimeout(resolve, 3000))]).catch(
      () => undefined,
    )
    await publishAs('truck-8', cluster, 0, 1)
    published += 1
    await allArrive()

    await cluster.killNode(0)
    await publishAsEach(cluster, [1, 2], 10)
    published += deviceCount * 10
    await allArrive()
    cluster.startNode(0)
    await cluster.ready()

    await gateways[0]!.kill()
    await publishAsEach(cluster, [0, 1, 2], 10)
    published += deviceCount * 10
    await allArrive()
    await eventually(() => areSpread(gateways.slice(1)))
  })
})
