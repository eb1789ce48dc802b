// bridge-daemons.ts: daemons with a bridge, each with its own config and spool, and a publisher at their broker that
// counts what was acknowledged to it.

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { connectAsync, type MqttClient } from 'mqtt'
import { onTestFinished } from 'vitest'
import type { Status } from '../../src/ops/status-schema/status-schema.ts'
import { eventually } from './eventually.ts'
import { newFolder } from './folders.ts'
import type { SpawnedDaemon } from './spawned-daemon.ts'

type BridgeDaemonOptions = {
  clientId: string
  brokerPort: number
  serviceUrl: string
  /** Further options of the bridge `depot`. */
  bridge?: string
  spoolBytes?: string
}

/** Resolves with the path of the config; the spool is `spool` beside it. */
export async function writeBridgeConfig(options: BridgeDaemonOptions): Promise<string> {
  const { clientId, brokerPort, serviceUrl, bridge = '', spoolBytes = '1GiB' } = options
  const folder = await newFolder()
  const depot = `{ name: depot, url: "mqtt://127.0.0.1:${brokerPort}", topics: ["t/+"], client_id: ${clientId}, keepalive: 2s, reconnect_max: 1s, ${bridge} }`
  const path = join(folder, 'gateway.yaml')
  await writeFile(
    path,
    `
ingest:
  broker: { listeners: [] }
  bridges: [${depot}]
sources: [{ name: a, topic: "t/{device}", map: { time: { path: t, format: ms }, latitude: { path: x }, longitude: { path: y } } }]
defaults: { carrier: ACME, operator: OP1, asset_type: TRACTOR }
spool: { path: ./spool, max_bytes: ${spoolBytes}, min_free_bytes: 1MiB }
delivery: { base_url: "${serviceUrl}", batch: { max_payloads: 100, linger: 5ms } }
ops: { listen: "127.0.0.1:0", stop_deadline: 5s }
`,
  )
  return path
}

/** Device time of the first message. */
export const startMs = Date.now() - 3_600_000

export type Publisher = {
  readonly acked: number
  pause(): Promise<void>
  resume(): void
  stop(): Promise<void>
}

/** Publishes with QoS 1 until it is stopped; a broker that restarts gets again what it did not acknowledge. */
export async function startPublisher(port: number, perTick: number): Promise<Publisher> {
  const client: MqttClient = await connectAsync(`mqtt://127.0.0.1:${port}`, {
    reconnectPeriod: 100,
    clean: false,
    clientId: 'publisher',
  })
  let sent = 0
  let acked = 0
  let isPaused = false
  const timer = setInterval(() => {
    if (isPaused) return
    for (let index = 0; index < perTick; index += 1) {
      sent += 1
      const payload = JSON.stringify({ t: startMs + sent, x: 52 + sent / 1e7, y: 13 })
      client.publish(`t/truck-${sent % 20}`, payload, { qos: 1 }, (error) => {
        if (!error) acked += 1
      })
    }
  }, 20)
  onTestFinished(() => {
    clearInterval(timer)
    client.end(true)
  })
  const pause = () => {
    isPaused = true
    return eventually(() => acked === sent)
  }
  return {
    get acked() {
      return acked
    },
    pause,
    resume() {
      isPaused = false
    },
    async stop() {
      await pause()
      clearInterval(timer)
      await client.endAsync()
    },
  }
}

export async function statusOf({ url }: SpawnedDaemon): Promise<Status> {
  return (await (await fetch(`${url}/status`)).json()) as Status
}

export const bridgeOf = async (daemon: SpawnedDaemon) =>
  (await statusOf(daemon)).messageSources.find(({ name }) => name === 'depot')!

export const lossesOf = async (daemon: SpawnedDaemon) =>
  (await bridgeOf(daemon)).connections.reduce((sum, { losses }) => sum + losses, 0)

export const isConnected = async (daemon: SpawnedDaemon) => (await bridgeOf(daemon)).connectedAt !== null
