// What RabbitMQ does that loses or hides messages where a gateway, or who sets it up, does not know it. Each trap is shown
// with plain clients, so that a later RabbitMQ without it is noticed.

import { connect, type Channel, type ChannelModel, type ConsumeMessage, type GetMessage } from 'amqplib'
import { Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { publishAll } from '../support/mosquitto.ts'
import { openRabbitBridge } from '../support/rabbit-bridges.ts'
import type { Engine } from './message-engine.ts'
import { hasRabbit, hasRabbitCluster, rabbitUser, startRabbit } from './rabbit-engine.ts'

async function linkTo(engine: Engine): Promise<ChannelModel> {
  const link = await connect(engine.urls[0]!.replace('://', '://guest:guest@'), { noDelay: true })
  link.on('error', () => undefined)
  onTestFinished(() => link.close().catch(() => undefined))
  return link
}

async function channelOf(engine: Engine): Promise<Channel> {
  const channel = await (await linkTo(engine)).createChannel()
  channel.on('error', () => undefined)
  return channel
}

/** Resolves when all are acknowledged. */
function publish(engine: Engine, topic: string, count: number): Promise<void> {
  const messages = Array.from({ length: count }, (_, index) => ({ topic, payload: String(index) }))
  return publishAll(engine.mqttUrls[0]!, messages, {
    protocolVersion: 4,
    clientId: `truck-of-${topic.replaceAll('/', '-')}`,
    ...rabbitUser,
  })
}

const quorum = { 'x-queue-type': 'quorum' }

const declare = (channel: Channel, queue: string, more: Record<string, unknown> = {}) =>
  channel.assertQueue(queue, { durable: true, arguments: { ...quorum, ...more } })

const lengthOf = async (channel: Channel, queue: string) => (await channel.checkQueue(queue)).messageCount

async function nextOf(channel: Channel, queue: string): Promise<GetMessage> {
  let message: GetMessage | false = false
  await eventually(async () => (message = await channel.get(queue)) !== false)
  return message as unknown as GetMessage
}

/** The queues that a consumer of all of them is active for. */
async function consumeAll(engine: Engine, queues: readonly string[], priorities: readonly number[] = []) {
  const channel = await channelOf(engine)
  await channel.prefetch(10)
  const active = new Set<string>()
  for (const [index, queue] of queues.entries())
    await channel.consume(
      queue,
      (message) => {
        active.add(queue)
        if (message !== null) channel.ack(message)
      },
      { priority: priorities[index] ?? 0 },
    )
  return active
}

const spread = ['spread.0', 'spread.1', 'spread.2', 'spread.3']

async function feedAll(engine: Engine, rounds: number): Promise<void> {
  const channel = await (await linkTo(engine)).createConfirmChannel()
  for (let round = 0; round < rounds; round += 1)
    for (const queue of spread) channel.sendToQueue(queue, Buffer.from('x'))
  await channel.waitForConfirms()
}

const versions = [
  { version: '3.10', isNewer: false, isThere: hasRabbit },
  { version: '4.0', isNewer: true, isThere: hasRabbitCluster },
]

describe.each(versions)('RabbitMQ $version', ({ isNewer, isThere }) => {
  let engine: Engine

  beforeAll(async () => {
    if (!isThere) return
    engine = await startRabbit({
      isNewer,
      // How often it looks for deliveries without an acknowledgement; 60 s by default.
      settings: ['channel_tick_interval 1000'],
      atEnd: afterAll,
    })
  })

  test.skipIf(!isThere)('acknowledges messages that no queue is bound for', async () => {
    const channel = await channelOf(engine)
    await declare(channel, 'unbound')
    await publish(engine, 'unbound/truck-1', 100)
    expect(await lengthOf(channel, 'unbound')).toBe(0)
    await channel.bindQueue('unbound', 'amq.topic', 'unbound.*')
    await publish(engine, 'unbound/truck-1', 100)
    await eventually(async () => (await lengthOf(channel, 'unbound')) === 100)
  })

  test.skipIf(!isThere)('drops the oldest acknowledged messages of a full queue by default', async () => {
    const channel = await channelOf(engine)
    await declare(channel, 'full', { 'x-max-length': 50 })
    await channel.bindQueue('full', 'amq.topic', 'full.*')
    await publish(engine, 'full/truck-1', 100)
    await eventually(async () => (await lengthOf(channel, 'full')) === 50)
    expect((await nextOf(channel, 'full')).content.toString()).toBe('50')
  })

  test.skipIf(!isThere)('deletes a message that was returned more often than delivery-limit', async () => {
    const channel = await channelOf(engine)
    await declare(channel, 'limited', { 'x-delivery-limit': 2 })
    channel.sendToQueue('limited', Buffer.from('x'))
    for (let round = 0; round < 3; round += 1) channel.nack(await nextOf(channel, 'limited'), false, true)
    await eventually(async () => (await lengthOf(channel, 'limited')) === 0)
    expect(await channel.get('limited')).toBe(false)
  })

  test.skipIf(!isThere)('tells a consumer neither the client id nor the user that published', async () => {
    const channel = await channelOf(engine)
    await declare(channel, 'anonymous')
    await channel.bindQueue('anonymous', 'amq.topic', 'anonymous.*')
    await publish(engine, 'anonymous/truck-1', 1)
    const { properties } = await nextOf(channel, 'anonymous')
    expect(JSON.stringify(properties)).not.toMatch(/truck-of|guest/)
  })

  test.skipIf(!isThere)(
    'makes the first consumer active for all queues with a single active consumer',
    async () => {
      const channel = await channelOf(engine)
      for (const queue of spread) await declare(channel, queue, { 'x-single-active-consumer': true })
      const first = await consumeAll(engine, spread)
      const second = await consumeAll(engine, spread)
      await feedAll(engine, 5)
      await eventually(() => first.size === 4)
      expect(second.size).toBe(0)
      for (const queue of spread) await channel.deleteQueue(queue)
    },
  )
})

describe.skipIf(!hasRabbitCluster)('RabbitMQ 4.0', () => {
  let engine: Engine

  beforeAll(async () => {
    engine = await startRabbit({ isNewer: true, settings: ['channel_tick_interval 1000'], atEnd: afterAll })
  })

  test('spreads the queues by the priorities of consumers', async () => {
    const channel = await channelOf(engine)
    for (const queue of spread) await declare(channel, queue, { 'x-single-active-consumer': true })
    const first = await consumeAll(engine, spread, [2, 2, 1, 1])
    await feedAll(engine, 1)
    await eventually(() => first.size === 4)
    const second = await consumeAll(engine, spread, [1, 1, 2, 2])
    await eventually(async () => {
      await feedAll(engine, 1)
      return second.size === 2
    })
    expect([...second].toSorted()).toEqual(['spread.2', 'spread.3'])
    for (const queue of spread) await channel.deleteQueue(queue)
  })

  test.each([
    { limit: 1, left: 0 },
    { limit: -1, left: 1 },
  ])(
    'closes the channel of a consumer that is late, and with delivery-limit $limit leaves $left messages',
    async ({ limit, left }) => {
      const channel = await channelOf(engine)
      const queue = `late.${limit}`
      await declare(channel, queue, { 'x-consumer-timeout': 1000, 'x-delivery-limit': limit })
      channel.sendToQueue(queue, Buffer.from('x'))
      await eventually(async () => (await lengthOf(channel, queue)) === 1)
      for (let round = 0; round < 2; round += 1)
        expect((await lateConsumer(engine, queue)).message).toMatch(/PRECONDITION.FAILED.*timed out/)
      await eventually(async () => (await lengthOf(channel, queue)) === left)
      await channel.deleteQueue(queue)
    },
  )

  test.each([
    { limit: -1, order: ['1', '2', '0'] },
    { limit: 1_000_000_000, order: ['0', '1', '2'] },
  ])(
    'delivers in the order $order after the first was returned, with delivery-limit $limit',
    async ({ limit, order }) => {
      const channel = await channelOf(engine)
      const queue = `returned.${limit}`
      await declare(channel, queue, { 'x-delivery-limit': limit })
      for (const text of ['0', '1', '2']) channel.sendToQueue(queue, Buffer.from(text))
      await eventually(async () => (await lengthOf(channel, queue)) === 3)
      channel.nack(await nextOf(channel, queue), false, true)
      await eventually(async () => (await lengthOf(channel, queue)) === 3)
      const texts: string[] = []
      for (const _ of order) texts.push((await nextOf(channel, queue)).content.toString())
      expect(texts).toEqual(order)
    },
  )

  test('delivers later messages first where a consumer with open messages is cancelled', async () => {
    const queue = 'cancelled'
    const first = await channelOf(engine)
    await declare(first, queue, { 'x-single-active-consumer': true, 'x-delivery-limit': 1000 })
    await first.prefetch(2)
    const open: ConsumeMessage[] = []
    const { consumerTag } = await first.consume(queue, (message) => open.push(message!))
    for (const text of ['0', '1', '2', '3']) first.sendToQueue(queue, Buffer.from(text))
    await eventually(() => open.length === 2)
    const second = await channelOf(engine)
    const texts: string[] = []
    await second.consume(queue, (message) => texts.push(message!.content.toString()))
    await first.cancel(consumerTag)
    await eventually(() => texts.length === 2)
    for (const message of open) first.nack(message, false, true)
    await eventually(() => texts.length === 4)
    expect(texts).toEqual(['2', '3', '0', '1'])
  })

  test('gets small frames late from amqplib, which leaves the algorithm of Nagle on; the gateway turns it off', async () => {
    const settings = vi.spyOn(Socket.prototype, 'setNoDelay')
    onTestFinished(() => settings.mockRestore())
    const link = await connect(engine.urls[0]!.replace('://', '://guest:guest@'))
    await link.close()
    expect(settings.mock.lastCall).toEqual([false])
    settings.mockClear()
    await using bridge = await openRabbitBridge({
      url: engine.urls[0],
      queue: { prefix: 'nagle', partitions: 2 },
    })
    await bridge.connected()
    expect(settings.mock.calls.length).toBeGreaterThan(2)
    expect(settings.mock.calls.filter(([isOn]) => isOn !== true)).toEqual([])
  })
})

/** Takes a message and acknowledges nothing; resolves with why its channel was closed. */
async function lateConsumer(engine: Engine, queue: string): Promise<Error> {
  const channel = await channelOf(engine)
  const closed = new Promise<Error>((resolve) => {
    channel.once('error', resolve)
  })
  await channel.consume(queue, () => undefined)
  return closed
}
