// Bridges to a real RabbitMQ 3.10 of this machine, and 4.0 where test/engines/install-engines.sh has put it.

import type { Channel } from 'amqplib'
import { readFile, writeFile } from 'node:fs/promises'
import { Socket } from 'node:net'
import { join } from 'node:path'
import { connectAsync } from 'mqtt'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { GatewayError } from '../../../src/std/gateway-error.ts'
import type { Engine } from '../../engines/message-engine.ts'
import { hasRabbit, hasRabbitCluster, startRabbit, storedTimes } from '../../engines/rabbit-engine.ts'
import { eventually } from '../../support/eventually.ts'
import { manage, openClient, openRabbitBridge, type RabbitBridge } from '../../support/rabbit-bridges.ts'

const versions = [
  { version: '3.10', isNewer: false, isThere: hasRabbit },
  { version: '4.0', isNewer: true, isThere: hasRabbitCluster },
]
const containing = (text: string) => expect.stringContaining(text) as string
const longMs = 90_000

const numbers = (count: number, from = 0) => Array.from({ length: count }, (_, index) => String(from + index))

/** Each text to each topic, acknowledged by the server. */
async function publishEach(
  engine: Engine,
  topics: readonly string[],
  texts: readonly string[],
): Promise<void> {
  const client = await connectAsync(engine.mqttUrls[0]!, { protocolVersion: 4 })
  await Promise.all(
    texts.flatMap((text) => topics.map((topic) => client.publishAsync(topic, text, { qos: 1 }))),
  )
  await client.endAsync()
}

const depthOf = async (engine: Engine, queue: string) => {
  await using client = await openClient(engine)
  return (await client.channel.checkQueue(queue)).messageCount
}

const hasQueue = async (engine: Engine, queue: string) =>
  ((await manage(engine, 'GET', 'queues?columns=name')) as { name: string }[]).some(
    ({ name }) => name === queue,
  )

/** It is active for the queues that it had messages of, and for no other one. */
function hasFittingRoles(bridge: RabbitBridge): boolean {
  const { links, partitions } = bridge.status()
  const hadMessages = (queue: string) =>
    links.some(({ clientId, messages }) => clientId.endsWith(`/${queue}`) && messages > 0)
  return partitions.every(({ partition, role }) => (role === 'active') === hadMessages(partition))
}

const isConnected = (bridge: RabbitBridge) =>
  bridge.status().links.every(({ state }) => state === 'connected')

describe.each(versions)('RabbitMQ $version', ({ isNewer, isThere }) => {
  let engine: Engine
  const ends: (() => Promise<void>)[] = []
  beforeAll(async () => {
    if (!isThere) return
    const lines = isNewer ? [storedTimes] : []
    engine = await startRabbit({ isNewer, lines, atEnd: (end) => ends.push(end) })
    // RabbitMQ 4.0 does not find a queue again that was declared seconds before it is killed.
    await using early = await openRabbitBridge(fleet('killed'))
    await early.connected()
  }, 120_000)
  afterAll(async () => {
    for (const end of ends.reverse()) await end()
  })
  /** Options of a bridge whose queues and topics begin with `prefix`. */
  const fleet = (prefix: string, options: object = {}, queue: object = {}) => ({
    url: engine.urls[0],
    queue: { prefix, partitions: 3, ...queue },
    bind: { keys: [`${prefix}.#`] },
    ...options,
  })

  describe.skipIf(!isThere)('with a bridge', () => {
    test('gives every message once, in the order of its device, and has them acknowledged', async () => {
      await using bridge = await openRabbitBridge(fleet('once'))
      await bridge.connected()
      const topics = numbers(9).map((device) => `once/truck-${device}`)
      await publishEach(engine, topics, numbers(200))
      await eventually(() => bridge.spool.payloads.length === 9 * 200)
      expect(bridge.textsByTopic()).toEqual(Object.fromEntries(topics.map((topic) => [topic, numbers(200)])))
      await eventually(() => bridge.status().acked === 1800)
      expect(bridge.status().links.filter(({ messages }) => messages > 0).length).toBeGreaterThan(1)
      await eventually(() => bridge.status().lag === 0)
      expect(bridge.status()).toMatchObject({ outstanding: 0, redelivered: 0 })
      await eventually(() => hasFittingRoles(bridge))
    })

    test.each([
      ['purged', 'by a purge, a limit or an age', (name: string) => (one: Channel) => one.purgeQueue(name)],
      ['deleted', 'which was deleted', (name: string) => (one: Channel) => one.deleteQueue(name)],
    ])('messages of a queue that a person has %s are reported as lost', async (prefix, how, act) => {
      await using bridge = await openRabbitBridge(fleet(prefix, { window: 5 }, { partitions: 1 }), {
        commits: 'by hand',
      })
      await bridge.connected()
      await publishEach(engine, [`${prefix}/truck-1`], numbers(50))
      await eventually(() => bridge.status().lag === 45)
      await using client = await openClient(engine)
      await act(`${prefix}.0`)(client.channel)
      await eventually(() => bridge.risk() !== undefined)
      expect(bridge.risk()).toMatchObject({
        risk: 'engine_lost_messages',
        detail: expect.stringMatching(new RegExp(`at least 45 messages of ${prefix}\\.0 .*${how}`)) as string,
      })
      await bridge.connected()
      await publishEach(engine, [`${prefix}/truck-1`], ['afterwards'])
      await eventually(() => {
        bridge.spool.commit()
        return bridge.texts().includes('afterwards')
      })
      expect(bridge.status().lost).toBe(45)
    })

    test('what another gateway takes of a queue is not lost, whoever had the queue before', async () => {
      const options = (member: string) => fleet('moves', { member, window: 5 }, { partitions: 4 })
      const topics = numbers(12).map((device) => `moves/${device}`)
      await using first = await openRabbitBridge(options('gw-1'))
      await first.connected()
      const bridges = [first]
      for (const [round, member] of ['gw-2', 'gw-3', 'gw-2'].entries()) {
        await using other = await openRabbitBridge(options(member))
        bridges.push(other)
        const sent = publishEach(engine, topics, numbers(60, round * 60))
        await other.connected()
        await sent
        await eventually(async () => (await depthOf(engine, 'moves.0')) === 0)
      }
      await eventually(() => first.status().lag === 0)
      expect(bridges.map((bridge) => bridge.status().lost)).toEqual([0, 0, 0, 0])
    })

    test('sends small frames at once: amqplib would leave the algorithm of Nagle on', async () => {
      const settings = vi.spyOn(Socket.prototype, 'setNoDelay')
      onTestFinished(() => settings.mockRestore())
      await using bridge = await openRabbitBridge(fleet('nagle'))
      await bridge.connected()
      expect(settings.mock.calls.length).toBeGreaterThan(2)
      expect(settings.mock.calls.filter(([isOn]) => isOn !== true)).toEqual([])
    })

    test('keeps names of devices with dots, empty levels and UTF-8, and user properties of MQTT 5', async () => {
      const topics = ['names/{device}/gps', 'names/x/#']
      await using bridge = await openRabbitBridge(fleet('names', { topics }))
      await bridge.connected()
      const sent = ['names/dev.1.b/gps', 'names/x//a b/€/ü.', 'names/🚚/gps', 'names/x/a*b$']
      await publishEach(engine, sent.slice(0, 3), ['1'])
      await publishEach(engine, sent.slice(3), ['1'])
      await eventually(() => bridge.spool.payloads.length === sent.length)
      // In a rest (`#`) a dot cannot be told from a level.
      const received = [...sent.slice(0, 1), 'names/x//a b/€/ü/', ...sent.slice(2)]
      expect(Object.keys(bridge.textsByTopic()).toSorted()).toEqual(received.toSorted())
    })

    test('keeps all topics of a device in one queue and in order, where a gateway distributes', async () => {
      const topics = ['several/{device}/+']
      await using bridge = await openRabbitBridge(fleet('several', { topics, partition_by: 'device' }))
      await bridge.connected()
      const client = await connectAsync(engine.mqttUrls[0]!, { protocolVersion: 4 })
      const devices = numbers(8).map((device) => `dev.${device}`)
      const kinds = ['gps', 'can', 'doors']
      await Promise.all(
        numbers(300).flatMap((text, index) =>
          devices.map((device) =>
            client.publishAsync(`several/${device}/${kinds[index % 3]}`, text, { qos: 1 }),
          ),
        ),
      )
      await client.endAsync()
      await eventually(() => bridge.spool.payloads.length === 8 * 300)
      const byDevice = new Map<string, string[]>()
      for (const { json } of bridge.spool.payloads) {
        const { topic, text } = JSON.parse(json) as { topic: string; text: string }
        const device = topic.split('/')[1]!
        byDevice.set(device, [...(byDevice.get(device) ?? []), text])
      }
      expect(Object.fromEntries(byDevice)).toEqual(
        Object.fromEntries(devices.map((device) => [device, numbers(300)])),
      )
      expect(
        bridge
          .status()
          .links.slice(0, 3)
          .filter(({ messages }) => messages > 0).length,
      ).toBeGreaterThan(1)
      await eventually(() => bridge.status().lag === 0)
    })

    test.skipIf(!isNewer)(
      'keeps a device in one queue by a user property, and has the time of RabbitMQ',
      async () => {
        await using bridge = await openRabbitBridge(fleet('header', { partition_by: 'header:device' }))
        await bridge.connected()
        const client = await connectAsync(engine.mqttUrls[0]!, { protocolVersion: 5 })
        await Promise.all(
          numbers(60).map((text, index) => {
            const userProperties = { device: `truck-${index % 6}` }
            return client.publishAsync(`header/${index}`, text, { qos: 1, properties: { userProperties } })
          }),
        )
        await client.endAsync()
        await eventually(() => bridge.spool.payloads.length === 60)
        // Each device has ten messages, and is in one of the queues as a whole.
        const counts = bridge.status().links.map(({ messages }) => messages)
        expect(counts.every((count) => count % 10 === 0)).toBe(true)
        expect(Math.max(...counts)).toBeLessThan(60)
      },
    )

    test('delivers again what was not acknowledged, and says so', async () => {
      {
        await using first = await openRabbitBridge(fleet('again'), { commits: 'by hand' })
        await first.connected()
        await publishEach(engine, ['again/a', 'again/b'], numbers(50))
        await first.spool.ended(100)
      }
      await using second = await openRabbitBridge(fleet('again'))
      await eventually(() => second.spool.payloads.length === 100)
      expect(second.textsByTopic()).toEqual({ 'again/a': numbers(50), 'again/b': numbers(50) })
      expect(second.status().redelivered).toBe(100)
    })

    test('gives back once what it cannot store in the meantime, and takes it later', async () => {
      const options = fleet('held', {}, { partitions: 1 })
      await using bridge = await openRabbitBridge(options, { commits: 'by hand', pauseAfterMs: 100 })
      await bridge.connected()
      await publishEach(engine, ['held/a'], numbers(20))
      await bridge.spool.ended(20)
      bridge.spool.setHold('spool_full')
      await eventually(() => bridge.status().links[0]!.state === 'paused')
      await eventually(() => bridge.status().links[0]!.isPausedLong)
      await publishEach(engine, ['held/a'], numbers(20, 20))
      await eventually(async () => (await depthOf(engine, 'held.0')) === 40)
      await using client = await openClient(engine)
      const counts: unknown[] = []
      await client.channel.prefetch(100)
      const { consumerTag } = await client.channel.consume('held.0', (one) => {
        counts.push(one!.properties.headers?.['x-delivery-count'] ?? 0)
      })
      await eventually(() => counts.length === 40)
      expect(counts).toEqual([...numbers(20).map(() => 1), ...numbers(20).map(() => 0)])
      await client.channel.cancel(consumerTag)
      client.channel.nackAll(true)
      bridge.spool.setHold(null)
      await bridge.connected()
      // Those of the first connection were taken, and their acknowledgement was not given.
      await bridge.spool.ended(60)
      bridge.spool.commit()
      await eventually(async () => (await depthOf(engine, 'held.0')) === 0)
    })

    test('takes a message again whose write failed', async () => {
      await using bridge = await openRabbitBridge(fleet('failed', {}, { partitions: 1 }), {
        commits: 'by hand',
      })
      await bridge.connected()
      await publishEach(engine, ['failed/a'], numbers(5))
      await bridge.spool.ended(5)
      bridge.spool.fail(new GatewayError('SPOOL_WRITE_FAILED', { what: 'x', why: 'x', act: 'x' }))
      await bridge.spool.ended(10)
      expect(bridge.eventOf('message_source_lost')).toMatchObject({ reason: 'not_stored' })
      bridge.spool.commit()
      expect(bridge.texts()).toEqual(numbers(5))
      await eventually(async () => (await depthOf(engine, 'failed.0')) === 0)
    })

    test('keeps an oversized message as a dead letter, and goes on', async () => {
      const options = fleet('large', { max_message_bytes: '1KiB' }, { partitions: 1 })
      await using bridge = await openRabbitBridge(options)
      await bridge.connected()
      await publishEach(engine, ['large/a'], ['x'.repeat(2000), 'y'.repeat(200_000), 'small'])
      await eventually(() => bridge.spool.payloads.length === 1)
      expect(bridge.spool.deadLetters).toMatchObject([
        { detail: containing('It is kept whole.') },
        { detail: containing('Its bytes are lost. It begins with "yyy') },
      ])
    })

    test('says at its start whether RabbitMQ knows when it got a message, and what it cannot see', async () => {
      await using bridge = await openRabbitBridge(fleet('times'))
      await bridge.connected()
      await publishEach(engine, ['times/a'], ['1'])
      const isLimited = () => bridge.eventOf('message_source_limited')?.['limit'] === 'no_stored_time'
      await eventually(() => bridge.spool.payloads.length === 1 && (isNewer || isLimited()))
      expect(isLimited()).toBe(!isNewer)
      await using other = await openRabbitBridge(fleet('times', { provision: false, member: 'gw-2' }))
      await other.connected()
      await eventually(() => other.eventOf('message_source_limited') !== undefined)
      expect(other.eventOf('message_source_limited')).toMatchObject({ limit: 'bindings_unseen' })
    })

    test('shares the queues with another gateway, which takes all when the first is gone', async () => {
      const options = (member: string) => fleet('shared', { member }, { partitions: 8 })
      const topics = numbers(40).map((device) => `shared/${device}`)
      await using first = await openRabbitBridge(options('gw-1'))
      await first.connected()
      await publishEach(engine, topics, numbers(20))
      await eventually(() => first.spool.payloads.length === 800)
      {
        await using second = await openRabbitBridge(options('gw-2'))
        await second.connected()
        await publishEach(engine, topics, numbers(20, 20))
        await eventually(() => first.spool.payloads.length + second.spool.payloads.length === 1600)
        const shared = second.spool.payloads.length
        // RabbitMQ 3.10 leaves the queues with their first consumer.
        expect(shared > 0).toBe(isNewer)
        for (const [topic, texts] of Object.entries(second.textsByTopic()))
          expect([...first.textsByTopic()[topic]!, ...texts]).toEqual(numbers(40))
        await eventually(() => hasFittingRoles(second) && hasFittingRoles(first))
        await first.world[Symbol.asyncDispose]()
        await publishEach(engine, topics, numbers(20, 40))
        await eventually(() => second.spool.payloads.length === shared + 800)
      }
    })

    test('reports a queue with other properties, and takes from it all the same', async () => {
      await using client = await openClient(engine)
      await client.channel.assertQueue('differs.1', { arguments: { 'x-queue-type': 'quorum' } })
      await using bridge = await openRabbitBridge(fleet('differs'))
      await bridge.connected()
      await eventually(() => bridge.risk() !== undefined)
      expect(bridge.risk()).toMatchObject({
        risk: 'queue_differs',
        detail: containing("for queue 'differs.1'"),
      })
      await publishEach(
        engine,
        numbers(30).map((device) => `differs/${device}`),
        ['1'],
      )
      await eventually(() => bridge.spool.payloads.length === 30)
    })

    test('without provision says which queue is missing and how to create it, and begins when it is there', async () => {
      await using bridge = await openRabbitBridge(fleet('absent', { provision: false }, { partitions: 1 }), {
        reconnectMaxMs: 1000,
      })
      await eventually(() => bridge.eventOf('message_source_lost') !== undefined)
      expect(bridge.eventOf('message_source_lost')).toMatchObject({
        reason: 'queue_missing',
        detail: containing('"absent.0"'),
      })
      await eventually(() => bridge.risk() !== undefined)
      expect(bridge.risk()).toMatchObject({
        risk: 'queue_missing',
        act: containing('rabbitmqadmin declare queue name=absent.0'),
      })
      await using declaring = await openRabbitBridge(fleet('absent', { member: 'gw-2' }, { partitions: 1 }))
      await declaring.connected()
      await bridge.connected()
    })

    test('says that queues of a larger number of partitions have messages, until they are gone', async () => {
      {
        await using more = await openRabbitBridge(fleet('fewer', {}, { partitions: 5 }))
        await more.connected()
      }
      const topics = numbers(40).map((device) => `fewer/truck-${device}`)
      await publishEach(engine, topics, ['1'])
      await using bridge = await openRabbitBridge(fleet('fewer'))
      await bridge.connected()
      await eventually(() => bridge.risk() !== undefined)
      const left = (await depthOf(engine, 'fewer.3')) + (await depthOf(engine, 'fewer.4'))
      expect(left).toBeGreaterThan(0)
      expect(bridge.risk()).toMatchObject({
        risk: 'partition_left',
        detail: `RabbitMQ has fewer.3 to fewer.4, too. With partitions: 3 no gateway takes the ${left} messages there`,
        act: expect.stringMatching(/the same `queue\.partitions`/) as string,
      })
      await eventually(() => bridge.spool.payloads.length === 40 - left)
      await using all = await openRabbitBridge(fleet('fewer', { member: 'gw-2' }, { partitions: 5 }))
      await eventually(() => bridge.spool.payloads.length + all.spool.payloads.length === 40)
    })

    test('two gateways with one name: the second says so, no message comes twice, and it ends with the first', async () => {
      const soon = { nameTakenAfterMs: 300 }
      await using first = await openRabbitBridge(fleet('twice'), soon)
      await first.connected()
      await eventually(() => hasQueue(engine, 'twice.member.gw-1'))
      await using second = await openRabbitBridge(fleet('twice'), soon)
      await second.connected()
      await eventually(() => second.risk() !== undefined)
      expect(second.risk()).toMatchObject({
        risk: 'member_twice',
        clientId: 'gw-1',
        detail: expect.stringMatching(/^Another gateway takes part as gw-1\. /) as string,
      })
      expect(first.risk()).toBeUndefined()
      const topics = numbers(9).map((device) => `twice/truck-${device}`)
      await publishEach(engine, topics, numbers(50))
      const both = () => [...first.spool.payloads, ...second.spool.payloads]
      await eventually(() => both().length >= 9 * 50)
      expect(new Set(both().map(({ json }) => json)).size).toBe(9 * 50)
      await first.world.ingest.close()
      await eventually(() => second.risk() === undefined)
      await publishEach(engine, topics, ['last'])
      await eventually(() => both().length >= 9 * 51)
      expect(both().length).toBe(9 * 51)
    })

    test(
      'a name that RabbitMQ has of a lost connection is waited for, while messages come',
      async () => {
        const name = 'waited.member.gw-1'
        const holder = await openClient(engine)
        await holder.channel.assertQueue(name, { exclusive: true, durable: false })
        // Refused at once, and tried again after 8 s.
        await using bridge = await openRabbitBridge(fleet('waited'), { nameTakenAfterMs: 24_000 })
        await bridge.connected()
        await publishEach(engine, ['waited/a'], numbers(10))
        await eventually(() => bridge.spool.payloads.length === 10)
        await holder[Symbol.asyncDispose]()
        await eventually(async () => !(await hasQueue(engine, name)))
        await eventually(() => hasQueue(engine, name))
        expect(bridge.risk()).toBeUndefined()
        expect(bridge.eventOf('message_source_lost')).toBeUndefined()
      },
      longMs,
    )

    test('takes messages where the user may not declare the queue of its name', async () => {
      {
        await using owner = await openRabbitBridge(fleet('unnamed', { member: 'gw-0' }))
        await owner.connected()
      }
      await manage(engine, 'PUT', 'users/taker', { password: 'pw', tags: '' })
      await manage(engine, 'PUT', 'permissions/%2F/taker', { configure: '^$', write: '^$', read: '^unnamed' })
      const options = fleet('unnamed', { username: 'taker', password: 'pw', provision: false })
      await using first = await openRabbitBridge(options, { nameTakenAfterMs: 30 })
      await using second = await openRabbitBridge(options, { nameTakenAfterMs: 30 })
      await first.connected()
      await second.connected()
      await publishEach(engine, ['unnamed/a'], numbers(10))
      await eventually(() => first.spool.payloads.length + second.spool.payloads.length === 10)
      const risks = [first, second].flatMap(({ world }) =>
        [...world.ingest.states()].filter(({ code }) => code === 'MESSAGE_SOURCE_AT_RISK'),
      )
      expect(risks).not.toContainEqual(expect.objectContaining({ risk: 'member_twice' }))
    })

    test('says what the user may not do', async () => {
      await manage(engine, 'PUT', 'users/reader', { password: 'pw', tags: '' })
      await using none = await openRabbitBridge(fleet('rights', { username: 'reader', password: 'pw' }))
      await eventually(() => none.eventOf('message_source_lost') !== undefined)
      expect(none.eventOf('message_source_lost')).toMatchObject({
        reason: 'vhost_refused',
        act: containing("rabbitmqctl set_permissions -p '/' 'reader' '^"),
      })
      await manage(engine, 'PUT', 'permissions/%2F/reader', { configure: '^$', write: '^$', read: '^rights' })
      await using bridge = await openRabbitBridge(fleet('rights', { username: 'reader', password: 'pw' }))
      await eventually(() => bridge.risk() !== undefined)
      expect(bridge.risk()).toMatchObject({ risk: 'not_declared' })
      await using wrong = await openRabbitBridge(fleet('rights', { username: 'reader', password: 'no' }))
      await eventually(() => wrong.eventOf('message_source_lost') !== undefined)
      expect(wrong.eventOf('message_source_lost')).toMatchObject({ reason: 'refused' })
      await using nowhere = await openRabbitBridge(fleet('rights', { vhost: '/no where%' }))
      await eventually(() => nowhere.eventOf('message_source_lost') !== undefined)
      expect(nowhere.eventOf('message_source_lost')).toMatchObject({ reason: 'vhost_refused' })
    })

    test(
      'goes on up to a message that AMQP cannot send; the others do not wait, and a policy removes it',
      async () => {
        const options = fleet('poison', {}, { partitions: 1 })
        await using other = await openRabbitBridge(fleet('healthy'))
        await using bridge = await openRabbitBridge(options, { reconnectMaxMs: 1000 })
        await bridge.connected()
        await other.connected()
        const device = await connectAsync(engine.mqttUrls[0]!, { protocolVersion: 4 })
        for (const text of numbers(30)) await device.publishAsync('poison/a', text, { qos: 1 })
        await device.publishAsync(`poison/${'x'.repeat(300)}`, 'long', { qos: 1 })
        for (const text of numbers(30, 30)) await device.publishAsync('poison/a', text, { qos: 1 })
        await device.endAsync()
        await eventually(() => bridge.eventOf('message_source_lost')?.['reason'] === 'undeliverable_message')
        await eventually(() => bridge.spool.payloads.length === 30)
        await publishEach(engine, ['healthy/a'], numbers(10))
        await eventually(() => other.spool.payloads.length === 10)
        expect(isConnected(other)).toBe(true)
        await manage(engine, 'PUT', 'policies/%2F/move', {
          pattern: '^poison\\.0$',
          definition: { 'delivery-limit': 3 },
          'apply-to': 'queues',
        })
        await eventually(() => bridge.spool.payloads.length === 60)
        expect(bridge.texts()).toEqual(numbers(60))
        await manage(engine, 'DELETE', 'policies/%2F/move')
        await eventually(async () => (await depthOf(engine, 'poison.dead')) === 1)
      },
      longMs,
    )

    test(
      'an alarm of RabbitMQ, which takes nothing of the devices then, is a condition until it is over',
      async () => {
        const alarmed = await startRabbit({ isNewer })
        const config = join(alarmed.folder, alarmed.nodes[0]!.name, 'rabbitmq.conf')
        const text = await readFile(config, 'utf8')
        const options = { url: alarmed.urls[0], queue: { prefix: 'alarm', partitions: 1 } }
        await using bridge = await openRabbitBridge(options, { probeEveryMs: 200, reconnectMaxMs: 500 })
        await bridge.connected()
        const alarm = () => [...bridge.world.ingest.states()].find(({ code }) => code === 'ENGINE_BLOCKED')
        expect(alarm()).toBeUndefined()
        // It is not ready: with an alarm it takes no client of MQTT.
        await alarmed.stop(0)
        await writeFile(config, `${text}vm_memory_high_watermark.absolute = 1MB\n`)
        alarmed.start(0)
        await eventually(() => alarm() !== undefined)
        expect(alarm()).toMatchObject({ messageSource: 'rabbit', reason: containing('memory') })
        // The queues are taken from meanwhile.
        await bridge.connected()
        await alarmed.stop(0)
        await writeFile(config, text)
        await alarmed.restart(0)
        await bridge.connected()
        await eventually(() => hasQueue(alarmed, 'alarm.member.gw-1'))
        expect(alarm()).toBeUndefined()
        await publishEach(alarmed, ['t/a'], ['1'])
        await eventually(() => bridge.spool.payloads.length === 1)
      },
      2 * longMs,
    )

    // The last one: it kills the server.
    test(
      'has every acknowledged message after the server was killed and came back',
      async () => {
        await using bridge = await openRabbitBridge(fleet('killed'), { reconnectMaxMs: 1000 })
        await bridge.connected()
        const topics = numbers(6).map((device) => `killed/${device}`)
        await publishEach(engine, topics, numbers(50))
        await engine.killAll()
        await eventually(() => bridge.status().links.every(({ state }) => state !== 'connected'))
        engine.startAll()
        await engine.ready()
        await bridge.connected()
        await publishEach(engine, topics, numbers(50, 50))
        await eventually(() => Object.values(bridge.textsByTopic()).flat().length >= 600)
        for (const topic of topics) expect([...new Set(bridge.textsByTopic()[topic])]).toEqual(numbers(100))
        await eventually(() => bridge.status().lag === 0)
      },
      longMs,
    )
  })
})
