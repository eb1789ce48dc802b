// world5.ts: the real gateway with a listener for each transport, and devices of MQTT 5.

import { afterAll, describe, onTestFinished } from 'vitest'
import { sandboxAccount } from '../../../src/sandbox/sandbox.ts'
import { openDevice5, type Device5 } from '../../support/mqtt5-device.ts'
import type { ConnectFields } from '../../support/mqtt5-packets.ts'
import type { ServerPacket } from '../../support/mqtt5-reader.ts'
import { startPipeline, type Pipeline } from '../../support/pipeline-world.ts'

export type Transport = 'tcp' | 'ws'

/** Runs the tests over TCP and over WebSocket. */
export function overEachTransport(tests: (transport: Transport) => void): void {
  describe.each(['tcp', 'ws'] as const)('over %s', (transport) => {
    afterAll(endShared)
    tests(transport)
  })
}

export type World5 = Pipeline & {
  /** A connection before its CONNECT. */
  open(from?: string): Promise<Device5>
  /** A connected device and its CONNACK. */
  connected(fields?: ConnectFields): Promise<Device5 & { connack: ServerPacket }>
  /** A sum over the labels of a metric. */
  counter(name: string): Promise<number>
}

type Options = {
  /** YAML of fields of `ingest.broker`. */
  broker?: string
  /** YAML of fields of `limits`. */
  limits?: string
  /** YAML of `access`. */
  access?: string
  /** YAML of fields of the source. */
  source?: string
  folder?: string
}

/** The topic of the source; what else is published gives a dead letter. */
export const topic = 't/van'

/** A message with a device time of its own. */
export function positionText(n: number): string {
  return JSON.stringify({ ts: 1_763_690_000_000 + n * 1000, lat: 52.5, lon: 13.4 })
}

const env = {
  AWS_ACCESS_KEY_ID: sandboxAccount.accessKeyId,
  AWS_SECRET_ACCESS_KEY: sandboxAccount.secret.reveal(),
  PASSWORD: 'right',
}

/** The gateway of all tests of a file and transport that need no settings of their own, and how it ends. */
let shared: Promise<Pipeline> | null = null
const ends: (() => Promise<void>)[] = []

async function endShared(): Promise<void> {
  shared = null
  for (const end of ends.splice(0).reverse()) await end()
}

/**
 * Without options the gateway is one that other tests of the file had before: its counters begin at 0 all the
 * same. A test that changes its settings, restarts it or keeps sessions passes options, `{}` at least.
 */
export async function world5(transport: Transport, options?: Options): Promise<World5> {
  if (options !== undefined) return worldOf(transport, await start(options))
  shared ??= start({}, (end) => void ends.push(end))
  return worldOf(transport, await shared)
}

function start(
  options: Options,
  atEnd: (end: () => Promise<void>) => void = onTestFinished,
): Promise<Pipeline> {
  const { broker = '', limits = '', access = '{ anonymous: true }', source = '' } = options
  return startPipeline({
    atEnd,
    ...(options.folder === undefined ? {} : { folder: options.folder }),
    deps: { env },
    config: (baseUrl) => `
ingest:
  broker:
    listeners: [{ url: "mqtt://127.0.0.1:0" }, { url: "ws://127.0.0.1:0/mqtt" }]
    access: ${access}
    limits: { max_messages_per_s: 1000000 ${limits === '' ? '' : `, ${limits}`} }
    ${broker}
sources:
  - name: all
    topic: t/{device}
    map:
      time: { path: ts, format: ms }
      latitude: { path: lat }
      longitude: { path: lon }
    ${source}
  - { name: yard, preset: sparkplug-b }
defaults: { carrier: ACME, operator: OP1, asset_type: TRACTOR }
spool: { path: ./spool, max_bytes: 1GiB, min_free_bytes: 1MiB }
delivery: { base_url: "${baseUrl}", batch: { linger: 20ms } }
ops: { listen: "127.0.0.1:0", stop_deadline: 5s }
`,
  })
}

async function worldOf(transport: Transport, pipeline: Pipeline): Promise<World5> {
  const { mqtt } = pipeline.gateway.addresses
  const url = mqtt.find((address) => address.startsWith(transport === 'ws' ? 'ws:' : 'mqtt:')) ?? ''
  const before = await metrics()

  async function open(from?: string): Promise<Device5> {
    const device = await openDevice5({ url, ...(from === undefined ? {} : { from }) })
    onTestFinished(() => device.destroy())
    return device
  }

  return {
    ...pipeline,
    open,
    async connected(fields) {
      const device = await open()
      const connack = await device.connect(fields)
      return Object.assign(device, { connack })
    },
    counter: async (name) => sumOf(await metrics(), name) - sumOf(before, name),
  }

  async function metrics(): Promise<string> {
    return (await fetch(`${pipeline.gateway.addresses.ops}/metrics`)).text()
  }
}

function sumOf(metrics: string, name: string): number {
  return metrics
    .split('\n')
    .filter((line) => line.startsWith(`${name} `) || line.startsWith(`${name}{`))
    .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0)
}
