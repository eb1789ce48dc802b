// world5.ts: the real gateway with a listener for each transport, and devices of MQTT 5.

import { describe, onTestFinished } from 'vitest'
import { sandboxAccount } from '../../../src/sandbox/sandbox.ts'
import { openDevice5, type Device5 } from '../../support/mqtt5-device.ts'
import type { ConnectFields } from '../../support/mqtt5-packets.ts'
import type { ServerPacket } from '../../support/mqtt5-reader.ts'
import { startPipeline, type Pipeline } from '../../support/pipeline-world.ts'

export type Transport = 'tcp' | 'ws'

/** Runs the tests over TCP and over WebSocket. */
export function overEachTransport(tests: (transport: Transport) => void): void {
  describe.each(['tcp', 'ws'] as const)('over %s', (transport) => {
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

export async function world5(transport: Transport, options: Options = {}): Promise<World5> {
  const { broker = '', limits = '', access = '{ anonymous: true }', source = '' } = options
  const pipeline = await startPipeline({
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
  const { mqtt } = pipeline.gateway.addresses
  const url = mqtt.find((address) => address.startsWith(transport === 'ws' ? 'ws:' : 'mqtt:')) ?? ''

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
    async counter(name) {
      const text = await (await fetch(`${pipeline.gateway.addresses.ops}/metrics`)).text()
      return text
        .split('\n')
        .filter((line) => line.startsWith(`${name} `) || line.startsWith(`${name}{`))
        .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0)
    },
  }
}
