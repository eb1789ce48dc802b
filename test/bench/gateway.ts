// gateway.ts: the daemon under test: as it is installed (`npm run build`, `node dist/main.js run --config FILE`), with
// the example config, a spool of its own on a real disk, and the sink as its service. From the sources it takes
// 8 MB more, for the compiler that removes the types.

import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { promisify } from 'node:util'
import type { Status } from '../../src/ops/status-schema/status-schema.ts'
import { createAuthority } from '../support/certificates.ts'
import { makeFolder, startSink, type BenchOptions, type Sink } from './bench.ts'
import { startDaemon, type Child } from './children.ts'

export type Gateway = AsyncDisposable & {
  pid: number
  /** Base URL of the ops port. */
  url: string
  mqttPort: number
  /** Of the TLS listener; 0 where there is none. */
  tlsPort: number
  /** From the start of the process until /readyz answered 200. */
  readyAfterMs: number
  /** Directory of the spool's database. */
  storePath: string
  status(): Promise<Status>
  /** Payloads in the spool, and their JSON bytes. */
  open(): Promise<{ payloads: number; bytes: number }>
  /** Makes it try now what waits for a back-off. */
  probe(): void
  end(): Promise<void>
}

const readyMaxMs = 120_000

let building: Promise<unknown> | null = null

/** Once in a process. */
function build(): Promise<unknown> {
  const cwd = join(import.meta.dirname, '..', '..')
  building ??= promisify(execFile)('npm', ['run', '--silent', 'build'], { cwd })
  return building
}

type GatewayOptions = {
  /** Holds config, spool and log: started again on the same folder, it finds its spool again. */
  folder: string
  sinkPort: number
  /** With a TLS listener beside the plain one. */
  tls?: boolean
  lingerMs?: number
}

/** A gateway with a folder of its own, and the sink that it delivers to. */
export async function startWithSink(
  { dir }: BenchOptions,
  options: Omit<GatewayOptions, 'folder' | 'sinkPort'> = {},
): Promise<AsyncDisposable & { folder: string; sink: Sink; gateway: Gateway }> {
  await using started = new AsyncDisposableStack()
  const { path: folder } = started.use(await makeFolder(dir))
  const sink = started.use(await startSink({ closed: false }))
  const gateway = started.use(await startGateway({ ...options, folder, sinkPort: sink.port }))
  const owned = started.move()
  return { folder, sink, gateway, [Symbol.asyncDispose]: () => owned.disposeAsync() }
}

export async function startGateway(options: GatewayOptions): Promise<Gateway> {
  const { folder, tls = false } = options
  const [mqttPort, opsPort] = [await freePort(), await freePort()]
  const tlsPort = tls ? await freePort() : 0
  if (tls) await writeCertificate(folder)
  const config = join(folder, 'gateway.yaml')
  await writeFile(config, configText({ ...options, mqttPort, tlsPort, opsPort }))
  const logFile = join(folder, 'gateway.log')
  await build()
  const startedAtMs = performance.now()
  const child = startDaemon(['dist/main.js', 'run', '--config', config], {
    logFile,
    env: {
      ...process.env,
      AWS_ACCESS_KEY_ID: 'AKIDBENCH',
      AWS_SECRET_ACCESS_KEY: 'bench-secret-bench-secret',
    },
  })
  const url = `http://127.0.0.1:${opsPort}`
  try {
    await ready(child, url, logFile)
  } catch (error) {
    await child.end()
    throw error
  }
  const readyAfterMs = performance.now() - startedAtMs

  async function status(): Promise<Status> {
    const response = await fetch(`${url}/status`)
    return (await response.json()) as Status
  }

  return {
    pid: child.pid,
    url,
    mqttPort,
    tlsPort,
    readyAfterMs,
    storePath: join(folder, 'spool', 'store'),
    status,
    async open() {
      const { lanes } = await status()
      return {
        payloads: lanes.reduce((sum, { pending, sealed }) => sum + pending + sealed, 0),
        bytes: lanes.reduce((sum, { bytes }) => sum + bytes, 0),
      }
    },
    probe: () => child.signal('SIGHUP'),
    end: () => child.end(),
    [Symbol.asyncDispose]: () => child.end(),
  }
}

async function ready(child: Child, url: string, logFile: string): Promise<void> {
  const deadlineMs = performance.now() + readyMaxMs
  while (performance.now() < deadlineMs) {
    if (!child.running) break
    const response = await fetch(`${url}/readyz`).catch(() => null)
    await response?.text()
    if (response?.status === 200) return
    await wait(10)
  }
  const log = await readFile(logFile, 'utf8')
  throw new Error(`the gateway ${child.running ? 'did not get ready' : 'ended'}:\n${log.slice(-4000)}`)
}

async function writeCertificate(folder: string): Promise<void> {
  const { cert, key } = createAuthority().issue()
  await writeFile(join(folder, 'cert.pem'), cert)
  await writeFile(join(folder, 'key.pem'), key, { mode: 0o600 })
}

type Ports = Record<'mqttPort' | 'tlsPort' | 'opsPort', number>

function configText(options: Ports & GatewayOptions): string {
  const { sinkPort, tlsPort, lingerMs = 1000 } = options
  const files = 'tls: { cert: "${file:./cert.pem}", key: "${file:./key.pem}" }'
  const tls = tlsPort === 0 ? '' : `, { url: "mqtts://127.0.0.1:${tlsPort}", ${files} }`
  return `ingest:
  broker:
    listeners: [{ url: "mqtt://127.0.0.1:${options.mqttPort}" }${tls}]
    access: { anonymous: true }
    # The load generator connects from one address, as fast as it can.
    limits:
      max_connects_per_s: 100000
      max_connects_per_address_per_s: 100000
      max_connections_per_address: 10000
      max_messages_per_s: 1000000
      max_bytes_per_s: 1GiB
sources:
  - name: trucks
    topic: telemetry/v1/{device}
    map:
      time:      { path: ts, format: ms }
      latitude:  { path: gps.lat }
      longitude: { path: gps.lon }
      speed:     { path: gps.speed, unit: km/h }
      heading:   { path: gps.heading }
      in_motion: { path: gps.moving }
      signals:
        - { type: OBD_LIFETIME_ODOMETER, path: odometer.value, unit: km }
devices: { unknown: accept }
defaults: { carrier: ACME, operator: OP1, asset_type: TRACTOR }
spool: { path: ./spool, max_bytes: 20GiB, min_free_bytes: 1GiB }
delivery:
  base_url: http://127.0.0.1:${sinkPort}
  credentials: { source: environment }
  batch: { max_payloads: 500, max_bytes: 1MiB, linger: ${lingerMs}ms }
  max_in_flight: 4
  timeout: 30s
ops: { listen: "127.0.0.1:${options.opsPort}" }
log: { level: info }
`
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}
