// statement-world.ts: the real gateway with a listener for each transport, for tests that are named by the
// statements of a version of MQTT, and raw connections to it.

import { afterAll, describe, onTestFinished } from 'vitest'
import { sandboxAccount } from '../../src/sandbox/sandbox.ts'
import { createAuthority } from './certificates.ts'
import type { DeviceOptions } from './raw-device.ts'
import { startPipeline, type Pipeline } from './pipeline-world.ts'

export type Transport = 'tcp' | 'tls' | 'ws' | 'wss'

export type StatementWorld = Pipeline & {
  /** Where devices of its transport connect. */
  place: DeviceOptions
  /** The same for any transport. */
  placeOf(transport: Transport): DeviceOptions
  /** Waits until the device is open; its connection ends with the test. */
  keep<Opened extends { destroy(): void }>(device: Promise<Opened>): Promise<Opened>
  /** A message of this world and no other, by `n` up to 1000. */
  position(n: number): string
  /** A sum over the labels of a metric, since this world was opened. */
  counter(name: string): Promise<number>
}

export type StatementOptions = {
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

export type AtEnd = (end: () => Promise<void>) => void

/** The topic of the source; what else is published gives a dead letter. */
export const topic = 't/van'

/** A message with a device time of its own. */
export function positionText(n: number): string {
  return JSON.stringify({ ts: 1_763_690_000_000 + n * 1000, lat: 52.5, lon: 13.4 })
}

/** So that messages of tests that share a gateway are no duplicates of each other. */
let worlds = 0

const schemes = { tcp: 'mqtt:', tls: 'mqtts:', ws: 'ws:', wss: 'wss:' } as const
const authority = createAuthority()
// Far from its end, which would be a condition.
const { cert, key } = authority.issue({ until: new Date(Date.now() + 365 * 86_400_000) })

const env = {
  AWS_ACCESS_KEY_ID: sandboxAccount.accessKeyId,
  AWS_SECRET_ACCESS_KEY: sandboxAccount.secret.reveal(),
  PASSWORD: 'right',
  TLS_CERT: cert,
  TLS_KEY: key,
}

const tls = '{ cert: "${env:TLS_CERT}", key: "${env:TLS_KEY}" }'

/** Runs the tests over TCP and over WebSocket. */
export function overEachTransport(tests: (transport: Transport) => void): void {
  overTransports(['tcp', 'ws'], tests)
}

export function overTransports(
  transports: readonly Transport[],
  tests: (transport: Transport) => void,
): void {
  afterAll(endShared)
  describe.each(transports)('over %s', (transport) => {
    tests(transport)
  })
}

/**
 * Runs tests that mostly wait at the same time. They take `expect` and `onTestFinished` from their context, open
 * their worlds with the latter, and with options where they read counters.
 */
export function overTransportsAtOnce(
  transports: readonly Transport[],
  tests: (transport: Transport) => void,
): void {
  afterAll(endShared)
  describe.concurrent.each(transports)('over %s', (transport) => {
    tests(transport)
  })
}

/** The gateway for each transport that tests of a file share, and how they end. */
const shared = new Map<Transport, Promise<Pipeline>>()
const ends: (() => Promise<void>)[] = []

async function endShared(): Promise<void> {
  shared.clear()
  for (const end of ends.splice(0).reverse()) await end()
}

/**
 * Without options the gateway is one that other tests of the file had before. A test that changes its settings,
 * restarts it or keeps sessions passes options, `{}` at least.
 */
export async function statementWorld(
  transport: Transport,
  options: StatementOptions | undefined,
  atEnd: AtEnd = onTestFinished,
): Promise<StatementWorld> {
  if (options !== undefined) return worldOf(transport, await start(options, atEnd), atEnd)
  let gateway = shared.get(transport)
  gateway ??= start({}, (end) => void ends.push(end))
  shared.set(transport, gateway)
  return worldOf(transport, await gateway, atEnd)
}

function start(options: StatementOptions, atEnd: AtEnd): Promise<Pipeline> {
  const { broker = '', limits = '', access = '{ anonymous: true }', source = '' } = options
  return startPipeline({
    atEnd,
    ...(options.folder === undefined ? {} : { folder: options.folder }),
    deps: { env },
    config: (baseUrl) => `
ingest:
  broker:
    listeners:
      - { url: "mqtt://127.0.0.1:0" }
      - { url: "mqtts://127.0.0.1:0", tls: ${tls} }
      - { url: "ws://127.0.0.1:0/mqtt" }
      - { url: "wss://127.0.0.1:0/mqtt", tls: ${tls} }
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
  - { name: untimed, topic: "u/{device}", map: { latitude: { path: lat }, longitude: { path: lon } } }
  - { name: yard, preset: sparkplug-b }
defaults: { carrier: ACME, operator: OP1, asset_type: TRACTOR }
spool: { path: ./spool, max_bytes: 1GiB, min_free_bytes: 1MiB }
delivery: { base_url: "${baseUrl}", batch: { linger: 20ms } }
ops: { listen: "127.0.0.1:0", stop_deadline: 5s }
`,
  })
}

async function worldOf(transport: Transport, pipeline: Pipeline, atEnd: AtEnd): Promise<StatementWorld> {
  const { mqtt } = pipeline.gateway.addresses
  const placeOf = (one: Transport): DeviceOptions => {
    const url = mqtt.find((address) => address.startsWith(`${schemes[one]}//`))
    if (url === undefined) throw new Error(`no listener for ${one}`)
    return { url, ca: authority.ca }
  }
  const before = await metrics()
  worlds += 1
  const first = worlds * 1001

  return {
    ...pipeline,
    place: placeOf(transport),
    placeOf,
    position: (n) => positionText(first + n),
    async keep(device) {
      const opened = await device
      atEnd(async () => opened.destroy())
      return opened
    },
    counter: async (name) => sumOf(await metrics(), name) - sumOf(before, name),
  }

  async function metrics(): Promise<string> {
    return (await fetch(`${pipeline.gateway.addresses.ops}/metrics`)).text()
  }
}

function sumOf(metrics: string, name: string): number {
  if (!metrics.includes(`# TYPE ${name} `)) throw new Error(`there is no metric ${name}`)
  return metrics
    .split('\n')
    .filter((line) => line.startsWith(`${name} `) || line.startsWith(`${name}{`))
    .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0)
}
