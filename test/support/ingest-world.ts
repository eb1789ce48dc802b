// ingest-world.ts: ingest with a spool in memory and a mapper that tests can read, on a port of its own.

import type { GatewayEvent } from '../../src/domain/event.ts'
import { defaultProvider, type PayloadId } from '../../src/domain/ids.ts'
import type { Message, Sender } from '../../src/domain/message.ts'
import { ingestOptions, ingestSchema } from '../../src/ingest/config.ts'
import { createIngest, type Ingest, type IngestOptions } from '../../src/ingest/ingest.ts'
import type { ListenerTls } from '../../src/ingest/broker/listeners/tls-server.ts'
import type { IntakeMapper, IntakeSpool } from '../../src/ingest/types.ts'
import type { Tap } from '../../src/ingest/intake/message-tap.ts'
import type { MapResult } from '../../src/mapping/mapping.ts'
import { hash } from 'node:crypto'
import { systemClock, type Clock } from '../../src/std/clock.ts'
import { Secret } from '../../src/std/secret.ts'
import type { Certificate } from './certificates.ts'
import { ourTimeOf } from './our-time.ts'
import { createDevice, type Device } from './mqtt-device.ts'

export type IngestWorld = AsyncDisposable & {
  options: IngestOptions
  ingest: Ingest
  port: number
  events: readonly GatewayEvent[]
  /** A connected device. */
  device(clientId: string, options?: ConnectionOptions): Promise<Device>
  /** A TCP connection before its CONNECT. */
  connection(clientId: string, options?: ConnectionOptions): Promise<Device>
}

type ConnectionOptions = { releases?: boolean; from?: string }

/**
 * Maps a message by its text: `ignore`, `bad`, `throw`, `none` and `many:N` do as they say, anything else is a
 * payload with that text; `untimed ...` is one without a device time.
 */
export const wordMapper: IntakeMapper = {
  tick: () => null,
  nextTickAt: () => null,
  restore: () => undefined,
  openParts: () => 0,
  map(message): MapResult {
    const text = message.bytes.toString()
    const name = nameOf(message)
    if (text === 'ignore') return { kind: 'ignored', source: 'words', reason: 'requested' }
    if (text === 'bad')
      return {
        kind: 'unmappable',
        source: 'words',
        device: null,
        reason: 'BAD',
        detail: 'bad.',
        windowKey: name,
      }
    if (text === 'throw') throw new Error('thrown on purpose')
    if (text === 'none') return { kind: 'payloads', source: 'words', payloads: [] }
    const count = text.startsWith('many:') ? Number(text.slice(5)) : 1
    const duplicateRule = text.startsWith('untimed') ? 'resend' : 'always'
    const payloads = Array.from(
      { length: count },
      (_, index) =>
        ({
          provider: defaultProvider,
          device: message.sender.clientId,
          deviceTime: duplicateRule === 'always' ? 1 : null,
          payloadId: '00000000-0000-8000-8000-000000000000' as PayloadId,
          windowKey: hash('sha256', `${name}|${index}`).slice(0, 32),
          duplicateRule,
          json: JSON.stringify({ topic: message.topic, text }),
        }) as const,
    )
    return { kind: 'payloads', source: 'words', payloads }
  },
}

function nameOf({ sender, topic, bytes }: Message): string {
  return hash('sha256', `${sender.clientId}|${topic}|${bytes.toString('latin1')}`).slice(0, 32)
}

/** The text of a payload that wordMapper made. */
export function textOf(payload: { json: string }): string {
  return (JSON.parse(payload.json) as { text: string }).text
}

export async function openIngest(
  spool: IntakeSpool,
  options: Partial<IngestOptions> & { mapper?: IntakeMapper; clock?: Clock; tap?: Tap } = {},
): Promise<IngestWorld> {
  const { mapper = wordMapper, clock = systemClock, tap, ...rest } = options
  const events: GatewayEvent[] = []
  const defaults = ingestOptions(
    ingestSchema.parse({
      broker: { listeners: [{ url: 'mqtt://127.0.0.1:0' }], access: { anonymous: true } },
    }),
  )
  // Most tests send as fast as they can; those of the rates set them.
  const all = { ...defaults, messagesPerS: 1_000_000, bytesPerS: 1e9, ...rest }
  const ingest = await createIngest(
    {
      mapper,
      spool,
      clock,
      ourTime: ourTimeOf(() => 0, clock),
      emit: (event) => events.push(event),
      ...(tap ? { tap } : {}),
    },
    all,
  )
  await ingest.start()
  const port = Number(new URL(ingest.addresses()[0]!).port)
  const devices: Device[] = []

  async function connection(clientId: string, options?: ConnectionOptions): Promise<Device> {
    const device = await createDevice({ port, clientId, ...options })
    devices.push(device)
    return device
  }

  return {
    ingest,
    options: all,
    port,
    events,
    connection,
    async device(clientId, options) {
      const device = await connection(clientId, options)
      await device.connect()
      return device
    },
    async [Symbol.asyncDispose]() {
      for (const device of devices) device.destroy()
      await ingest.close()
    },
  }
}

/** Why connections were refused, and how often. */
export function refusedBy({ ingest }: IngestWorld): Record<string, number> {
  return Object.fromEntries(ingest.counters().refusedByReason)
}

/** Why connections were closed, and how often. */
export function droppedBy({ ingest }: IngestWorld): Record<string, number> {
  return Object.fromEntries(ingest.counters().droppedByReason)
}

/** The TLS of a listener with this certificate. */
export function listenerTls({ cert, key }: Certificate, more: Partial<ListenerTls> = {}): ListenerTls {
  return { cert, key: new Secret(key), clientCa: null, clientCrl: null, certificateName: 'cn', ...more }
}

/** Access for these users, each with its name as password if not told otherwise. */
export function accessFor(names: readonly string[], anonymous: boolean, password?: string) {
  const users = names.map((name) => ({ name, password: new Secret(password ?? name) }))
  return { access: [{ anonymous, certificates: false, users, passwordFile: null, tokens: [] }] }
}

/** A mapper that ignores each message and notes who sent it. */
export function senderMapper(): { mapper: IntakeMapper; seen: readonly Sender[] } {
  const seen: Sender[] = []
  const map = ({ sender }: Message): MapResult => {
    seen.push({ ...sender })
    return { kind: 'ignored', source: 's', reason: 'r' }
  }
  return { mapper: { ...wordMapper, map }, seen }
}
