// What custody `delivered` asks of a bridge, against a real RabbitMQ.

import { connectAsync } from 'mqtt'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { createAmqpBridge } from '../../../src/ingest/amqp/amqp.ts'
import { systemClock } from '../../../src/std/clock.ts'
import type { Engine } from '../../engines/message-engine.ts'
import { hasRabbit, hasRabbitCluster, startRabbit, storedTimes } from '../../engines/rabbit-engine.ts'
import { eventually } from '../../support/eventually.ts'
import { createHeldFeed } from '../../support/held-feed.ts'
import { openClient, parseRabbitBridge } from '../../support/rabbit-bridges.ts'

const texts = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, index) => String(from + index))

async function openSource(engine: Engine, prefix: string, { member = 'gw-1', window = 100 } = {}) {
  const options = {
    ...parseRabbitBridge({
      url: engine.urls[0],
      member,
      queue: { prefix, partitions: 1 },
      bind: { keys: [`${prefix}.#`] },
      custody: 'delivered',
      window,
    }),
    depthEveryMs: 200,
    // For messages of devices: what a gateway has parked is larger than the message in it.
    messageBytesMax: 1024,
    pauseAfterMs: 200,
    reconnectFirstMs: 50,
  }
  const held = createHeldFeed(window)
  const { feed, taken } = held
  const source = createAmqpBridge({ clock: systemClock, emit: () => undefined, random: Math.random }, options)
  onTestFinished(() => source.close())
  source.start(feed)
  source.want(window)
  await eventually(() => source.view().links.every(({ state }) => state === 'connected'))
  const { custody } = source
  if (custody === undefined) throw new Error('the bridge has no custody')
  const isPaused = () => source.view().links[0]!.state === 'paused'
  const acknowledge = (count: number, last = taken[count - 1]!) =>
    held.acknowledge(source, last.partition, { count, position: last.position })
  return {
    source,
    custody,
    taken,
    textsTaken: () => taken.map(({ text }) => text),
    isPaused,
    acknowledge,
  }
}

async function publish(engine: Engine, prefix: string, all: readonly string[]): Promise<void> {
  const device = await connectAsync(engine.mqttUrls[0]!, { protocolVersion: 4 })
  await Promise.all(all.map((text) => device.publishAsync(`${prefix}/truck-7`, text, { qos: 1 })))
  await device.endAsync()
}

async function depthOf(engine: Engine, queue: string): Promise<number> {
  await using client = await openClient(engine)
  return (await client.channel.checkQueue(queue)).messageCount
}

describe.each([
  { version: '3.10', isNewer: false, isThere: hasRabbit },
  { version: '4.0', isNewer: true, isThere: hasRabbitCluster },
])('custody of RabbitMQ $version', { timeout: 120_000 }, ({ isNewer, isThere }) => {
  let engine: Engine
  const ends: (() => Promise<void>)[] = []
  beforeAll(async () => {
    if (!isThere) return
    const lines = isNewer ? [storedTimes] : []
    engine = await startRabbit({ isNewer, lines, atEnd: (end) => ends.push(end) })
  }, 120_000)
  afterAll(async () => {
    for (const end of ends.reverse()) await end()
  })

  test.skipIf(!isThere)(
    'in an outage all stays open here, and another gateway gets nothing before it',
    async () => {
      const first = await openSource(engine, 'older')
      await publish(engine, 'older', texts(0, 100))
      await eventually(() => first.taken.length === 100)
      const second = await openSource(engine, 'older', { member: 'gw-2' })
      await publish(engine, 'older', texts(100, 150))
      first.source.want(0)
      await eventually(first.isPaused)
      expect(second.taken).toEqual([])
      first.acknowledge(30)
      first.source.want(100)
      await eventually(() => first.taken.length === 130)
      first.acknowledge(130)
      await eventually(() => first.taken.length === 150)
      expect(first.textsTaken()).toEqual(texts(0, 150))
      expect(second.taken).toEqual([])
    },
  )

  test.skipIf(!isThere)(
    'entries are stored with a confirm, come back in their order, and are gone after their acknowledgement',
    async () => {
      const { source, custody, taken, textsTaken, acknowledge } = await openSource(engine, 'entries')
      const signal = new AbortController().signal
      const entries = Array.from({ length: 90 }, (_, index) => ({
        headers: { why: 'line one\nline two' },
        body: Buffer.from(index === 5 ? 'x'.repeat(200_000) : `entry ${index}`),
      }))
      await eventually(() =>
        custody.store('dead', entries.slice(0, 3), signal).then(
          () => true,
          () => false,
        ),
      )
      await custody.store('parked', entries, signal)
      await eventually(() => taken.length === 90)
      expect(textsTaken()).toEqual(entries.map(({ body }) => body.toString()))
      const { partition } = taken.at(-1)!
      expect(partition.holds).toBe('parked')
      acknowledge(90)
      expect(await depthOf(engine, 'entries.dead')).toBe(3)
      {
        await using client = await openClient(engine)
        await client.channel.deleteQueue('entries.dead')
      }
      await expect(custody.store('dead', entries, signal)).rejects.toThrow('entries.dead')
      await source.close()
      expect(await depthOf(engine, 'entries.parked')).toBe(0)
    },
  )
})
