// engine.ts: the message engine of the simulated world: a small RabbitMQ, as the gateway sees it. Its queues belong to the
// world, so they survive every end of the gateway.
//
//   ready ---> (one consumer of a queue gets messages) ---> unacknowledged ---> (acknowledged) gone
//     ^                                                        |
//     +---- redelivered: its channel or connection has ended --+
//
// What the gateway puts into a queue is stored at once, and confirmed some time later. Faults: a connection is cut, also
// just when something is stored, delivered or acknowledged; the engine stands still; it confirms late, or refuses.
//
// What no client may send is in `wrong`.

import type { Random } from '../../support/random.ts'
import type { Kernel } from '../machine/kernel.ts'
import type { Network, WorldEnd } from '../machine/network.ts'
import {
  contentFrames,
  frameBytesMax,
  framesIn,
  heartbeatFrame,
  methodFrame,
  methodName,
  protocolHeader,
  type Fields,
  type Frame,
  type Headers,
} from './amqp-frames.ts'

/** A message in a queue. */
export type Entry = {
  /** In the order of all. */
  id: number
  queue: string
  routingKey: string
  headers: Headers
  body: Buffer
  /** Monotonic. */
  storedMs: number
  /** Of what the gateway has put there: when its confirm arrived, and when the connection ended that it came on. */
  confirmedMs: number | null
  cutMs: number
  deliveries: number
}

/** Moments of a connection. */
export type Moment = 'store' | 'delivery' | 'acknowledgement'

export type EngineEvents = {
  delivered(entry: Entry): void
  /** Gone from its queue. */
  acknowledged(entries: readonly Entry[]): void
  /** By the gateway. */
  stored(entry: Entry): void
}

export type Engine = {
  /** Assigned by those who want to know. */
  events: EngineEvents
  wrong: string[]
  put(queue: string, message: { routingKey: string; body: Buffer }): Entry
  /** What is in the queue, in its order; also what is delivered and not acknowledged. */
  entriesOf(queue: string): readonly Entry[]
  /** Cuts a connection: one of them now, or the one that comes to the moment next. */
  cut(moment: Moment | null): void
  /** Until the function that it returns is called: it does nothing at all. */
  freeze(): () => void
  /** It refuses what the gateway puts into a queue. */
  refuse(): () => void
  /** Confirms take so long at most. */
  confirmMs: number
  counters: { connections: number; deliveries: number; redeliveries: number; stores: number; cuts: number }
}

type Options = { host: string; port: number; queues: readonly string[]; stampsTime: boolean }
type Deps = { kernel: Kernel; network: Network; random: Random }

type Queue = {
  name: string
  ready: Entry[]
  /** The first one is the active one. */
  consumers: Channel[]
  /** It goes with this connection. */
  owner: Connection | null
}

type Connection = {
  end: WorldEnd
  inbox: Buffer
  hasGreeted: boolean
  channels: Map<number, Channel>
  heardMs: number
}

type Channel = {
  number: number
  connection: Connection
  prefetch: number
  consumer: { queue: Queue; tag: string; noAck: boolean } | null
  deliveryTag: number
  unacknowledged: Map<number, Entry>
  /** Null: it asked for no confirms. */
  publishTag: number | null
  publishing: { exchange: string; routingKey: string; headers: Headers; size: number; parts: Buffer[] } | null
  toConfirm: { tag: number; entry: Entry }[]
  stored: Entry[]
  /** The engine has closed it: all but the answer to that is ignored. */
  isClosed: boolean
}

const heartbeatMs = 5000
const silentMs = 20_000
const version = '4.0.5'

/** Methods that have a fixed answer. */
const answers: Readonly<Record<string, [method: string, fields: Fields]>> = {
  ConnectionStartOk: ['ConnectionTune', { channelMax: 2047, frameMax: frameBytesMax, heartbeat: 10 }],
  ConnectionOpen: ['ConnectionOpenOk', { knownHosts: '' }],
  ChannelOpen: ['ChannelOpenOk', { channelId: Buffer.alloc(0) }],
  ExchangeDeclare: ['ExchangeDeclareOk', {}],
  ExchangeDelete: ['ExchangeDeleteOk', {}],
  ExchangeBind: ['ExchangeBindOk', {}],
  QueueBind: ['QueueBindOk', {}],
}

export function createEngine({ kernel, network, random }: Deps, options: Options): Engine {
  const queues = new Map<string, Queue>()
  const connections = new Set<Connection>()
  const wrong: string[] = []
  const thawed: (() => void)[] = []
  let lastId = 0
  let lastStampMs = 0
  let frozen = 0
  let refusing = 0
  let cutAt: Moment | null = null
  for (const name of options.queues) declare(name, null)
  network.world.serve(options.host, options.port, accept)
  const nobody = () => undefined
  const engine: Engine = {
    events: { delivered: nobody, acknowledged: nobody, stored: nobody },
    wrong,
    put(name, { routingKey, body }) {
      const queue = queues.get(name)!
      kernel.at(0, () => pump(queue))
      return store(queue, { routingKey, headers: {}, body })
    },
    entriesOf,
    cut(moment) {
      cutAt = moment
      if (moment === null && connections.size > 0) cutNow(random.pick([...connections]))
    },
    freeze() {
      frozen += 1
      return () => {
        frozen -= 1
        if (frozen === 0) thaw()
      }
    },
    refuse() {
      refusing += 1
      return () => void (refusing -= 1)
    },
    confirmMs: 20,
    counters: { connections: 0, deliveries: 0, redeliveries: 0, stores: 0, cuts: 0 },
  }
  return engine

  // ---- connections

  function accept(end: WorldEnd): void {
    const now = kernel.monotonicMs
    const connection: Connection = {
      end,
      inbox: Buffer.alloc(0),
      hasGreeted: false,
      channels: new Map(),
      heardMs: now,
    }
    connections.add(connection)
    engine.counters.connections += 1
    end.onData = (bytes) => {
      connection.heardMs = kernel.monotonicMs
      connection.inbox = Buffer.concat([connection.inbox, bytes])
      read(connection)
    }
    end.onClose = () => ended(connection)
    beat(connection)
  }

  function beat(connection: Connection): void {
    kernel.at(heartbeatMs, () => {
      if (!connections.has(connection)) return
      if (frozen === 0) {
        if (kernel.monotonicMs - connection.heardMs > silentMs) return connection.end.reset()
        if (connection.channels.size > 0) connection.end.write(heartbeatFrame)
      }
      beat(connection)
    })
  }

  function thaw(): void {
    for (const run of thawed.splice(0)) run()
    for (const connection of connections) read(connection)
    for (const queue of queues.values()) pump(queue)
  }

  function cutNow({ end }: Connection): void {
    engine.counters.cuts += 1
    end.reset()
  }

  /** Whether the connection is cut at this moment. */
  function isCutAt(moment: Moment, connection: Connection): boolean {
    if (cutAt !== moment) return false
    cutAt = null
    cutNow(connection)
    return true
  }

  function ended(connection: Connection): void {
    connections.delete(connection)
    for (const channel of connection.channels.values()) endChannel(channel)
    for (const { name, owner } of queues.values()) if (owner === connection) queues.delete(name)
  }

  /** What it had is ready again, where it was. */
  function endChannel(channel: Channel): void {
    const { consumer, unacknowledged } = channel
    channel.connection.channels.delete(channel.number)
    for (const entry of channel.stored) entry.cutMs = kernel.monotonicMs
    channel.consumer = null
    if (consumer === null) return
    const { queue } = consumer
    queue.consumers = queue.consumers.filter((one) => one !== channel)
    queue.ready = [...unacknowledged.values(), ...queue.ready].sort((one, other) => one.id - other.id)
    unacknowledged.clear()
    pump(queue)
  }

  function read(connection: Connection): void {
    if (frozen > 0) return
    if (!connection.hasGreeted) {
      if (connection.inbox.length < protocolHeader.length) return
      if (!connection.inbox.subarray(0, protocolHeader.length).equals(protocolHeader))
        return refused(connection)
      connection.hasGreeted = true
      connection.inbox = connection.inbox.subarray(protocolHeader.length)
      send(connection, 0, 'ConnectionStart', {
        versionMajor: 0,
        versionMinor: 9,
        serverProperties: { product: 'RabbitMQ', version },
        mechanisms: Buffer.from('PLAIN'),
        locales: Buffer.from('en_US'),
      })
    }
    const { frames, rest } = framesIn(connection.inbox)
    connection.inbox = Buffer.from(rest)
    for (const frame of frames) if (connections.has(connection)) received(connection, frame)
  }

  function refused(connection: Connection): void {
    wrong.push('a connection to the engine does not begin as AMQP 0-9-1 does')
    connection.end.reset()
  }

  function send(connection: Connection, channel: number, method: string, fields: Fields): void {
    connection.end.write(methodFrame(channel, method, fields))
  }

  // ---- methods

  function received(
    connection: Connection,
    { channel: number, id, fields = {}, size, content }: Frame,
  ): void {
    const channel = connection.channels.get(number)
    if (content !== undefined) return published(channel, content)
    if (id === undefined) return
    const method = methodName(id)
    if (method === 'BasicProperties') return published(channel, null, { fields, size: size ?? 0 })
    const answer = answers[method]
    if (method === 'ChannelOpen') connection.channels.set(number, newChannel(connection, number))
    else if (method === 'ConnectionClose') {
      send(connection, 0, 'ConnectionCloseOk', {})
      return connection.end.end()
    } else if (channel?.isClosed === true && method !== 'ChannelCloseOk' && method !== 'ChannelClose') return
    if (answer !== undefined) send(connection, number, ...answer)
    else if (channel !== undefined) ofChannel(channel, method, fields)
    else if (number > 0) wrong.push(`${method} on a channel of the engine that is not open`)
  }

  function newChannel(connection: Connection, number: number): Channel {
    return {
      number,
      connection,
      prefetch: 0,
      consumer: null,
      deliveryTag: 0,
      unacknowledged: new Map(),
      publishTag: null,
      publishing: null,
      toConfirm: [],
      stored: [],
      isClosed: false,
    }
  }

  function ofChannel(channel: Channel, method: string, fields: Fields): void {
    const reply = (name: string, given: Fields = {}) => send(channel.connection, channel.number, name, given)
    switch (method) {
      case 'ChannelClose':
        reply('ChannelCloseOk')
        return endChannel(channel)
      case 'ChannelCloseOk':
        return endChannel(channel)
      case 'ConfirmSelect':
        channel.publishTag = 0
        return reply('ConfirmSelectOk')
      case 'BasicQos':
        channel.prefetch = Number(fields['prefetchCount'])
        return reply('BasicQosOk')
      case 'QueueDeclare':
        return declared(channel, fields)
      case 'BasicConsume':
        return consumed(channel, fields)
      case 'BasicCancel':
        reply('BasicCancelOk', { consumerTag: fields['consumerTag'] })
        return
      case 'BasicPublish': {
        const { exchange, routingKey } = fields as { exchange: string; routingKey: string }
        channel.publishing = { exchange, routingKey, headers: {}, size: -1, parts: [] }
        return
      }
      case 'BasicAck':
        return acknowledged(channel, fields)
      case 'BasicNack':
      case 'BasicReject':
        return returned(channel, fields)
      default:
        wrong.push(`the engine does not know ${method}`)
    }
  }

  function closeChannel(channel: Channel, replyCode: number, replyText: string): void {
    channel.isClosed = true
    send(channel.connection, channel.number, 'ChannelClose', {
      replyCode,
      replyText,
      classId: 0,
      methodId: 0,
    })
  }

  // ---- queues

  function declare(name: string, owner: Connection | null): Queue {
    const queue: Queue = { name, ready: [], consumers: [], owner }
    queues.set(name, queue)
    return queue
  }

  function declared(channel: Channel, { queue: given, passive, exclusive }: Fields): void {
    const name = String(given)
    const known = queues.get(name)
    if (known === undefined && passive === true)
      return closeChannel(channel, 404, `NOT_FOUND - no queue '${name}'`)
    if (known?.owner !== undefined && known.owner !== null && known.owner !== channel.connection)
      return closeChannel(channel, 405, `RESOURCE_LOCKED - queue '${name}' is exclusive`)
    const queue = known ?? declare(name, exclusive === true ? channel.connection : null)
    send(channel.connection, channel.number, 'QueueDeclareOk', {
      queue: name,
      messageCount: queue.ready.length,
      consumerCount: queue.consumers.length,
    })
  }

  function consumed(channel: Channel, { queue: name, consumerTag, noAck }: Fields): void {
    const queue = queues.get(String(name))
    if (queue === undefined) return closeChannel(channel, 404, `NOT_FOUND - no queue '${String(name)}'`)
    channel.consumer = { queue, tag: String(consumerTag), noAck: noAck === true }
    queue.consumers.push(channel)
    send(channel.connection, channel.number, 'BasicConsumeOk', { consumerTag })
    pump(queue)
  }

  function store(queue: Queue, message: Pick<Entry, 'routingKey' | 'headers' | 'body'>): Entry {
    lastId += 1
    // No two of them have one time.
    lastStampMs = Math.max(lastStampMs + 1, Math.floor(kernel.trueMs))
    const stamp = options.stampsTime ? { timestamp_in_ms: lastStampMs } : {}
    const entry: Entry = {
      ...message,
      id: lastId,
      queue: queue.name,
      headers: { ...message.headers, ...stamp },
      storedMs: kernel.monotonicMs,
      confirmedMs: null,
      cutMs: Number.POSITIVE_INFINITY,
      deliveries: 0,
    }
    queue.ready.push(entry)
    return entry
  }

  function pump(queue: Queue): void {
    const [active] = queue.consumers
    if (frozen > 0 || active === undefined) return
    while (queue.ready.length > 0 && connections.has(active.connection)) {
      if (active.prefetch > 0 && active.unacknowledged.size >= active.prefetch) return
      deliver(active, queue.ready.shift()!)
    }
  }

  function deliver(channel: Channel, entry: Entry): void {
    const { consumer, connection, number } = channel
    const isRedelivered = entry.deliveries > 0
    entry.deliveries += 1
    engine.counters.deliveries += 1
    if (isRedelivered) engine.counters.redeliveries += 1
    channel.deliveryTag += 1
    if (consumer?.noAck !== true) channel.unacknowledged.set(channel.deliveryTag, entry)
    engine.events.delivered(entry)
    send(connection, number, 'BasicDeliver', {
      consumerTag: consumer?.tag ?? '',
      deliveryTag: channel.deliveryTag,
      redelivered: isRedelivered,
      exchange: '',
      routingKey: entry.routingKey,
    })
    connection.end.write(contentFrames(number, entry))
    // What was delivered before arrives.
    if (cutAt === 'delivery') {
      cutAt = null
      kernel.at(random.below(30), () => cutNow(connection))
    }
  }

  function entriesOf(name: string): readonly Entry[] {
    const queue = queues.get(name)
    if (queue === undefined) return []
    const delivered = queue.consumers.flatMap(({ unacknowledged }) => [...unacknowledged.values()])
    return [...delivered, ...queue.ready].sort((one, other) => one.id - other.id)
  }

  // ---- what the gateway says of deliveries

  /** Those that the tag means; a tag that is not open is a mistake of the client. */
  function taken(channel: Channel, { deliveryTag, multiple }: Fields): Entry[] {
    const tag = Number(deliveryTag)
    const { unacknowledged } = channel
    const tags = multiple === true ? [...unacknowledged.keys()].filter((one) => one <= tag) : [tag]
    const entries = tags.flatMap((one) => unacknowledged.get(one) ?? [])
    if (entries.length === 0) {
      wrong.push(`the delivery ${tag} was acknowledged, and is not open`)
      closeChannel(channel, 406, `PRECONDITION_FAILED - unknown delivery tag ${tag}`)
    }
    for (const one of tags) unacknowledged.delete(one)
    return entries
  }

  function acknowledged(channel: Channel, fields: Fields): void {
    // The acknowledgement is lost, and all of it comes again.
    if (isCutAt('acknowledgement', channel.connection)) return
    const entries = taken(channel, fields)
    if (entries.length === 0) return
    engine.events.acknowledged(entries)
    if (channel.consumer !== null) pump(channel.consumer.queue)
  }

  function returned(channel: Channel, fields: Fields): void {
    const entries = taken(channel, fields)
    const { queue } = channel.consumer ?? {}
    if (queue === undefined || fields['requeue'] !== true) return
    queue.ready = [...entries, ...queue.ready].sort((one, other) => one.id - other.id)
    pump(queue)
  }

  // ---- what the gateway puts into queues

  function published(
    channel: Channel | undefined,
    content: Buffer | null,
    header: { fields: Fields; size: number } | null = null,
  ): void {
    const { publishing } = channel ?? {}
    if (channel === undefined || publishing === null || publishing === undefined || channel.isClosed) return
    if (header !== null) {
      publishing.size = header.size
      publishing.headers = (header.fields['headers'] ?? {}) as Headers
    }
    if (content !== null) publishing.parts.push(Buffer.from(content))
    const body = Buffer.concat(publishing.parts)
    if (body.length < publishing.size) return
    channel.publishing = null
    routed(channel, { ...publishing, body })
  }

  function routed(
    channel: Channel,
    message: { exchange: string; routingKey: string; headers: Headers; body: Buffer },
  ): void {
    const { connection, number } = channel
    const { exchange, routingKey } = message
    const tag = channel.publishTag === null ? null : (channel.publishTag += 1)
    const queue = exchange === '' ? queues.get(routingKey) : undefined
    if (queue === undefined) {
      wrong.push(`the gateway puts a message into ${exchange} ${routingKey}, which is not there`)
      return
    }
    if (refusing > 0 && tag !== null) return send(connection, number, 'BasicNack', { deliveryTag: tag })
    const entry = store(queue, message)
    if (tag !== null) {
      engine.counters.stores += 1
      engine.events.stored(entry)
      channel.stored.push(entry)
      channel.toConfirm.push({ tag, entry })
      if (channel.toConfirm.length === 1) kernel.at(random.below(engine.confirmMs), () => confirm(channel))
    }
    pump(queue)
    isCutAt('store', connection)
  }

  function confirm(channel: Channel): void {
    const { connection, toConfirm, number } = channel
    if (frozen > 0) return void thawed.push(() => confirm(channel))
    const last = toConfirm.at(-1)
    if (last === undefined || !connections.has(connection)) return
    const entries = toConfirm.splice(0)
    const frame = methodFrame(number, 'BasicAck', { deliveryTag: last.tag, multiple: entries.length > 1 })
    connection.end.write(frame, () => {
      for (const { entry } of entries) entry.confirmedMs = kernel.monotonicMs
    })
  }
}
