// nats-engine.ts: NATS with JetStream and MQTT.

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { freePort } from '../support/mosquitto.ts'
import {
  atEndOfTest,
  engineFolder,
  enginesFolder,
  isInstalled,
  spawnEngine,
  startEngine,
  type AtEnd,
  type Engine,
  type EngineNode,
} from './message-engine.ts'

export const machineProgram = '/usr/sbin/nats-server'
export const newerProgram = join(enginesFolder, 'nats/usr/sbin/nats-server')

/** nats-server 2.9 of Debian 12. */
export const hasNats = isInstalled(machineProgram, 'Install the package nats-server.')
/** nats-server 2.10 of Debian 13. */
export const hasNatsCluster = isInstalled(newerProgram, 'Run test/engines/install-engines.sh.')

export type NatsOptions = {
  nodes?: 1 | 3
  /** Further lines of the config, such as mappings. */
  lines?: readonly string[]
  /** `sync_interval` of three nodes; 2.9 does not know it. Default: every write. */
  syncInterval?: string
  atEnd?: AtEnd
}

/** The data of a node is below `FOLDER/NAME`. */
export async function startNats(options: NatsOptions = {}): Promise<Engine> {
  const { nodes: count = 1, lines = [], syncInterval = 'always', atEnd = atEndOfTest } = options
  const isNewer = count > 1
  const folder = await engineFolder(atEnd)
  const names = ['a', 'b', 'c'].slice(0, count)
  const nodes: EngineNode[] = []
  const routePorts: number[] = []
  for (const name of names) {
    nodes.push({ name, mqttPort: await freePort(), port: await freePort(), monitorPort: await freePort() })
    routePorts.push(await freePort())
  }
  const sync = isNewer ? `, sync_interval: ${syncInterval}` : ''
  const routes = routePorts.map((port) => `"nats://127.0.0.1:${port}"`).join(', ')
  for (const [index, { name, port, mqttPort, monitorPort }] of nodes.entries()) {
    const config = [
      `server_name: ${name}`,
      'host: 127.0.0.1',
      `port: ${port}`,
      `http: "127.0.0.1:${monitorPort}"`,
      `jetstream { store_dir: "${folder}/${name}"${sync} }`,
      `mqtt { host: 127.0.0.1, port: ${mqttPort}${count > 1 ? `, stream_replicas: ${count}` : ''} }`,
      ...(count > 1
        ? [
            `cluster { name: fleet, host: 127.0.0.1, port: ${routePorts[index]}, no_advertise: true, routes: [${routes}] }`,
          ]
        : []),
      ...lines,
    ]
    await writeFile(join(folder, `${name}.conf`), `${config.join('\n')}\n`)
  }
  const program = isNewer ? newerProgram : machineProgram
  const engine = await startEngine(
    {
      kind: 'nats',
      folder,
      nodes,
      scheme: 'nats',
      run: (node) => spawnEngine(program, ['-c', join(folder, `${names[node]}.conf`)]),
      async isReady({ monitorPort }) {
        const { ok } = await fetch(`http://127.0.0.1:${monitorPort}/healthz`, {
          signal: AbortSignal.timeout(5000),
        })
        return ok
      },
      leaderOf: (name) => leaderOf(nodes, name),
    },
    atEnd,
  )
  if (count > 1) await whole(engine)
  return engine
}

/**
 * A node that is late at the first start of a cluster may stay out of it: its /healthz is ok, and devices that connect
 * to it get no answer. A restart takes it in.
 */
async function whole(engine: Engine): Promise<void> {
  for (;;) {
    const missing = await nodesOutside(engine, Date.now() + lateNodeMs)
    if (missing.length === 0) return
    process.stderr.write(
      `engines: NATS: ${missing.length} of ${engine.nodes.length} nodes were late, and are restarted\n`,
    )
    for (const node of missing) {
      await engine.kill(node)
      await engine.restart(node)
    }
  }
}

const lateNodeMs = 20_000

/** Nodes that the leader of the cluster does not count; looks until there is none, or until the time. */
async function nodesOutside({ nodes }: Engine, untilMs: number): Promise<number[]> {
  for (;;) {
    const found = await Promise.all(nodes.map((node) => clusterOf(node).catch(() => null)))
    const leader = found.findIndex((cluster) => cluster?.replicas !== undefined)
    const names = [nodes[leader]?.name, ...(found[leader]?.replicas ?? []).map(({ name }) => name)]
    const outside = nodes.flatMap(({ name }, index) => (names.includes(name) ? [] : [index]))
    if (outside.length === 0 || (leader !== -1 && Date.now() > untilMs)) return outside
    await new Promise((resolve) => {
      setTimeout(resolve, 100)
    })
  }
}

/** The leader alone has `replicas`. */
async function clusterOf({
  monitorPort,
}: EngineNode): Promise<{ replicas?: readonly { name: string }[] } | undefined> {
  const answer = await fetch(`http://127.0.0.1:${monitorPort}/jsz`, { signal: AbortSignal.timeout(5000) })
  return ((await answer.json()) as { meta_cluster?: { replicas?: readonly { name: string }[] } }).meta_cluster
}

type Detail = { name: string; cluster?: { leader?: string }; consumer_detail?: readonly Detail[] }

/** As most nodes that answer say: a node that returns may not know it yet. */
async function leaderOf(nodes: readonly EngineNode[], name: string): Promise<string | null> {
  const [streamName, consumerName] = name.split('/')
  const said = await Promise.all(
    nodes.map(async (node) => {
      const streams = await streamsOf(node).catch(() => [])
      const stream = streams.find((one) => one.name === streamName)
      const consumers = stream?.consumer_detail ?? []
      const found =
        consumerName === undefined ? stream : consumers.find((consumer) => consumer.name === consumerName)
      return found?.cluster?.leader ?? null
    }),
  )
  const votes = said.filter((leader) => leader !== null)
  const count = (leader: string) => votes.filter((other) => other === leader).length
  return votes.toSorted((one, other) => count(other) - count(one))[0] ?? null
}

async function streamsOf({ monitorPort }: EngineNode): Promise<Detail[]> {
  const answer = await fetch(`http://127.0.0.1:${monitorPort}/jsz?streams=1&consumers=1`)
  const { account_details = [] } = (await answer.json()) as {
    account_details?: { stream_detail?: Detail[] }[]
  }
  return account_details.flatMap(({ stream_detail = [] }) => stream_detail)
}
