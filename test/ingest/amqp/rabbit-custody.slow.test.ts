// What custody `delivered` asks of a bridge, against a real RabbitMQ.

import { connectAsync } from 'mqtt'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { createAmqpBridge } from '../../../src/ingest/amqp/amqp.ts'
import { systemClock } from '../../../src/std/clock.ts'
import type { Engine } from '../../engines/message-engine.ts'
import { hasRabbit, hasRabbitCluster, startRabbit, storedTimes } from '../../engines/rabbit-engine.ts'
import { eventually } from '../../support/eventually.ts'
import { createHeldFeed } from '../../support/held-feed.ts'
import { manage, openClient, parseRabbitBridge } from '../../support/rabbit-bridges.ts'

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
  const giveBackBehind = (count: number, last = taken[count - 1]!) =>
    held.giveBackBehind(source, last.partition, { count, position: last.position })
  const acknowledge = (count: number, last = taken[count - 1]!) =>
    held.acknowledge(source, last.partition, { count, position: last.position })
  return {
    source,
    custody,
    taken,
    textsTaken: () => taken.map(({ text }) => text),
    isPaused,
    giveBackBehind,
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

/** Delivered ones too. RabbitMQ counts them every few seconds. */
async function messagesOf(engine: Engine, queue: string): Promise<number | undefined> {
  const answer = (await manage(engine, 'GET', `queues/%2F/${queue}`)) as { messages?: number }
  return answer.messages
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

  test.skipIf(!isThere || !isNewer)(
    'what is given back comes again in its order; what is before stays open, and is acknowledged later',
    async () => {
      const { source, taken, textsTaken, isPaused, giveBackBehind, acknowledge } = await openSource(
        engine,
        'again',
      )
      await publish(engine, 'again', texts(0, 60))
      await eventually(() => taken.length === 60)
      const { partition } = taken[0]!
      source.want(0)
      await eventually(isPaused)
      const tenth = taken[9]!
      giveBackBehind(10)
      await eventually(async () => (await depthOf(engine, 'again.0')) === 50)
      expect(partition.assigned).toBe(true)
      await publish(engine, 'again', texts(60, 70))
      taken.length = 0
      source.want(100)
      await eventually(() => taken.length === 60)
      expect(textsTaken()).toEqual(texts(10, 70))
      expect(taken.map(({ redelivered }) => redelivered)).toEqual([
        ...texts(0, 50).map(() => true),
        ...texts(0, 10).map(() => false),
      ])
      expect(new Set(taken.map((one) => one.partition))).toEqual(new Set([partition]))
      acknowledge(10, tenth)
      // And again, on the same connection.
      source.want(0)
      await eventually(isPaused)
      giveBackBehind(30, taken[19])
      await eventually(async () => (await depthOf(engine, 'again.0')) === 40)
      const twentieth = taken[19]!
      taken.length = 0
      source.want(100)
      await eventually(() => taken.length === 40)
      expect(textsTaken()).toEqual(texts(30, 70))
      acknowledge(30, twentieth)
      acknowledge(70, taken.at(-1))
      await eventually(() => source.view().lag === 0)
      await source.close()
      // Nothing was open any more.
      expect(await depthOf(engine, 'again.0')).toBe(0)
    },
  )

  test.skipIf(!isThere || !isNewer)(
    'another gateway gets nothing while something before it is open here, and then all of it in order',
    async () => {
      const first = await openSource(engine, 'other', { window: 200 })
      await publish(engine, 'other', texts(0, 200))
      await eventually(() => first.taken.length === 200)
      const second = await openSource(engine, 'other', { member: 'gw-2', window: 200 })
      // These wait in the queue.
      await publish(engine, 'other', texts(200, 300))
      first.source.want(0)
      await eventually(first.isPaused)
      first.giveBackBehind(40)
      await eventually(async () => (await depthOf(engine, 'other.0')) === 260)
      await publish(engine, 'other', texts(300, 350))
      expect(second.taken).toEqual([])
      first.acknowledge(40)
      await eventually(() => second.taken.length === 200)
      expect(second.textsTaken()).toEqual(texts(40, 240))
      second.acknowledge(200)
      await eventually(() => second.taken.length === 310)
      expect(second.textsTaken()).toEqual(texts(40, 350))
      second.acknowledge(310)
      await eventually(() => second.source.view().lag === 0)
      expect(first.taken.length).toBe(200)
    },
  )

  test.skipIf(!isThere || !isNewer)(
    'what a lost gateway had submitted comes before what it had given back, and can be acknowledged in parts',
    async () => {
      const first = await openSource(engine, 'lost')
      await publish(engine, 'lost', texts(0, 100))
      await eventually(() => first.taken.length === 100)
      first.source.want(0)
      await eventually(first.isPaused)
      first.giveBackBehind(40)
      await eventually(async () => (await depthOf(engine, 'lost.0')) === 60)
      await publish(engine, 'lost', texts(100, 150))
      const second = await openSource(engine, 'lost', { member: 'gw-2', window: 200 })
      await first.source.close()
      await eventually(() => second.taken.length === 150)
      expect(second.textsTaken()).toEqual(texts(0, 150))
      // In the middle of what RabbitMQ delivers last, of what it delivers first, and behind both.
      for (const count of [20, 70, 120]) second.acknowledge(count)
      // RabbitMQ forgets acknowledgements that it has not carried out when their channel is closed.
      await eventually(async () => (await messagesOf(engine, 'lost.0')) === 30)
      await second.source.close()
      const third = await openSource(engine, 'lost', { member: 'gw-3', window: 200 })
      await eventually(() => third.taken.length === 30)
      expect(third.textsTaken()).toEqual(texts(120, 150))
    },
  )

  test.skipIf(!isThere || !isNewer)(
    'a gateway that has nothing open leaves the queue to another one, which gets all in order',
    async () => {
      const first = await openSource(engine, 'left')
      await publish(engine, 'left', texts(0, 100))
      await eventually(() => first.taken.length === 100)
      const second = await openSource(engine, 'left', { member: 'gw-2' })
      await publish(engine, 'left', texts(100, 150))
      first.source.want(0)
      await eventually(first.isPaused)
      first.acknowledge(30)
      first.giveBackBehind(30)
      await eventually(() => second.taken.length === 100)
      second.acknowledge(100)
      await eventually(() => second.taken.length === 120)
      expect(second.textsTaken()).toEqual(texts(30, 150))
    },
  )

  test.skipIf(!isThere || isNewer)(
    'all stays open here, and another gateway gets nothing before it',
    async () => {
      const first = await openSource(engine, 'older')
      await publish(engine, 'older', texts(0, 100))
      await eventually(() => first.taken.length === 100)
      const second = await openSource(engine, 'older', { member: 'gw-2' })
      await publish(engine, 'older', texts(100, 150))
      first.source.want(0)
      await eventually(first.isPaused)
      expect(first.custody.mayGiveBack?.()).toBe(false)
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
