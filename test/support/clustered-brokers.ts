// clustered-brokers.ts: NATS and RabbitMQ of the system as processes of the test, one node each, with MQTT 3.1.1 on a
// port of loopback. Tests that need them skip where they are not installed (Debian: nats-server, rabbitmq-server).

import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { newFolder } from './folders.ts'
import { answers, freePort } from './mosquitto.ts'

const natsProgram = '/usr/sbin/nats-server'
const rabbitProgram = '/usr/lib/rabbitmq/bin/rabbitmq-server'

export const hasNats = installed(natsProgram, 'nats-server')
export const hasRabbit = installed(rabbitProgram, 'rabbitmq-server')

export type ClusteredBroker = {
  /** Of MQTT. */
  readonly port: number
  start(): Promise<void>
  /** SIGKILL: what it has acknowledged must be on disk. */
  kill(): Promise<void>
}

export async function startNats(): Promise<ClusteredBroker> {
  const folder = await newFolder()
  const port = await freePort()
  const path = join(folder, 'nats.conf')
  const config = [
    'server_name: one',
    'host: 127.0.0.1',
    `port: ${await freePort()}`,
    `jetstream { store_dir: "${folder}/store" }`,
    `mqtt { host: 127.0.0.1, port: ${port} }`,
  ]
  await writeFile(path, config.join('\n'))
  return startBroker(port, () => spawnGroup(natsProgram, ['-c', path]))
}

export async function startRabbit(): Promise<ClusteredBroker> {
  const folder = await newFolder()
  const [port, amqpPort, nodePort, epmdPort] = [
    await freePort(),
    await freePort(),
    await freePort(),
    await freePort(),
  ]
  const config = [
    `listeners.tcp.1 = 127.0.0.1:${amqpPort}`,
    `mqtt.listeners.tcp.1 = 127.0.0.1:${port}`,
    'mqtt.allow_anonymous = true',
    'mqtt.default_user = guest',
    'mqtt.default_pass = guest',
  ]
  await writeFile(join(folder, 'rabbitmq.conf'), `${config.join('\n')}\n`)
  await writeFile(join(folder, 'plugins'), '[rabbitmq_mqtt].\n')
  const env = {
    HOME: folder,
    ERL_EPMD_PORT: String(epmdPort),
    RABBITMQ_NODENAME: 'one@localhost',
    RABBITMQ_DIST_PORT: String(nodePort),
    RABBITMQ_CONFIG_FILE: join(folder, 'rabbitmq.conf'),
    RABBITMQ_ENABLED_PLUGINS_FILE: join(folder, 'plugins'),
    RABBITMQ_MNESIA_BASE: join(folder, 'data'),
    RABBITMQ_LOG_BASE: join(folder, 'log'),
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS: '-kernel inet_dist_use_interface {127,0,0,1}',
  }
  // It would start its own, which outlives it.
  const names = spawnGroup('/usr/bin/epmd', ['-address', '127.0.0.1', '-port', String(epmdPort)])
  onTestFinished(() => killGroup(names))
  await answers(epmdPort)
  return startBroker(port, () => spawnGroup(rabbitProgram, [], env))
}

async function startBroker(port: number, run: () => ChildProcess): Promise<ClusteredBroker> {
  let child: ChildProcess | null = null

  async function start(): Promise<void> {
    const started = run()
    child = started
    let said = ''
    for (const stream of [started.stdout, started.stderr])
      stream?.on('data', (chunk) => (said = `${said}${String(chunk)}`.slice(-4000)))
    const ended = once(started, 'exit').then(() => {
      throw new Error(`the broker ended: ${said}`)
    })
    ended.catch(() => undefined)
    await Promise.race([ended, answers(port)])
  }

  async function kill(): Promise<void> {
    if (child !== null) await killGroup(child)
    child = null
  }

  onTestFinished(kill)
  await start()
  return { port, start, kill }
}

/** RabbitMQ runs as a child of a shell script. */
function spawnGroup(program: string, words: readonly string[], env: NodeJS.ProcessEnv = {}): ChildProcess {
  return spawn(program, words, {
    detached: true,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
}

async function killGroup(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  process.kill(-child.pid, 'SIGKILL')
  await ended
}

function installed(program: string, name: string): boolean {
  const is = existsSync(program)
  if (!is) process.stderr.write(`Bridges are not tried with ${name}: the package is not installed\n`)
  return is
}
