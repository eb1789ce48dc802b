// rabbit-bridges.ts: bridges to a RabbitMQ of the test, each in a gateway of its own with a spool in memory.

import { connect, type Channel } from 'amqplib'
import { bridgesSchema } from '../../src/ingest/bridge-kinds.ts'
import type { State } from '../../src/domain/condition-state.ts'
import { amqpOptions } from '../../src/ingest/amqp/amqp-config.ts'
import type { AmqpOptions } from '../../src/ingest/amqp/types.ts'
import type { Engine } from '../engines/message-engine.ts'
import { eventually } from './eventually.ts'
import { openIngest, textOf, type IngestWorld } from './ingest-world.ts'
import { createMemoryIntakeSpool, type MemoryIntakeSpool } from './memory-intake-spool.ts'

export type RabbitBridge = AsyncDisposable & {
  spool: MemoryIntakeSpool
  world: IngestWorld
  status(): ReturnType<IngestWorld['ingest']['messageSources']>[number]
  /** All queues have a consumer of this gateway. */
  connected(): Promise<void>
  /** Texts of the payloads, in order. */
  texts(): string[]
  /** The same by topic. */
  textsByTopic(): Record<string, string[]>
  /** The last event of a kind. */
  eventOf(kind: string): Record<string, unknown> | undefined
  /** The first risk of the server that is found now. */
  risk(): State | undefined
}

export function parseRabbitBridge(options: object): AmqpOptions {
  const [bridge] = bridgesSchema.parse([
    { name: 'rabbit', member: 'gw-1', bind: { keys: ['t.#'] }, provision: true, ...options },
  ])
  if (bridge?.kind !== 'amqp') throw new Error('it is not a bridge to RabbitMQ')
  return amqpOptions(bridge)
}

export async function openRabbitBridge(
  options: object,
  { commits = 'auto', ...changes }: Partial<AmqpOptions> & { commits?: 'auto' | 'by hand' } = {},
): Promise<RabbitBridge> {
  const spool = createMemoryIntakeSpool({ commits })
  const bridge = { ...parseRabbitBridge(options), reconnectFirstMs: 50, depthEveryMs: 200, ...changes }
  const world = await openIngest(spool, { bridges: [bridge] })
  const status = () => world.ingest.messageSources().find(({ kind }) => kind === 'amqp')!
  return {
    spool,
    world,
    status,
    connected: () => eventually(() => status().links.every(({ state }) => state === 'connected')),
    texts: () => spool.payloads.map(textOf),
    textsByTopic() {
      const texts: Record<string, string[]> = {}
      for (const { json } of spool.payloads) {
        const { topic, text } = JSON.parse(json) as { topic: string; text: string }
        ;(texts[topic] ??= []).push(text)
      }
      return texts
    },
    eventOf: (kind) => world.events.findLast((event) => event.kind === kind),
    risk: () => [...world.ingest.states()].find(({ code }) => code === 'MESSAGE_SOURCE_AT_RISK'),
    [Symbol.asyncDispose]: () => world[Symbol.asyncDispose](),
  }
}

/** A channel of a client of its own, until the end of the block. */
export async function openClient({ urls }: Engine): Promise<AsyncDisposable & { channel: Channel }> {
  const connection = await connect(urls[0]!, { noDelay: true })
  const channel = await connection.createConfirmChannel()
  channel.on('error', () => undefined)
  return { channel, [Symbol.asyncDispose]: () => connection.close() }
}

/** Asks the management of the first node; throws for an error. */
export async function manage(
  { nodes }: Engine,
  method: string,
  path: string,
  body?: object,
): Promise<unknown> {
  const answer = await fetch(`http://127.0.0.1:${nodes[0]!.monitorPort}/api/${path}`, {
    method,
    headers: { authorization: `Basic ${Buffer.from('guest:guest').toString('base64')}` },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`)
  const text = await answer.text()
  return text === '' ? null : JSON.parse(text)
}
