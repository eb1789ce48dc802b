// nats-world.ts: a gateway's ingest in front of a real NATS, and what tests do to NATS directly.

import { connect, TimeoutError, type NatsConnection } from '@nats-io/transport-node'
import { jetstreamManager, type JetStreamManager } from '@nats-io/jetstream'
import { MqttClient } from 'mqtt'
import { connect as connectTcp } from 'node:net'
import type { State } from '../../src/domain/condition-state.ts'
import { jetstreamBridgeSchema, jetstreamOptions } from '../../src/ingest/jetstream/jetstream-config.ts'
import { mqttStream, type JetStreamOptions } from '../../src/ingest/jetstream/types.ts'
import type { MessageSourceStatus } from '../../src/ingest/ingest.ts'
import type { Engine } from '../engines/message-engine.ts'
import { openIngest, textOf, type IngestWorld } from './ingest-world.ts'
import { createMemoryIntakeSpool, type MemoryIntakeSpool } from './memory-intake-spool.ts'

/** `mappings` of the only account, for the topics t/{device} and v/{device}/#. */
export const mappings = [
  'mappings {',
  '  "t.*": "gw.{{partition(4,1)}}.t.{{wildcard(1)}}"',
  '  "v.*": "gw.{{partition(4,1)}}.v.{{wildcard(1)}}"',
  '  "v.*.>": "gw.{{partition(4,1)}}.v.{{wildcard(1)}}.>"',
  '}',
]

export type NatsMember = AsyncDisposable & {
  spool: MemoryIntakeSpool
  world: IngestWorld
  status(): MessageSourceStatus
  /** The texts of what was committed, in order. */
  texts(): string[]
  events(kind: string): readonly Record<string, unknown>[]
  risks(): readonly State<'MESSAGE_SOURCE_AT_RISK'>[]
  /** How many partitions it has. */
  active(): number
}

type More = { commits?: 'by hand' | 'auto'; times?: Partial<JetStreamOptions> }

export async function openMember(
  engine: Pick<Engine, 'urls'>,
  options: Record<string, unknown> = {},
  { commits = 'auto', times }: More = {},
): Promise<NatsMember> {
  const spool = createMemoryIntakeSpool({ commits })
  const bridge = jetstreamBridgeSchema.parse({
    name: 'nats',
    url: engine.urls,
    topics: ['t/{device}', 'v/{device}/#'],
    durables: { prefix: 'gw', partitions: 4 },
    provision: true,
    member: 'gw-a',
    ...options,
  })
  const world = await openIngest(spool, { bridges: [{ ...jetstreamOptions(bridge), ...times }] })
  const status = () => world.ingest.messageSources().at(-1)!
  return {
    spool,
    world,
    status,
    texts: () => spool.payloads.map(textOf),
    events: (kind) => world.events.filter((event) => event.kind === kind),
    risks: () => [...world.ingest.states()].filter((state) => state.code === 'MESSAGE_SOURCE_AT_RISK'),
    active: () => status().partitions.filter(({ role }) => role === 'active').length,
    [Symbol.asyncDispose]: () => world[Symbol.asyncDispose](),
  }
}

export type NatsHandle = AsyncDisposable & { nc: NatsConnection; jsm: JetStreamManager }

export async function openNats({ urls }: Pick<Engine, 'urls'>): Promise<NatsHandle> {
  const nc = await connect({ servers: [...urls], maxReconnectAttempts: -1, reconnectTimeWait: 100 })
  const jsm = await jetstreamManager(nc, { checkAPI: false })
  return { nc, jsm, [Symbol.asyncDispose]: () => nc.close() }
}

/** How many messages wait in the stream of MQTT; `undefined` while NATS answers nothing, as after its start. */
export async function waitingAt(nats: NatsHandle): Promise<number | undefined> {
  try {
    return (await nats.jsm.streams.info(mqttStream)).state.messages
  } catch (error) {
    if (error instanceof TimeoutError) return undefined
    throw error
  }
}

/** A client of MQTT 3.1.1 at a node; it does not connect again. */
export async function openDevice(port: number, clientId = `device-${port}`): Promise<MqttClient> {
  const client = new MqttClient(() => connectTcp({ host: '127.0.0.1', port, noDelay: true }), {
    protocolVersion: 4,
    protocolId: 'MQTT',
    clientId,
    reconnectPeriod: 0,
    clean: true,
  })
  await new Promise<void>((resolve, reject) => {
    client.once('connect', () => resolve())
    client.once('error', reject)
    client.once('close', () => reject(new Error('closed')))
  })
  client.on('error', () => undefined)
  client.setMaxListeners(0)
  return client
}

/** Resolves with those that were acknowledged. */
export async function publishAll(
  client: MqttClient,
  messages: readonly { topic: string; text: string }[],
): Promise<string[]> {
  const acked: string[] = []
  await Promise.all(
    messages.map(
      ({ topic, text }) =>
        new Promise<void>((resolve) => {
          const closed = () => resolve()
          client.once('close', closed)
          client.publish(topic, text, { qos: 1 }, (error) => {
            if (!error) acked.push(text)
            client.off('close', closed)
            resolve()
          })
        }),
    ),
  )
  return acked
}
