// rabbit-engine.ts: RabbitMQ with MQTT, the consistent hash exchange and its management. The newer one runs in a root
// directory of its own, in which the folder of the test is mounted, for this process alone.

import type { ChildProcess } from 'node:child_process'
import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { connect } from 'mqtt'
import { answers, freePort } from '../support/mosquitto.ts'
import {
  atEndOfTest,
  createProcess,
  engineFolder,
  enginesFolder,
  isInstalled,
  spawnEngine,
  startEngine,
  type AtEnd,
  type Engine,
  type EngineNode,
} from './message-engine.ts'

export const serverScript = '/usr/lib/rabbitmq/bin/rabbitmq-server'
const newerRoot = join(enginesFolder, 'rabbitmq')

/** RabbitMQ 3.10 of Debian 12. */
export const hasRabbit = isInstalled(serverScript, 'Install the package rabbitmq-server.')
/** RabbitMQ 4.0 of Debian 13; a root directory needs root. */
export const hasRabbitCluster =
  isInstalled(join(newerRoot, 'installed'), 'Run test/engines/install-engines.sh as root.') &&
  process.getuid?.() === 0

export type RabbitOptions = {
  nodes?: 1 | 3
  /** Of one node: that of `install-engines.sh` in place of that of the machine. */
  isNewer?: boolean
  /** Further lines of rabbitmq.conf. */
  lines?: readonly string[]
  atEnd?: AtEnd
}

/** The data of a node is below `FOLDER/NAME`. */
export async function startRabbit(options: RabbitOptions = {}): Promise<Engine> {
  const { nodes: count = 1, isNewer = count > 1, lines = [], atEnd = atEndOfTest } = options
  const plugins = ['rabbitmq_mqtt', 'rabbitmq_consistent_hash_exchange', 'rabbitmq_management']
  const folder = await engineFolder(atEnd)
  const nodes: EngineNode[] = []
  const distPorts: number[] = []
  for (const name of ['a', 'b', 'c'].slice(0, count)) {
    nodes.push({
      name: `${name}@localhost`,
      mqttPort: await freePort(),
      port: await freePort(),
      monitorPort: await freePort(),
    })
    distPorts.push(await freePort())
  }
  const namesPort = await freePort()
  // As the server sees the folder.
  const at = isNewer ? '/mnt' : folder
  await writeFile(join(folder, '.erlang.cookie'), 'GATEWAYTESTCOOKIE', { mode: 0o400 })
  await writeFile(join(folder, 'plugins'), `[${plugins.join(',')}].\n`)
  for (const node of nodes) {
    await mkdir(join(folder, node.name))
    await writeFile(join(folder, node.name, 'rabbitmq.conf'), configOf(node, { nodes, isNewer, lines }))
  }
  await chmod(folder, 0o755)

  const env = (node: number) => {
    const { name } = nodes[node]!
    return {
      PATH: '/usr/sbin:/usr/bin:/sbin:/bin',
      HOME: at,
      LANG: 'C.UTF-8',
      ERL_EPMD_PORT: String(namesPort),
      // The script becomes the server then, instead of waiting for it.
      RUNNING_UNDER_SYSTEMD: 'true',
      RABBITMQ_NODENAME: name,
      RABBITMQ_DIST_PORT: String(distPorts[node]),
      RABBITMQ_CONFIG_FILE: `${at}/${name}/rabbitmq.conf`,
      RABBITMQ_CONF_ENV_FILE: '/dev/null',
      RABBITMQ_ENABLED_PLUGINS_FILE: `${at}/plugins`,
      RABBITMQ_MNESIA_BASE: `${at}/${name}/data`,
      RABBITMQ_LOG_BASE: `${at}/${name}/log`,
      RABBITMQ_GENERATED_CONFIG_DIR: `${at}/${name}/generated`,
      RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS:
        '-kernel inet_dist_use_interface {127,0,0,1} +sbwt none +sbwtdcpu none +sbwtdio none',
      ERL_CRASH_DUMP_BYTES: '0',
    }
  }
  const run = (program: string, words: readonly string[], variables: NodeJS.ProcessEnv): ChildProcess =>
    isNewer ? runNewer(folder, program, words, variables) : spawnEngine(program, words, variables)
  // A node would start its own, which outlives it.
  const names = createProcess('epmd', () =>
    run('/usr/bin/epmd', ['-address', '127.0.0.1', '-port', String(namesPort)], env(0)),
  )
  atEnd(() => names.end('SIGKILL'))
  names.start()
  await answers(namesPort)
  return startEngine(
    {
      kind: 'rabbitmq',
      folder,
      nodes,
      scheme: 'amqp',
      run: (node) => run(serverScript, [], env(node)),
      isReady: (node) => isReady(node, nodes),
      async leaderOf(name) {
        for (const node of nodes) {
          const queues = await queuesOf(node).catch(() => [])
          const found = queues.find((queue) => queue.name === name)
          if (found !== undefined) return found.leader ?? found.node ?? null
        }
        return null
      },
    },
    atEnd,
  )
}

/** A program of the newer RabbitMQ, which sees `folder` as /mnt. */
export function runNewer(
  folder: string,
  program: string,
  words: readonly string[],
  variables: NodeJS.ProcessEnv,
): ChildProcess {
  const mounts = `mount --bind ${folder} ${newerRoot}/mnt && mount -t proc proc ${newerRoot}/proc`
  return spawnEngine(
    'unshare',
    ['--mount', 'sh', '-c', `${mounts} && exec chroot ${newerRoot} "$0" "$@"`, program, ...words],
    variables,
  )
}

/** RabbitMQ 3.12 and newer add the time at which they got a message. */
export const storedTimes = 'message_interceptors.incoming.set_header_timestamp.overwrite = false'

type Cluster = { nodes: readonly EngineNode[]; isNewer: boolean; lines: readonly string[] }

function configOf({ port, mqttPort, monitorPort }: EngineNode, { nodes, isNewer, lines }: Cluster): string {
  const config = [
    `listeners.tcp.1 = 127.0.0.1:${port}`,
    `mqtt.listeners.tcp.1 = 127.0.0.1:${mqttPort}`,
    'mqtt.allow_anonymous = true',
    `management.tcp.ip = 127.0.0.1`,
    `management.tcp.port = ${monitorPort}`,
    'collect_statistics_interval = 1000',
    ...(isNewer
      ? ['anonymous_login_user = guest', 'anonymous_login_pass = guest']
      : ['mqtt.default_user = guest', 'mqtt.default_pass = guest']),
    ...(nodes.length > 1 ? ['cluster_formation.peer_discovery_backend = classic_config'] : []),
    ...nodes.map(({ name }, index) => `cluster_formation.classic_config.nodes.${index + 1} = ${name}`),
    ...lines,
  ]
  return `${config.join('\n')}\n`
}

type Queue = {
  name: string
  type?: string
  node?: string
  leader?: string
  members?: readonly string[]
  online?: readonly string[]
}

async function isReady(node: EngineNode, nodes: readonly EngineNode[]): Promise<boolean> {
  const running = (await ask(node, 'nodes')) as { name: string; running: boolean }[]
  if (running.filter((one) => one.running).length !== nodes.length) return false
  const queues = await queuesOf(node)
  for (const { type, leader, members = [], online = [] } of queues) {
    if (type !== 'quorum') continue
    if (!members.every((member) => online.includes(member))) return false
    if (leader === undefined || leader === '') return false
  }
  // Its listener opens before it takes clients.
  const client = connect(`mqtt://127.0.0.1:${node.mqttPort}`, {
    username: 'guest',
    password: 'guest',
    protocolVersion: 4,
    reconnectPeriod: 0,
    connectTimeout: 5000,
  })
  const isConnected = await new Promise<boolean>((resolve) => {
    client.on('error', () => resolve(false))
    client.once('close', () => resolve(false))
    client.once('connect', () => resolve(true))
  })
  client.end(true)
  return isConnected
}

async function queuesOf(node: EngineNode): Promise<Queue[]> {
  return (await ask(node, 'queues')) as Queue[]
}

/** Of the management; it follows some seconds behind. */
async function ask({ monitorPort }: EngineNode, what: string): Promise<unknown> {
  const authorization = `Basic ${Buffer.from('guest:guest').toString('base64')}`
  const answer = await fetch(`http://127.0.0.1:${monitorPort}/api/${what}`, { headers: { authorization } })
  if (!answer.ok) throw new Error(`management: ${answer.status} ${await answer.text()}`)
  return await answer.json()
}
