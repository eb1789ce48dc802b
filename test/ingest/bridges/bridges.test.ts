import { describe, expect, test } from 'vitest'
import type { IPublishPacket } from 'mqtt-packet'
import type { State } from '../../../src/domain/condition-state.ts'
import { bridgeOptions } from '../../../src/ingest/bridges/bridge-config.ts'
import type { BridgeOptions } from '../../../src/ingest/bridges/bridges.ts'
import type { IntakeMapper } from '../../../src/ingest/types.ts'
import { GatewayError } from '../../../src/std/gateway-error.ts'
import { eventually } from '../../support/eventually.ts'
import { openIngest, textOf, type IngestWorld } from '../../support/ingest-world.ts'
import { createMemoryIntakeSpool, type MemoryIntakeSpool } from '../../support/memory-intake-spool.ts'
import { openScriptedBroker, type BrokerScript, type ScriptedBroker } from '../../support/scripted-broker.ts'
import { parseMqttBridges } from '../../support/mqtt-bridges.ts'

type BridgeWorld = AsyncDisposable & {
  broker: ScriptedBroker
  spool: MemoryIntakeSpool
  world: IngestWorld
  eventsOf(kind: string): readonly Record<string, unknown>[]
  risks(): readonly State[]
}

type More = {
  script?: BrokerScript
  commits?: 'by hand' | 'auto'
  mapper?: IntakeMapper
  times?: Partial<BridgeOptions>
}

const shortTimes = { reconnectFirstMs: 20, pauseAfterMs: 50 }

async function openBridge(options: Record<string, unknown> = {}, more: More = {}): Promise<BridgeWorld> {
  const broker = await openScriptedBroker(more.script)
  const spool = createMemoryIntakeSpool({ commits: more.commits ?? 'by hand' })
  const url = `mqtt://127.0.0.1:${broker.port}`
  const parsed = parseMqttBridges([{ name: 'depot', url, topics: ['t/#'], client_id: 'gw', ...options }])
  const bridges = parsed.map((one) => ({ ...bridgeOptions(one), ...shortTimes, ...more.times }))
  const world = await openIngest(spool, { bridges, ...(more.mapper && { mapper: more.mapper }) })
  return {
    broker,
    spool,
    world,
    eventsOf: (kind) => world.events.filter((event) => event.kind === kind),
    risks: () => [...world.ingest.states()].filter(({ code }) => code === 'MESSAGE_SOURCE_AT_RISK'),
    async [Symbol.asyncDispose]() {
      await world[Symbol.asyncDispose]()
      await broker[Symbol.asyncDispose]()
    },
  }
}

const publish = (messageId: number, payload: string, more: Partial<IPublishPacket> = {}): IPublishPacket => ({
  cmd: 'publish',
  topic: 't/1',
  payload,
  qos: 1,
  dup: false,
  retain: false,
  messageId,
  ...more,
})

const writeFailed = new GatewayError('SPOOL_WRITE_FAILED', {
  what: 'It failed.',
  why: 'No.',
  act: 'Mend it.',
})

const numbers = (count: number) => Array.from({ length: count }, (_, index) => index + 1)

describe('acknowledgements of a bridge', () => {
  test('many messages are taken before the first is acknowledged; their PUBACKs leave in order, in one write', async () => {
    await using opened = await openBridge()
    const { broker, spool } = opened
    const link = await broker.connection(0)
    link.send(...numbers(500).map((id) => publish(id, `m${id}`)))
    await spool.ended(500)
    expect(link.ackWrites).toEqual([])
    spool.commit()
    await eventually(() => link.ackWrites.flat().length === 500)
    expect(link.ackWrites).toEqual([numbers(500)])
    expect(opened.world.ingest.counters()).toMatchObject({ received: 500, acked: 500, mapped: 500 })
    expect(opened.world.ingest.messageSources()).toMatchObject([
      { name: 'broker', received: 0 },
      { name: 'depot', received: 500, acked: 500, outstanding: 0, redelivered: 0 },
    ])
  })

  test('a message that could not be stored is not acknowledged; the broker delivers it again on the next connection', async () => {
    await using opened = await openBridge()
    const { broker, spool } = opened
    const link = await broker.connection(0)
    link.send(publish(1, 'one'), publish(2, 'two'))
    await spool.ended(2)
    spool.fail(writeFailed)
    await eventually(() => link.closed)
    expect(link.received.filter(({ cmd }) => cmd === 'puback')).toEqual([])
    const next = await broker.connection(1)
    next.send(publish(1, 'one', { dup: true }), publish(2, 'two', { dup: true }))
    await spool.ended(4)
    spool.commit()
    await eventually(() => next.ackWrites.flat().length === 2)
    expect(opened.eventsOf('message_source_lost')).toMatchObject([{ reason: 'not_stored' }])
    expect(opened.world.ingest.messageSources()[1]).toMatchObject({ redelivered: 2, acked: 2 })
  })

  test('an acknowledgement of an older connection is never sent on the next one', async () => {
    await using opened = await openBridge()
    const { broker, spool } = opened
    const link = await broker.connection(0)
    link.send(publish(7, 'one'))
    await spool.ended(1)
    link.destroy()
    const next = await broker.connection(1)
    next.send(publish(9, 'two'))
    await spool.ended(2)
    spool.commit()
    await eventually(() => next.ackWrites.length > 0)
    expect(next.ackWrites).toEqual([[9]])
    expect(spool.payloads.length).toBe(2)
  })
})

describe('retained messages of a kept session, with retained: once', () => {
  const script: BrokerScript = { connack: (_, index) => ({ sessionPresent: index > 0 }) }
  const retained = (id: number, text: string, dup: boolean) => publish(id, text, { retain: true, dup })

  /** What is stored of the second connection, after the first one ended without an acknowledgement. */
  async function storedOf(protocol: 5 | '3.1.1', packet: IPublishPacket) {
    await using opened = await openBridge({ retained: 'once', protocol }, { script })
    const { broker, spool } = opened
    const link = await broker.connection(0)
    link.send(retained(1, 'one', false))
    await spool.ended(1)
    spool.fail(writeFailed)
    const next = await broker.connection(1)
    next.send(packet, publish(9, 'live'))
    await spool.ended(3)
    spool.commit()
    return spool.payloads.map(textOf)
  }

  test.each([5, '3.1.1'] as const)(
    'by MQTT %s one that was not stored is taken when it comes again with DUP',
    async (protocol) => {
      expect(await storedOf(protocol, retained(1, 'one', true))).toEqual(['one', 'live'])
    },
  )

  test('are ignored when they come with the CONNACK of a kept session', async () => {
    const script: BrokerScript = {
      connack: () => ({ sessionPresent: true }),
      withConnack: () => [publish(1, 'kept', { retain: true }), publish(2, 'new')],
    }
    await using opened = await openBridge(
      { retained: 'once', protocol: '3.1.1' },
      { commits: 'auto', script },
    )
    const link = await opened.broker.connection(0)
    await eventually(() => link.ackWrites.flat().length === 2)
    expect(opened.spool.payloads.length).toBe(1)
  })

  test('by MQTT 5 one that waited at the broker is taken', async () => {
    expect(await storedOf(5, retained(2, 'two', false))).toEqual(['two', 'live'])
  })

  test('by MQTT 3.1.1 one without DUP is ignored: the broker sends it at each subscription', async () => {
    expect(await storedOf('3.1.1', retained(2, 'two', false))).toEqual(['live'])
  })
})

describe('room', () => {
  test('no more than `window` messages of a connection wait for their acknowledgement', async () => {
    await using opened = await openBridge({ window: 10 })
    const { broker, spool } = opened
    const link = await broker.connection(0)
    link.send(...numbers(25).map((id) => publish(id, `m${id}`)))
    await spool.ended(10)
    expect(spool.open).toBe(10)
    spool.commit()
    await spool.ended(20)
    spool.commit()
    await spool.ended(25)
    spool.commit()
    await eventually(() => link.ackWrites.flat().length === 25)
    expect(link.ackWrites.flat()).toEqual(numbers(25))
    expect(link.connect.properties?.receiveMaximum).toBe(10)
    const [embedded, bridge] = opened.world.ingest.messageSources()
    expect([embedded!.lastMessageAt, bridge!.lastMessageAt]).toEqual([null, expect.any(Number)])
  })

  test('while the spool is full it disconnects, and returns when there is room', async () => {
    await using opened = await openBridge()
    const { broker, spool } = opened
    const link = await broker.connection(0)
    spool.setHold('spool_full')
    link.send(publish(1, 'one'))
    await eventually(() => link.closed)
    expect(link.received.at(-1)).toMatchObject({ cmd: 'disconnect' })
    expect(spool.open).toBe(0)
    expect(opened.world.ingest.counters()).toMatchObject({ received: 0, held: 0 })
    expect([...opened.world.ingest.states()]).toMatchObject([{ code: 'MESSAGE_SOURCE_PAUSED' }])
    expect(opened.world.ingest.messageSources()[1]!.links).toMatchObject([{ state: 'paused' }])
    spool.setHold(null)
    const next = await broker.connection(1)
    next.send(publish(1, 'one', { dup: true }))
    await spool.ended(1)
    spool.commit()
    await eventually(() => next.ackWrites.length === 1)
    expect(opened.eventsOf('message_source_lost')).toEqual([])
    expect(opened.risks()).toEqual([...opened.world.ingest.states()])
  })

  test('it does not connect while the spool is full, says so, and connects when there is room', async () => {
    await using opened = await openBridge()
    const { broker, spool } = opened
    const link = await broker.connection(0)
    link.destroy()
    spool.setHold('spool_full')
    await eventually(() =>
      [...opened.world.ingest.states()].some(({ code }) => code === 'MESSAGE_SOURCE_PAUSED'),
    )
    expect(broker.connections.length).toBe(1)
    spool.setHold(null)
    await broker.connection(1)
  })

  test('a bridge whose dead letter has no room stops no other connection', async () => {
    await using opened = await openBridge({ share_group: 'g', connections: 2 })
    const { broker, spool } = opened
    const [one, other] = [await broker.connection(0), await broker.connection(1)]
    spool.setDeadLettersFull(true)
    one.send(publish(1, 'bad'), publish(2, 'behind'))
    await eventually(() => opened.world.ingest.counters().held === 2)
    other.send(publish(1, 'flows'))
    await spool.ended(1)
    spool.commit()
    await eventually(() => other.ackWrites.length === 1)
    expect(one.ackWrites).toEqual([])
    spool.setDeadLettersFull(false)
    await spool.ended(3)
    spool.commit()
    await eventually(() => one.ackWrites.flat().length === 2)
    expect(one.ackWrites.flat()).toEqual([1, 2])
    const ids = broker.connections.map(({ connect }) => connect.clientId)
    expect(new Set(ids)).toEqual(new Set(['gw-1', 'gw-2']))
    expect(one.received[0]).toMatchObject({ subscriptions: [{ topic: '$share/g/t/#', qos: 1 }] })
  })
})

describe('connections of a bridge', () => {
  const granting = (sessionPresent: boolean): BrokerScript => ({ connack: () => ({ sessionPresent }) })
  const reduced = { connack: () => ({ properties: { sessionExpiryInterval: 60 } }), granted: () => [0] }
  const formerFilters = new Map([['gw', ['t/#']]])

  test.each<[what: string, options: Record<string, unknown>, more: More, risks: readonly string[]]>([
    ['nothing', {}, {}, []],
    ['a clean session', { session: 'clean' }, {}, ['clean_session']],
    ['a short expiry', { session_expiry: '5m' }, {}, ['short_expiry']],
    ['a short expiry, which 3.1.1 does not have', { session_expiry: '5m', protocol: '3.1.1' }, {}, []],
    ['QoS 0', { qos: 0 }, {}, ['qos_0']],
    ['less than was asked for', {}, { script: reduced }, ['expiry_reduced', 'qos_0_granted']],
    ['a session lost meanwhile', {}, { script: granting(false), times: { formerFilters } }, ['session_lost']],
    ['a session kept meanwhile', {}, { script: granting(true), times: { formerFilters } }, []],
  ])('at the start a risk is reported of: %s', async (_what, options, more, risks) => {
    await using opened = await openBridge(options, more)
    await eventually(() => opened.eventsOf('message_source_connected').length === 1)
    const found = opened.risks().map((state) => ('risk' in state ? state.risk : ''))
    expect(found.toSorted()).toEqual(risks)
  })

  test('a refused subscription and a refused connection are reported with their reason, and tried again', async () => {
    let refused = 0
    const script: BrokerScript = {
      connack: (_, index) => (index === 0 ? { reasonCode: 135 } : {}),
      granted: (filters) => filters.map(() => (refused++ === 0 ? 135 : 1)),
    }
    await using opened = await openBridge({}, { script })
    await eventually(() => opened.eventsOf('message_source_connected').length === 1)
    expect(opened.eventsOf('message_source_lost')).toMatchObject([
      {
        reason: 'refused',
        detail: 'The user may not connect.',
        act: 'The bridge has no user name. Set `username` and `password` of the bridge.',
      },
      { reason: 'subscription_refused', detail: expect.stringContaining('t/#') },
    ])
  })

  test('one refused filter stops no other: it is a condition, and is asked for again until it is granted', async () => {
    let answers = 0
    const script: BrokerScript = {
      granted: (filters) => {
        answers += 1
        return filters.map((filter) => (filter === 'u/#' && answers < 4 ? 0x80 : 1))
      },
    }
    const times = { reconnectMaxMs: 50 }
    await using opened = await openBridge(
      { topics: ['t/#', 'u/#', 'v/#'] },
      { script, times, commits: 'auto' },
    )
    const link = await opened.broker.connection(0)
    link.send(publish(1, 'm1'))
    await eventually(() => link.ackWrites.flat().includes(1))
    expect(opened.risks()).toMatchObject([
      {
        risk: 'filter_refused',
        about: ['gw'],
        detail: expect.stringMatching(/refuses the subscription to "u\/#" \(code 128\)/),
        act: expect.stringContaining('topics'),
      },
    ])
    await eventually(() => opened.risks().length === 0)
    const asked = link.received.flatMap((packet) =>
      packet.cmd === 'subscribe' ? [packet.subscriptions.map(({ topic }) => topic)] : [],
    )
    expect(asked).toEqual([['t/#', 'u/#', 'v/#'], ['u/#'], ['u/#'], ['u/#']])
    expect(opened.eventsOf('message_source_lost')).toEqual([])
    expect(opened.broker.connections).toHaveLength(1)
  })

  test('a broker that does not answer the subscription is left, and tried again', async () => {
    const script: BrokerScript = { mute: true }
    await using opened = await openBridge({}, { script, times: { connectTimeoutMs: 100 } })
    await eventually(() => opened.broker.connections.length >= 2)
    expect(opened.eventsOf('message_source_lost')[0]).toMatchObject({
      detail: expect.stringMatching(/^The broker did not answer the subscription: /),
    })
  })

  test('more than 8 filters go in packets of 8, for brokers such as AWS IoT Core, and each answer counts', async () => {
    const topics = Array.from({ length: 12 }, (_, n) => `t/${n}/#`)
    const script: BrokerScript = {
      granted: (filters) => filters.map((filter) => (filter === 't/11/#' ? 0x87 : 1)),
    }
    await using opened = await openBridge({ topics }, { script })
    await eventually(() => opened.risks().length > 0)
    const packets = opened.broker.connections[0]!.received.filter((packet) => packet.cmd === 'subscribe')
    expect(packets.map(({ subscriptions }) => subscriptions.length)).toEqual([8, 4])
    expect(opened.risks()[0]).toMatchObject({
      detail: expect.stringContaining('t/11/#'),
    })
  })

  test('it subscribes again also where the broker kept the session: it may have forgotten the subscription', async () => {
    const script: BrokerScript = { connack: (_, index) => ({ sessionPresent: index > 0 }) }
    await using opened = await openBridge({}, { script })
    const link = await opened.broker.connection(0)
    link.destroy()
    const next = await opened.broker.connection(1)
    await eventually(() => next.received.some(({ cmd }) => cmd === 'subscribe'))
    expect(next.received[0]).toMatchObject({ subscriptions: [{ topic: 't/#', qos: 1, rh: 2 }] })
  })

  test('connections that break again and again are reported, as with a client id that another client has', async () => {
    const script: BrokerScript = { connack: () => ({ sessionPresent: true }) }
    await using opened = await openBridge({ protocol: '3.1.1' }, { script })
    const { risks } = opened
    for (const index of [0, 1, 2]) {
      await eventually(() => opened.eventsOf('message_source_connected').length === index + 1)
      expect(risks()).toEqual([])
      opened.broker.connections[index]!.destroy()
    }
    await eventually(() => risks().length === 1)
    expect(risks()).toMatchObject([
      { risk: 'short_connections', detail: expect.stringContaining('client id') },
    ])
  })

  test('a session that the broker lost is reported', async () => {
    await using opened = await openBridge()
    const link = await opened.broker.connection(0)
    link.destroy()
    await opened.broker.connection(1)
    await eventually(() => opened.risks().length === 1)
    expect(opened.risks()).toMatchObject([{ risk: 'session_lost' }])
  })

  test.each([
    ['malformed_packet', Buffer.from([0x36, 2, 0, 0])],
    ['packet_too_large', Buffer.from([0x90, 0xff, 0xff, 0xff, 0x7f])],
  ])('%s ends the connection', async (reason, bytes) => {
    await using opened = await openBridge()
    const link = await opened.broker.connection(0)
    link.sendBytes(bytes)
    await eventually(() => opened.eventsOf('message_source_lost').length === 1)
    expect(opened.eventsOf('message_source_lost')).toMatchObject([{ reason }])
  })

  test('a message that is too large becomes a dead letter, is acknowledged, and does not stop those behind it', async () => {
    await using opened = await openBridge({ max_packet_bytes: '1KiB' }, { commits: 'auto' })
    const link = await opened.broker.connection(0)
    link.send(publish(1, 'one'), publish(2, 'x'.repeat(200_000)), publish(3, 'three'))
    await eventually(() => link.ackWrites.flat().length === 3)
    expect(link.ackWrites.flat()).toEqual([1, 2, 3])
    expect(opened.world.ingest.counters()).toMatchObject({ received: 3, mapped: 2, dead: 1 })
    expect(opened.spool.deadLetters).toMatchObject([
      { reason: 'OVERSIZED', envelope: { topic: 't/1', bytes: '', from: 'depot' } },
    ])
    expect(opened.risks()).toMatchObject([
      {
        risk: 'oversized',
        detail: expect.stringMatching(/195\.3 KiB on "t\/1".+max_packet_bytes \(1\.0 KiB\)/),
      },
    ])
    expect(opened.eventsOf('message_source_lost')).toEqual([])
  })

  test('a topic that MQTT does not allow becomes a dead letter, and is never mapped', async () => {
    await using opened = await openBridge({}, { commits: 'auto' })
    const link = await opened.broker.connection(0)
    const topics = [Buffer.from('t/#'), Buffer.from('+'), Buffer.from('t/\0'), Buffer.from([0xff])]
    link.sendBytes(
      Buffer.concat(
        topics.map((topic, index) =>
          Buffer.concat([
            Buffer.from([0x32, topic.length + 6, 0, topic.length]),
            topic,
            Buffer.from([0, index + 1, 0, 0x78]),
          ]),
        ),
      ),
    )
    await eventually(() => link.ackWrites.flat().length === 4)
    expect(opened.world.ingest.counters()).toMatchObject({ received: 4, mapped: 0, dead: 4 })
    expect(opened.spool.deadLetters.map(({ reason }) => reason)).toEqual(topics.map(() => 'BAD_TOPIC'))
  })

  test('a spool that gets full before the subscription is answered is a pause, and no fault of the broker', async () => {
    let opened: BridgeWorld | null = null
    const script: BrokerScript = {
      // Messages of the session come before SUBACK, and are in its way.
      connack(_, index) {
        if (index > 0) return {}
        opened?.spool.setHold('spool_full')
        queueMicrotask(() => opened?.broker.connections[0]?.send(publish(1, 'one')))
        return { sessionPresent: true }
      },
    }
    await using made = await openBridge({}, { script, commits: 'auto', times: { connectTimeoutMs: 200 } })
    opened = made
    await eventually(() => made.world.ingest.messageSources()[1]!.links[0]!.state === 'paused')
    await eventually(() => made.broker.connections[0]!.closed)
    made.spool.setHold(null)
    await eventually(() => made.eventsOf('message_source_connected').length === 1)
    expect(made.eventsOf('message_source_lost')).toEqual([])
  })

  test('DISCONNECT of the broker ends the connection, also where it leaves the socket open', async () => {
    await using opened = await openBridge()
    const link = await opened.broker.connection(0)
    link.send({ cmd: 'disconnect', reasonCode: 0x8b, properties: { reasonString: 'see you at noon' } })
    await opened.broker.connection(1)
    expect(opened.eventsOf('message_source_lost')).toMatchObject([
      { reason: 'disconnected', detail: 'The broker shuts down. It says "see you at noon".' },
    ])
  })

  test.each<[string, Record<string, unknown>, BrokerScript, RegExp]>([
    [
      'shared subscriptions',
      { share_group: 'g' },
      { connack: () => ({ properties: { sharedSubscriptionAvailable: false } }) },
      /no shared subscriptions/,
    ],
    [
      'wildcards',
      {},
      { connack: () => ({ properties: { wildcardSubscriptionAvailable: false } }) },
      /"t\/#".+no wildcards/,
    ],
  ])('a broker without %s is left, and the reason is said', async (_name, options, script, detail) => {
    await using opened = await openBridge(options, { script })
    await eventually(() => opened.eventsOf('message_source_lost').length > 0)
    expect(opened.eventsOf('message_source_lost')[0]).toMatchObject({
      reason: 'not_supported',
      detail: expect.stringMatching(detail),
    })
    expect(opened.broker.connections[0]!.received.some(({ cmd }) => cmd === 'subscribe')).toBe(false)
  })

  test('a broker that has QoS 0 only and no subscription identifiers is used, and the risk is said', async () => {
    const properties = { maximumQoS: 0, subscriptionIdentifiersAvailable: false, retainAvailable: false }
    const script: BrokerScript = { connack: () => ({ properties }), granted: () => [0] }
    await using opened = await openBridge({}, { script, commits: 'auto' })
    const link = await opened.broker.connection(0)
    link.send(publish(0, 'one', { qos: 0 }))
    await eventually(() => opened.world.ingest.counters().mapped === 1)
    expect(opened.risks()).toMatchObject([{ risk: 'qos_0_granted' }])
    expect(opened.eventsOf('message_source_lost')).toEqual([])
  })

  test('a broker that restarts is back soon for a share group, and what it may have dropped is said', async () => {
    const kept = { connack: () => ({ sessionPresent: true }) }
    await using opened = await openBridge(
      { share_group: 'g' },
      { script: kept, times: { reconnectFirstMs: 100 } },
    )
    await eventually(() => opened.eventsOf('message_source_connected').length === 1)
    const { port } = opened.broker
    await opened.broker[Symbol.asyncDispose]()
    const refused = () =>
      opened.eventsOf('message_source_lost').filter(({ detail }) => String(detail).includes('ECONNREFUSED'))
    await eventually(() => refused().length >= 5)
    // Each try waits as shortly as the first one.
    expect(refused().every(({ retryInMs }) => Number(retryInMs) <= 100)).toBe(true)
    await using _again = await openScriptedBroker({ ...kept, port })
    await eventually(() => opened.eventsOf('message_source_connected').length === 2)
    expect(opened.risks()).toMatchObject([
      {
        risk: 'group_restarted',
        detail: expect.stringMatching(/^The broker was down\..+ in the \d+ ms before this connection$/),
      },
    ])
  })

  test('at a planned stop everything that was taken is acknowledged, then it disconnects', async () => {
    await using opened = await openBridge()
    const { broker, spool, world } = opened
    const link = await broker.connection(0)
    link.send(publish(1, 'one'), publish(2, 'two'))
    await spool.ended(2)
    await world.ingest.stopAccepting()
    link.send(publish(3, 'late'), { cmd: 'pingresp' })
    await new Promise(setImmediate)
    await new Promise(setImmediate)
    spool.commit()
    await world.ingest.close()
    await eventually(() => link.closed)
    expect(link.received.map(({ cmd }) => cmd)).toEqual(['subscribe', 'puback', 'puback', 'disconnect'])
    expect(world.ingest.counters().received).toBe(2)
    expect(opened.eventsOf('message_source_released')).toMatchObject([{ session: 'kept' }])
  })
})

describe('a member of a share group with leave_group_on_stop', () => {
  async function openMember(more: More = {}, topics = ['t/#']) {
    const opened = await openBridge({ topics, share_group: 'g', leave_group_on_stop: true }, more)
    const link = await opened.broker.connection(0)
    const { ingest } = opened.world
    const state = () => ingest.messageSources()[1]!.links[0]!.state
    await eventually(() => state() === 'connected')
    const isLeaving = () => eventually(() => link.received.some(({ cmd }) => cmd === 'unsubscribe'))
    /** Resolves with what it says of its session. */
    async function stop(): Promise<unknown> {
      await ingest.stopAccepting()
      await ingest.close()
      return opened.eventsOf('message_source_released').map(({ session }) => session)
    }
    return Object.assign(opened, { link, state, isLeaving, stop })
  }

  test('leaves it first, and takes what was on the way', async () => {
    await using member = await openMember({ commits: 'auto' })
    const stopped = member.stop()
    await member.isLeaving()
    member.link.send(publish(1, 'on the way'))
    expect(await stopped).toEqual(['left_group'])
    expect(member.link.ackWrites.flat()).toEqual([1])
  })

  test('waits longer where messages have no acknowledgement: the broker may have more behind its window', async () => {
    await using member = await openMember()
    const { link, spool } = member
    link.send(publish(1, 'one'))
    await spool.ended(1)
    const stopped = member.stop()
    await member.isLeaving()
    // A commit that takes longer than the quiet time (300 ms); then the broker sends the next one, at once.
    const committedAtMs = performance.now() + 400
    await eventually(() => performance.now() > committedAtMs)
    spool.commit()
    link.send(publish(2, 'two'))
    await spool.ended(2)
    spool.commit()
    expect(await stopped).toEqual(['left_group'])
    expect(link.ackWrites.flat()).toEqual([1, 2])
  })

  test.each([0, 11])('is still a member where the broker does not let go of filter %d of 12', async (n) => {
    const unsubscribed = (filter: string) => (filter === `$share/g/t/${n}/#` ? 0x87 : 0)
    const topics = Array.from({ length: 12 }, (_, index) => `t/${index}/#`)
    await using member = await openMember({ script: { unsubscribed } }, topics)
    expect(await member.stop()).toEqual(['kept'])
  })

  test('leaves the rest to its session where the spool is full', async () => {
    await using member = await openMember()
    member.spool.setHold('spool_full')
    expect(await member.stop()).toEqual(['left_with_rest'])
  })

  test('leaves it to the session where the connection ends meanwhile', async () => {
    await using member = await openMember()
    const stopped = member.stop()
    await member.isLeaving()
    member.link.destroy()
    expect([['kept'], ['left_with_rest']]).toContainEqual(await stopped)
  })

  test('has not left without a connection: its session is kept', async () => {
    await using member = await openMember({ times: { reconnectFirstMs: 60_000, reconnectMaxMs: 60_000 } })
    member.link.destroy()
    await eventually(() => member.state() === 'waiting')
    expect(await member.stop()).toEqual(['kept'])
  })
})
