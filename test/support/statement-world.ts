// statement-world.ts: the real gateway with a listener for each transport, for tests that are named by the
// statements of a version of MQTT, and raw connections to it.

import { afterAll, describe, onTestFinished } from 'vitest'
import { sandboxAccount } from '../../src/sandbox/sandbox.ts'
import { configText } from './config-text.ts'
import { createAuthority } from './certificates.ts'
import {
  openVersion,
  packetsOf,
  type Version,
  type VersionDevice,
  type VersionPackets,
} from './mqtt-versions.ts'
import type { ConnectFields } from './mqtt5-packets.ts'
import type { ServerPacket } from './mqtt5-reader.ts'
import type { DeviceOptions, RawDevice } from './raw-device.ts'
import { startPipeline, type Pipeline } from './pipeline-world.ts'

export type Transport = 'tcp' | 'tls' | 'ws' | 'wss'

export type StatementWorld = Pipeline & {
  /** A connection before its CONNECT, of the version and transport of the world if not told. It ends with the test. */
  open(version?: Version, transport?: Transport): Promise<VersionDevice>
  /** A connected device and its CONNACK. */
  connected(fields?: ConnectFields): Promise<VersionDevice & { connack: ServerPacket }>
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
  /** The gateway is one that no other test uses, and keeps its spool here. */
  folder?: string
}

export type AtEnd = (end: () => Promise<void>) => void

/** The topic of the source; what else is published gives a dead letter. */
export const topic = 't/van'

/** The topic of a source that takes wills. */
export const willTopic = 'w/van'

/** Some days ago: not too old, and not from the future. */
const startMs = Date.now() - 7 * 86_400_000

/** A message with a device time of its own. */
export function positionText(n: number): string {
  return JSON.stringify({ ts: startMs + n * 1000, lat: 52.5, lon: 13.4 })
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

const rates = ['messages', 'connects', 'connects_per_address'].map((name) => `max_${name}_per_s: 100000`)

const tls = 'tls: { cert: "${env:TLS_CERT}", key: "${env:TLS_KEY}" }'

const listeners: Readonly<Record<Transport, string>> = {
  tcp: '{ url: "mqtt://127.0.0.1:0" }',
  tls: `{ url: "mqtts://127.0.0.1:0", ${tls} }`,
  ws: '{ url: "ws://127.0.0.1:0/mqtt" }',
  wss: `{ url: "wss://127.0.0.1:0/mqtt", ${tls} }`,
}

/** Over TCP in `npm test`, over the others in `npm run test:system`. */
const transports = (process.env['TRANSPORTS'] ?? 'tcp').split(' ') as Transport[]

export type OpenWorld = (options?: StatementOptions, atEnd?: AtEnd) => Promise<StatementWorld>

type Tests = (open: OpenWorld, packets: VersionPackets, version: Version, transport: Transport) => void

/** Runs the tests with each of the versions over each transport. */
export function overEachTransport(versions: readonly Version[], tests: Tests): void {
  runOverEach(describe, versions, tests)
}

/**
 * Runs tests that mostly wait at the same time. They take `expect` and `onTestFinished` from their context, and do
 * not read the same counter of one gateway.
 */
export function overEachTransportAtOnce(versions: readonly Version[], tests: Tests): void {
  runOverEach(describe.concurrent, versions, tests)
}

function runOverEach(run: typeof describe.concurrent, versions: readonly Version[], tests: Tests): void {
  afterAll(endShared)
  for (const version of versions)
    run.each(transports)(`MQTT ${version} over %s`, (transport) => {
      const open: OpenWorld = (options, atEnd) => statementWorld(version, transport, options, atEnd)
      tests(open, packetsOf[version], version, transport)
    })
}

/** The code of the DISCONNECT at the end of a connection; null where none came, as always with MQTT 3.1.1. */
export async function codeAtEnd(device: RawDevice): Promise<number | null> {
  return (await device.gone())?.code ?? null
}

/** Waits until the connection ended, or a PINGRESP shows that it does not: the DISCONNECT of the gateway. */
export async function endOf(device: RawDevice): Promise<ServerPacket | null> {
  const one = (wanted: string) => device.received.find(({ type }) => type === wanted)
  await device.until(() => device.closed || one('pingresp') !== undefined)
  return one('disconnect') ?? null
}

/** The gateways that tests of a file share, by version, transports and options, and how they end. */
const shared = new Map<string, Promise<Pipeline>>()
const ends: (() => Promise<void>)[] = []

async function endShared(): Promise<void> {
  shared.clear()
  for (const end of ends.splice(0).reverse()) await end()
}

/**
 * The gateway is the one that tests of the file with the same options had before. A test that stops it or changes
 * its settings passes a folder.
 */
export async function statementWorld(
  version: Version,
  transport: Transport | readonly Transport[],
  options: StatementOptions = {},
  atEnd: AtEnd = onTestFinished,
): Promise<StatementWorld> {
  const kinds = [transport].flat()
  if (options.folder !== undefined) return worldOf(version, kinds, await start(kinds, options, atEnd), atEnd)
  const name = JSON.stringify([version, kinds, options])
  let gateway = shared.get(name)
  gateway ??= start(kinds, options, (end) => void ends.push(end))
  shared.set(name, gateway)
  return worldOf(version, kinds, await gateway, atEnd)
}

function start(kinds: readonly Transport[], options: StatementOptions, atEnd: AtEnd): Promise<Pipeline> {
  const { broker = '', limits = '', access = '{ anonymous: true }' } = options
  return startPipeline({
    atEnd,
    ...(options.folder === undefined ? {} : { folder: options.folder }),
    deps: { env },
    config: configText({
      ingest: `
  broker:
    listeners: [${kinds.map((kind) => listeners[kind]).join()}]
    access: ${access}
    limits: { ${[...rates, limits].join(', ')} }
    ${broker}`,
      sources: `
  - name: all
    topic: t/{device}
    map: &map { time: { path: ts, format: ms }, latitude: { path: lat }, longitude: { path: lon } }
  - { name: wills, topic: "w/{device}", wills: take, map: *map }
  - { name: untimed, topic: "u/{device}", map: { latitude: { path: lat }, longitude: { path: lon } } }
  - { name: yard, preset: sparkplug-b }`,
    }),
  })
}

async function worldOf(
  ofWorld: Version,
  [first = 'tcp']: readonly Transport[],
  pipeline: Pipeline,
  atEnd: AtEnd,
): Promise<StatementWorld> {
  const { mqtt } = pipeline.gateway.addresses
  const placeOf = (one: Transport): DeviceOptions => {
    const url = mqtt.find((address) => address.startsWith(`${schemes[one]}//`))
    if (url === undefined) throw new Error(`no listener for ${one}`)
    return { url, ca: authority.ca }
  }
  const before = await metrics()
  worlds += 1
  const start = worlds * 1001

  async function open(version = ofWorld, transport = first): Promise<VersionDevice> {
    const device = await openVersion(version, placeOf(transport))
    atEnd(async () => device.destroy())
    return device
  }

  return {
    ...pipeline,
    open,
    async connected(fields) {
      const device = await open()
      return Object.assign(device, { connack: await device.connect(fields) })
    },
    position: (n) => positionText(start + n),
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
