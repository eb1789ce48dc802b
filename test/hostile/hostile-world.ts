// hostile-world.ts: the daemon that is attacked, as `telemetry-gateway run` starts it: listeners for TCP, TLS and
// WebSocket, listed devices, small stores so that a filler fills them within seconds, and a service that accepts everything.

import { once } from 'node:events'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { Status } from '../../src/ops/status-schema/status-schema.ts'
import { hashPassword } from '../../src/std/passwords/passwords.ts'
import { startDaemon, type Daemon } from '../support/driver/daemon.ts'
import { openService, type Service } from '../support/driver/service.ts'
import { createAuthority } from '../support/certificates.ts'
import { schemes, type Transport } from './route.ts'

export type HostileWorld = AsyncDisposable & {
  readonly gateway: Daemon
  readonly pid: number
  readonly folder: string
  readonly config: string
  /** PEM of the authority of the TLS listener. */
  readonly ca: string
  readonly service: Service
  /** When it was opened. */
  readonly firstTime: number
  port(transport: Transport): number
  /** Of the broker behind the bridge. */
  readonly sitePort: number
  readonly opsUrl: string
  status(): Promise<Status | null>
}

export const fleetUser = { name: 'fleet', password: 'correct horse battery staple' }
export const otherUser = { name: 'workshop', password: 'another password of another user' }
export const listedCount = 200

/** Pages of it may connect over WebSocket. */
export const pageOrigin = 'https://fleet.example.com'

/** 2 MiB instead of 1 GiB: full after some hundred messages. */
const storeBytes = '2MiB'

function configText(serviceUrl: string, sitePort: number): string {
  return `ingest:
  broker:
    listeners:
      - url: mqtt://127.0.0.1:0
      - url: mqtts://127.0.0.1:0
        tls: { cert: "\${file:./cert.pem}", key: "\${file:./key.pem}" }
      - url: ws://127.0.0.1:0
        websocket: { origins: [${pageOrigin}] }
      - url: wss://127.0.0.1:0
        tls: { cert: "\${file:./cert.pem}", key: "\${file:./key.pem}" }
        websocket: { origins: [${pageOrigin}] }
    access:
      anonymous: true
      users:
        - { name: ${fleetUser.name}, password: "\${file:./fleet.txt}" }
        - { name: ${otherUser.name}, password: "\${file:./workshop.txt}" }
  bridges:
    - { name: site, url: "mqtt://127.0.0.1:${sitePort}", topics: ["#"], client_id: gateway, protocol: "3.1.1" }
sources:
  - name: trucks
    topic: telemetry/v1/{device}
    map:
      time: { path: ts, format: ms }
      latitude: { path: gps.lat }
      longitude: { path: gps.lon }
  - name: tanks
    topic: tanks/{device}/{field}
    coalesce: { name: "{field}", complete: [level, heat], window: 2s }
    map:
      signals:
        - { type: LEVEL, path: level }
        - { type: HEAT, path: heat }
  - name: calculated
    topic: calculated/{device}
    map:
      time: { path: ts, format: ms }
      latitude: { path: lat }
      longitude: { expr: "list.filter(x, list.exists(y, y == x))[0]" }
  - name: packed
    topic: kura/{device}
    encoding: kura
    map:
      time: { path: timestamp, format: ms }
      latitude: { path: position.latitude }
      longitude: { path: position.longitude }
devices: { file: devices.csv, unknown: quarantine }
defaults: { carrier: ACME, operator: OP1, asset_type: TRACTOR }
spool:
  path: ./spool
  max_bytes: 4GiB
  min_free_bytes: 1MiB
  dead_letters: { max_bytes: ${storeBytes} }
  quarantine_max_bytes: ${storeBytes}
  state_max_bytes: ${storeBytes}
delivery:
  base_url: ${serviceUrl}
  credentials: { source: environment }
  batch: { max_payloads: 500, linger: 50ms }
clocks: { trust_local: true }
ops: { listen: "127.0.0.1:0" }
`
}

export async function openHostileWorld(folder: string): Promise<HostileWorld> {
  await mkdir(folder, { recursive: true })
  const firstTime = Date.now()
  const service = await openService()
  const site = new Worker(new URL('../support/site-broker.ts', import.meta.url))
  const [sitePort] = (await once(site, 'message')) as [number]
  const authority = createAuthority()
  const { cert, key } = authority.issue()
  const fleetHash = await hashPassword(fleetUser.password)
  const names = Array.from({ length: listedCount }, (_, n) => [`truck-${n}`, `tank-${n}`, `sum-${n}`]).flat()
  const files = {
    'cert.pem': cert,
    'key.pem': key,
    'fleet.txt': fleetHash,
    'workshop.txt': otherUser.password,
    'devices.csv': `device,asset_id\n${names.map((name) => `${name},${name}`).join('\n')}\n`,
    'gateway.yaml': configText(service.url, sitePort),
  }
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text, { mode: 0o600 })
  const config = join(folder, 'gateway.yaml')
  const gateway = startDaemon(config)
  if ((await gateway.ready) === null)
    throw new Error(`the daemon ended:\n${JSON.stringify(gateway.lines.slice(-8), null, 1)}`)
  const opsUrl = gateway.opsUrl() ?? ''

  return {
    gateway,
    pid: gateway.pid,
    folder,
    config,
    ca: authority.ca,
    service,
    firstTime,
    port: (transport) => gateway.port(schemes[transport]),
    sitePort,
    opsUrl,
    status: () => gateway.status(),
    async [Symbol.asyncDispose]() {
      await gateway.kill()
      await site.terminate()
      await service[Symbol.asyncDispose]()
    },
  }
}
