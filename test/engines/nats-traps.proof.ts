// What NATS does that loses or hides messages where a gateway, or who sets it up, does not know it. Each trap is shown
// with plain clients, so that a later NATS without it is noticed.

import { jetstreamManager, type JetStreamManager } from '@nats-io/jetstream'
import { connect, createInbox, type NatsConnection } from '@nats-io/transport-node'
import { describe, expect, onTestFinished, test } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { answers, publishAll } from '../support/mosquitto.ts'
import type { Engine } from './message-engine.ts'
import { hasNats, hasNatsCluster, startNats } from './nats-engine.ts'

const mqttStream = '$MQTT_msgs'

async function clientOf(engine: Engine): Promise<{ bus: NatsConnection; manager: JetStreamManager }> {
  const bus = await connect({ servers: [...engine.urls] })
  onTestFinished(() => bus.close())
  return { bus, manager: await jetstreamManager(bus) }
}

/** Resolves when all are acknowledged. */
function publish(engine: Engine, count: number): Promise<void> {
  const messages = Array.from({ length: count }, (_, index) => ({
    topic: `t/truck-${index % 5}`,
    payload: String(index),
  }))
  return publishAll(engine.mqttUrls[0]!, messages, { protocolVersion: 4, clientId: 'trucks' })
}

const storedIn = async (manager: JetStreamManager, stream: string) =>
  (await manager.streams.info(stream)).state.messages

describe.skipIf(!hasNats)('NATS', () => {
  test('acknowledges for its own stream: a stream of yours that refuses messages changes nothing', async () => {
    const engine = await startNats()
    const { manager } = await clientOf(engine)
    await manager.streams.add({
      name: 'mine',
      subjects: ['t.*'],
      max_msgs: 100,
      discard: 'new',
    })
    await publish(engine, 500)
    await eventually(async () => (await storedIn(manager, 'mine')) >= 100)
    expect(await storedIn(manager, 'mine')).toBe(100)
  })

  test('stores nothing in its stream before there is a consumer, and acknowledges', async () => {
    const engine = await startNats()
    const { manager } = await clientOf(engine)
    await publish(engine, 100)
    expect(await storedIn(manager, mqttStream)).toBe(0)
    const { config } = await manager.streams.info(mqttStream)
    expect(config).toMatchObject({ retention: 'interest', subjects: ['$MQTT.msgs.>'] })
    await manager.consumers.add(mqttStream, { durable_name: 'gw-0', ack_policy: 'all' })
    await publish(engine, 100)
    expect(await storedIn(manager, mqttStream)).toBe(100)
  })

  test('stores nothing for topics that no filter of a consumer has', async () => {
    const engine = await startNats()
    const { manager } = await clientOf(engine)
    await publish(engine, 1)
    await manager.consumers.add(mqttStream, {
      durable_name: 'gw-0',
      ack_policy: 'all',
      filter_subject: '$MQTT.msgs.other.*',
    })
    await publish(engine, 100)
    expect(await storedIn(manager, mqttStream)).toBe(0)
  })

  test('empties its stream when the durable consumer is deleted', async () => {
    const engine = await startNats()
    const { manager } = await clientOf(engine)
    await publish(engine, 1)
    await manager.consumers.add(mqttStream, { durable_name: 'gw-0', ack_policy: 'all' })
    await publish(engine, 100)
    expect(await storedIn(manager, mqttStream)).toBe(100)
    await manager.consumers.delete(mqttStream, 'gw-0')
    await manager.consumers.add(mqttStream, { durable_name: 'gw-0', ack_policy: 'all' })
    expect(await storedIn(manager, mqttStream)).toBe(0)
  })

  test('deletes a durable with inactive_threshold while its gateway is away, and the messages with it', async () => {
    const engine = await startNats()
    const { manager } = await clientOf(engine)
    await publish(engine, 1)
    await manager.consumers.add(mqttStream, {
      durable_name: 'gw-0',
      ack_policy: 'all',
      inactive_threshold: 500_000_000,
    })
    await publish(engine, 100)
    await eventually(async () => (await storedIn(manager, mqttStream)) === 0)
    await expect(manager.consumers.info(mqttStream, 'gw-0')).rejects.toThrow('not found')
  })

  test('tells a consumer neither the client id nor the user that published', async () => {
    const engine = await startNats()
    const { bus } = await clientOf(engine)
    const subscription = bus.subscribe('t.*', { max: 1 })
    await bus.flush()
    await publish(engine, 1)
    for await (const message of subscription)
      expect(`${message.subject} ${JSON.stringify(message.headers ?? null)}`).not.toContain('trucks')
  })
})

describe.skipIf(!hasNatsCluster)('NATS 2.10', () => {
  const syncOf = async (syncInterval: string | null) => {
    const engine = await startNats({ isNewer: true, syncInterval })
    const answer = await fetch(`http://127.0.0.1:${engine.nodes[0]!.monitorPort}/varz`)
    const { jetstream } = (await answer.json()) as {
      jetstream: { config: { sync_interval: number; sync_always?: boolean } }
    }
    return jetstream.config
  }

  test('flushes to the disk every two minutes by default, and for each message if it is told so', async () => {
    expect((await syncOf(null)).sync_interval).toBe(120 * 1e9)
    expect((await syncOf('always')).sync_always).toBe(true)
  })

  test('reads sync_interval: 2m without quotes as another number than "2m"', async () => {
    expect((await syncOf('"2m"')).sync_interval).toBe(120 * 1e9)
    // Milliseconds or nanoseconds of two million: not two minutes.
    expect((await syncOf('2m')).sync_interval).not.toBe(120 * 1e9)
  })
})

describe.skipIf(!hasNatsCluster)('NATS of three nodes', () => {
  async function startCluster(): Promise<{ engine: Engine; manager: JetStreamManager; bus: NatsConnection }> {
    const engine = await startNats({ nodes: 3 })
    const { bus, manager } = await clientOf(engine)
    await publish(engine, 1)
    await manager.consumers.add(mqttStream, { durable_name: 'gw-0', ack_policy: 'all' })
    return { engine, bus, manager }
  }

  test('answers on its ports before it works: only /healthz of all nodes says when', async () => {
    const { engine } = await startCluster()
    await engine.killAll()
    engine.start(0)
    const { monitorPort, mqttPort } = engine.nodes[0]!
    const health = (port: number) =>
      fetch(`http://127.0.0.1:${port}/healthz`, { signal: AbortSignal.timeout(2000) }).then(
        ({ status }) => status,
        () => 0,
      )
    await eventually(async () => (await health(monitorPort)) > 0)
    // The ports are open and a client is let in, but the node has no quorum.
    await answers(mqttPort)
    const alone = await connect({ servers: [engine.urls[0]!], reconnect: false, ignoreClusterUpdates: true })
    onTestFinished(() => alone.close())
    const manager = await jetstreamManager(alone, { checkAPI: false, timeout: 2000 })
    expect(await health(monitorPort)).not.toBe(200)
    await expect(manager.streams.info(mqttStream)).rejects.toThrow()
    engine.start(1)
    engine.start(2)
    await engine.ready()
    for (const node of engine.nodes) expect(await health(node.monitorPort)).toBe(200)
    const { manager: again } = await clientOf(engine)
    expect((await again.streams.info(mqttStream)).config.num_replicas).toBe(3)
  })

  test('gives nothing to an open pull when the leader of the durable dies: only a new pull gets messages', async () => {
    const { engine } = await startCluster()
    const leader = await engine.leaderOf(`${mqttStream}/gw-0`)
    const other = (leader + 1) % 3
    const bus = await connect({
      servers: [engine.urls[other]!],
      reconnect: false,
      ignoreClusterUpdates: true,
    })
    onTestFinished(() => bus.close())
    const pull = () => {
      const came: string[] = []
      const inbox = createInbox()
      bus.subscribe(inbox, {
        callback: (_error, message) => void came.push(message.reply === '' ? 'status' : message.subject),
      })
      const request = JSON.stringify({ batch: 10, expires: 120e9 })
      bus.publish(`$JS.API.CONSUMER.MSG.NEXT.${mqttStream}.gw-0`, request, { reply: inbox })
      return came
    }
    const before = pull()
    await bus.flush()
    await engine.kill(leader)
    await eventually(async () => {
      const now = await engine.leaderOf(`${mqttStream}/gw-0`).catch(() => leader)
      return now !== leader
    })
    const messages = Array.from({ length: 20 }, (_, index) => ({
      topic: 't/truck-1',
      payload: String(index),
    }))
    const client = { protocolVersion: 4 as const, clientId: 'trucks' }
    // Other leaders may be elected still.
    await eventually(() =>
      publishAll(engine.mqttUrls[other]!, messages, client).then(
        () => true,
        () => false,
      ),
    )
    const after = pull()
    await eventually(() => after.length === 10)
    // There are ten more. Mostly there is no word to the open pull that its leader is gone.
    expect(before.filter((what) => what !== 'status')).toEqual([])
  })
})
