// The harness itself: three nodes form a cluster, a leader that is killed is replaced, all come back with their data.

import { connect as connectAmqp } from 'amqplib'
import { jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { describe, expect, test } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { publishAll } from '../support/mosquitto.ts'
import { hasNats, hasNatsCluster, startNats } from './nats-engine.ts'
import { hasRabbit, hasRabbitCluster, rabbitUser, startRabbit } from './rabbit-engine.ts'

const messages = (count: number) =>
  Array.from({ length: count }, (_, index) => ({ topic: `t/truck-${index % 5}`, payload: String(index) }))

const mqtt = { protocolVersion: 4 as const, ...rabbitUser }

describe.each([
  { nodes: 1 as const, isThere: hasNats },
  { nodes: 3 as const, isThere: hasNatsCluster },
])('NATS with nodes: $nodes', ({ nodes, isThere }) => {
  test.skipIf(!isThere)('keeps its messages when each node is killed', async () => {
    const engine = await startNats({ nodes })
    const bus = await connect({
      servers: [...engine.urls],
      ignoreClusterUpdates: true,
      maxReconnectAttempts: -1,
    })
    const manager = await jetstreamManager(bus)
    await publishAll(engine.mqttUrls[0]!, messages(1), mqtt)
    await manager.consumers.add('$MQTT_msgs', { durable_name: 'kept', ack_policy: 'all' })
    await publishAll(engine.mqttUrls[0]!, messages(20), mqtt)
    const count = async () => (await manager.consumers.info('$MQTT_msgs', 'kept')).num_pending
    expect(await count()).toBe(20)
    if (nodes > 1) {
      const leader = await engine.leaderOf('$MQTT_msgs/kept')
      await engine.kill(leader)
      await eventually(async () => {
        const now = await engine.leaderOf('$MQTT_msgs/kept').catch(() => leader)
        return now !== leader
      })
      await engine.restart(leader)
    }
    await engine.killAll()
    engine.startAll()
    await engine.ready()
    await eventually(async () => (await count().catch(() => -1)) === 20)
    await bus.close()
  })
})

describe.each([
  { nodes: 1 as const, isThere: hasRabbit },
  { nodes: 3 as const, isThere: hasRabbitCluster },
])('RabbitMQ with nodes: $nodes', ({ nodes, isThere }) => {
  test.skipIf(!isThere)('keeps its messages when each node is killed', async () => {
    const engine = await startRabbit({ nodes })
    const open = (node: number) =>
      connectAmqp(engine.urls[node]!.replace('://', '://guest:guest@'), { noDelay: true })
    const link = await open(0)
    link.on('error', () => undefined)
    const channel = await link.createChannel()
    channel.on('error', () => undefined)
    await channel.assertQueue('kept', { durable: true, arguments: { 'x-queue-type': 'quorum' } })
    await channel.bindQueue('kept', 'amq.topic', 't.*')
    await publishAll(engine.mqttUrls[nodes - 1]!, messages(20), mqtt)
    await engine.settled('kept')
    if (nodes > 1) {
      await engine.ready()
      const leader = await engine.leaderOf('kept')
      await engine.kill(leader)
      await eventually(async () => {
        const now = await engine.leaderOf('kept').catch(() => leader)
        return now !== leader
      })
      await engine.restart(leader)
    }
    await engine.killAll()
    engine.startAll()
    await engine.ready()
    const again = await open(nodes - 1)
    const counter = await again.createChannel()
    // It counts from zero while it reads its log.
    const count = async () => (await counter.checkQueue('kept')).messageCount
    await eventually(async () => (await count()) > 0)
    expect(await count()).toBe(20)
    await again.close()
  })
})
