// Bridges over real sockets to a broker whose answers the test writes, and a spool whose commits it makes.

import type { Packet } from 'mqtt-packet'
import { expect, onTestFinished } from 'vitest'
import type { State } from '../../../src/domain/condition-state.ts'
import type { HoldReason } from '../../../src/domain/event.ts'
import { bridgeOptions } from '../../../src/ingest/bridges/bridge-config.ts'
import type { BridgeOptions } from '../../../src/ingest/bridges/bridges.ts'
import { GatewayError } from '../../../src/std/gateway-error.ts'
import { eventually } from '../../support/eventually.ts'
import { openIngest, textOf, type IngestWorld } from '../../support/ingest-world.ts'
import { createMemoryIntakeSpool, type MemoryIntakeSpool } from '../../support/memory-intake-spool.ts'
import { parseMqttBridges } from '../../support/mqtt-bridges.ts'
import {
  openScriptedBroker,
  type BrokerConnection,
  type BrokerScript,
  type ScriptedBroker,
} from '../../support/scripted-broker.ts'
import { stepCases } from '../../support/step-cases.ts'

/** A packet, or `[id, payload]` of a PUBLISH; `id` is its packet identifier. */
type PacketText = [id: number, payload: string] | ({ id?: number; cmd?: string; payload?: string } & object)

type BrokerText = {
  /** `later`: from the second connection on. */
  sessionPresent?: boolean | 'later'
  /** Of the first connection. */
  connackCode?: number
  properties?: object
  withConnack?: PacketText[]
  /** The code for each filter, or for the first ones asked for; any other filter gets what is asked for. */
  granted?: number | { filter: string; code: number; times?: number }
  keepsFilter?: string
  mute?: boolean
  /** Before the CONNACK of the first connection the spool is full, and behind it comes a message. */
  fillsSpool?: boolean
}

type Given =
  | {
      bridge?: Record<string, unknown>
      broker?: BrokerText
      commits?: 'auto' | 'by hand'
      times?: Partial<BridgeOptions>
      formerFilters?: Record<string, string[]>
      /** Of the topics t/0/# and so on. */
      topics?: number
      /** What `risksOfGiven` expects. */
      risks?: string[]
    }
  | undefined

type One = {
  broker: ScriptedBroker
  script: BrokerScript
  spool: MemoryIntakeSpool
  world: IngestWorld
  /** That the steps are about. */
  link: BrokerConnection
  stopped: Promise<void> | null
}

const writeFailed = new GatewayError('SPOOL_WRITE_FAILED', {
  what: 'It failed.',
  why: 'No.',
  act: 'Mend it.',
})

const numbers = (count: number) => Array.from({ length: count }, (_, index) => index + 1)

function packetOf(text: PacketText): Packet {
  const { id, ...more } = Array.isArray(text) ? { id: text[0], payload: text[1] } : text
  if ('cmd' in more && more.cmd !== undefined) return more as Packet
  const publish = { cmd: 'publish', topic: 't/1', qos: 1, dup: false, retain: false, messageId: id } as const
  return { ...publish, payload: '', ...more } as Packet
}

function scriptOf(one: One, text: BrokerText): BrokerScript {
  const { sessionPresent = false, connackCode, properties, granted, keepsFilter, fillsSpool } = text
  let refused = 0
  function grantedOf(filter: string): number {
    if (granted === undefined) return 1
    if (typeof granted === 'number') return granted
    if (granted.filter !== filter || refused >= (granted.times ?? Infinity)) return 1
    refused += 1
    return granted.code
  }
  return {
    connack(_, index) {
      if (fillsSpool === true && index === 0) {
        one.spool.setHold('spool_full')
        queueMicrotask(() => one.broker.connections[0]?.send(packetOf([1, 'one'])))
        return { sessionPresent: true }
      }
      return {
        sessionPresent: sessionPresent === 'later' ? index > 0 : sessionPresent,
        ...(connackCode !== undefined && index === 0 && { reasonCode: connackCode }),
        ...(properties !== undefined && { properties }),
      }
    },
    ...(text.withConnack && { withConnack: () => text.withConnack!.map(packetOf) }),
    granted: (filters) => filters.map(grantedOf),
    ...(keepsFilter !== undefined && {
      unsubscribed: (filter: string) => (filter === keepsFilter ? 0x87 : 0),
    }),
    ...(text.mute === true && { mute: true }),
  }
}

async function start(given: Given = {}): Promise<One> {
  const one = { stopped: null } as unknown as One
  const { bridge = {}, commits = 'by hand', times = {}, formerFilters, topics } = given
  one.script = scriptOf(one, given.broker ?? {})
  one.broker = await openScriptedBroker(one.script)
  onTestFinished(() => one.broker[Symbol.asyncDispose]())
  one.spool = createMemoryIntakeSpool({ commits })
  const url = `mqtt://127.0.0.1:${one.broker.port}`
  const all = topics === undefined ? ['t/#'] : Array.from({ length: topics }, (_, n) => `t/${n}/#`)
  const [parsed] = parseMqttBridges([{ name: 'depot', url, topics: all, client_id: 'gw', ...bridge }])
  const former = formerFilters && { formerFilters: new Map(Object.entries(formerFilters)) }
  const options = { ...bridgeOptions(parsed!), reconnectFirstMs: 20, pauseAfterMs: 50, ...times, ...former }
  one.world = await openIngest(one.spool, { bridges: [options] })
  onTestFinished(() => one.world[Symbol.asyncDispose]())
  return one
}

const statesOf = ({ world }: One) => [...world.ingest.states()]
const risksOf = (one: One): State[] => statesOf(one).filter(({ code }) => code === 'MESSAGE_SOURCE_AT_RISK')
const riskNames = (one: One) =>
  risksOf(one)
    .map((state) => ('risk' in state ? state.risk : ''))
    .toSorted()
const eventsOf = ({ world }: One, kind: string) => world.events.filter((event) => event.kind === kind)
const stateOf = ({ world }: One) => world.ingest.messageSources()[1]!.links[0]!.state

stepCases(import.meta.filename, start, {
  /** The connection of this number; the steps are about it from now on. */
  link: async (one: One, index: number) => void (one.link = await one.broker.connection(index)),
  /** One that need not have subscribed. */
  linkNow: async (one: One, index: number) => {
    await eventually(() => one.broker.connections.length > index)
    one.link = one.broker.connections[index]!
  },
  send: ({ link }: One, packets: PacketText[]) => link.send(...packets.map(packetOf)),
  /** Messages with the identifiers 1 and so on. */
  sendMany: ({ link }: One, count: number) =>
    link.send(...numbers(count).map((id) => packetOf([id, `m${id}`]))),
  /** The second of three messages. */
  sendLarge: ({ link }: One, bytes: number) =>
    link.send(packetOf([1, 'one']), packetOf([2, 'x'.repeat(bytes)]), packetOf([3, 'three'])),
  sendBytes: ({ link }: One, hex: string) => link.sendBytes(Buffer.from(hex.replaceAll(' ', ''), 'hex')),
  destroy: ({ link }: One) => link.destroy(),
  ended: ({ spool }: One, count: number) => spool.ended(count),
  commit: ({ spool }: One) => spool.commit(),
  /** A commit that takes longer than the quiet time of a stop (300 ms). */
  commitLate: async ({ spool }: One) => {
    const atMs = performance.now() + 400
    await eventually(() => performance.now() > atMs)
    spool.commit()
  },
  failWrite: ({ spool }: One) => spool.fail(writeFailed),
  hold: ({ spool }: One, reason: HoldReason | null) => spool.setHold(reason),
  deadLettersFull: ({ spool }: One, isFull: boolean) => spool.setDeadLettersFull(isFull),
  brokerRestarts: async (one: One) => {
    const { port } = one.broker
    await one.broker[Symbol.asyncDispose]()
    const refused = () =>
      one.world.events.filter(
        (event) => event.kind === 'message_source_lost' && event.detail.includes('ECONNREFUSED'),
      )
    await eventually(() => refused().length >= 5)
    // Each try waits as shortly as the first one.
    expect(refused().every((event) => 'retryInMs' in event && event.retryInMs <= 100)).toBe(true)
    const again = await openScriptedBroker({ ...one.script, port })
    onTestFinished(() => again[Symbol.asyncDispose]())
  },
  stopAccepting: ({ world }: One) => world.ingest.stopAccepting(),
  turns: async (_: One, count: number) => {
    for (let turn = 0; turn < count; turn += 1) await new Promise(setImmediate)
  },
  close: ({ world }: One) => world.ingest.close(),
  stop: (one: One) => {
    one.stopped = one.world.ingest.stopAccepting().then(() => one.world.ingest.close())
  },
  /** Of the stop, with what it says of its session. */
  stopEnds: async (one: One, sessions: string[]) => {
    await one.stopped
    const [released] = eventsOf(one, 'message_source_released')
    expect(sessions).toContain(released && 'session' in released && released.session)
  },

  // ---- what must come
  isConnected: (one: One, times: number) =>
    eventually(() => eventsOf(one, 'message_source_connected').length === times),
  isLost: (one: One, times: number) => eventually(() => eventsOf(one, 'message_source_lost').length >= times),
  isClosed: ({ link }: One) => eventually(() => link.closed),
  isIn: (one: One, state: string) => eventually(() => stateOf(one) === state),
  hasState: (one: One, wanted: string) => eventually(() => statesOf(one).some(({ code }) => code === wanted)),
  hasSent: ({ link }: One, wanted: string) =>
    eventually(() => link.received.some(({ cmd }) => cmd === wanted)),
  isCounted: ({ world }: One, expected: Record<string, number>) =>
    eventually(() => {
      const found = world.ingest.counters() as unknown as Record<string, number>
      return Object.entries(expected).every(([name, count]) => found[name] === count)
    }),
  acks: async ({ link }: One, ids: number[]) => {
    await eventually(() => link.ackWrites.flat().length >= ids.length)
    expect(link.ackWrites.flat()).toEqual(ids)
  },
  /** Identifiers from 1 on; `writes`: in so many writes. */
  ackedMany: async ({ link }: One, { count, writes }: { count: number; writes?: number }) => {
    await eventually(() => link.ackWrites.flat().length === count)
    expect(link.ackWrites.flat()).toEqual(numbers(count))
    if (writes !== undefined) expect(link.ackWrites).toHaveLength(writes)
  },
  noAcks: ({ link }: One) => expect(link.ackWrites).toEqual([]),
  counters: ({ world }: One, expected: object) => expect(world.ingest.counters()).toMatchObject(expected),
  /** Of the broker and of the bridge. */
  sources: ({ world }: One, expected: object[]) =>
    expect(world.ingest.messageSources()).toMatchObject(expected),
  stored: ({ spool }: One, texts: string[]) => expect(spool.payloads.map(textOf)).toEqual(texts),
  open: ({ spool }: One, count: number) => expect(spool.open).toBe(count),
  deadLetters: ({ spool }: One, expected: object[]) => expect(spool.deadLetters).toMatchObject(expected),
  states: (one: One, expected: object[]) => expect(statesOf(one)).toMatchObject(expected),
  /** Waits for them. */
  risks: async (one: One, expected: object[]) => {
    await eventually(() => risksOf(one).length === expected.length)
    expect(risksOf(one)).toMatchObject(expected)
  },
  risksOfGiven: (one: One, { risks = [] }: NonNullable<Given>) => expect(riskNames(one)).toEqual(risks),
  riskNames: (one: One, names: string[]) => expect(riskNames(one)).toEqual(names),
  lost: (one: One, expected: object[]) =>
    expect(eventsOf(one, 'message_source_lost')).toMatchObject(expected),
  firstLost: (one: One, expected: object) =>
    expect(eventsOf(one, 'message_source_lost')[0]).toMatchObject(expected),
  released: (one: One, expected: object[]) =>
    expect(eventsOf(one, 'message_source_released')).toMatchObject(expected),
  connect: ({ link }: One, expected: object) => expect(link.connect).toMatchObject(expected),
  /** After CONNECT. */
  firstReceived: ({ link }: One, expected: object) => expect(link.received[0]).toMatchObject(expected),
  lastReceived: ({ link }: One, expected: object) => expect(link.received.at(-1)).toMatchObject(expected),
  commands: ({ link }: One, expected: string[]) =>
    expect(link.received.map(({ cmd }) => cmd)).toEqual(expected),
  /** The filters of each SUBSCRIBE. */
  subscribed: ({ link }: One, expected: string[][]) =>
    expect(
      link.received.flatMap((packet) =>
        packet.cmd === 'subscribe' ? [packet.subscriptions.map(({ topic }) => topic)] : [],
      ),
    ).toEqual(expected),
  subscribedInParts: ({ link }: One, sizes: number[]) =>
    expect(
      link.received.flatMap((packet) => (packet.cmd === 'subscribe' ? [packet.subscriptions.length] : [])),
    ).toEqual(sizes),
  clientIds: ({ broker }: One, ids: string[]) =>
    expect(broker.connections.map(({ connect }) => connect.clientId).toSorted()).toEqual(ids),
  connections: ({ broker }: One, count: number) => expect(broker.connections).toHaveLength(count),
})
