// mosquitto.ts: Mosquitto of the system as a process of the test, on ports of its own. Tests that need it skip where
// it is not installed (Debian: the package mosquitto).

import { spawn, type ChildProcess } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { chmod, writeFile } from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { connectAsync, type IClientOptions, type MqttClient } from 'mqtt'
import { onTestFinished } from 'vitest'
import { newFolder } from './folders.ts'

const program = '/usr/sbin/mosquitto'

export const hasMosquitto = existsSync(program)
if (!hasMosquitto)
  process.stderr.write('Bridges are not tried with Mosquitto: the package mosquitto is not installed\n')

export type Mosquitto = {
  readonly ports: readonly number[]
  /** Of the first listener. */
  readonly port: number
  start(): Promise<void>
  /** SIGTERM: it writes its persistence. */
  stop(): Promise<void>
  kill(): Promise<void>
}

export type MosquittoOptions = {
  /** Lines after `listener PORT 127.0.0.1`, for each listener. */
  listeners?: readonly (readonly string[])[]
  /** Further lines, such as those of a bridge. */
  lines?: readonly string[]
  /** Files that the lines name by `%d/NAME`. */
  files?: Record<string, string>
}

/** Keeps sessions and messages over a restart, without limits of its own. */
export async function startMosquitto(options: MosquittoOptions = {}): Promise<Mosquitto> {
  const folder = await newFolder()
  // It does not run as root: as another user it must reach its files.
  await chmod(folder, 0o777)
  const { listeners = [[]], lines = [], files = {} } = options
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text, { mode: 0o644 })
  const ports = await Promise.all(listeners.map(() => freePort()))
  const config = [
    'per_listener_settings false',
    'allow_anonymous true',
    'persistence true',
    `persistence_location ${folder}/`,
    // It writes them when it stops.
    'autosave_interval 0',
    'max_queued_messages 0',
    'max_inflight_messages 100',
    'set_tcp_nodelay true',
    ...lines,
    ...listeners.flatMap((more, index) => [`listener ${ports[index]} 127.0.0.1`, ...more]),
  ].map((line) => line.replaceAll('%d', folder))
  const path = join(folder, 'mosquitto.conf')
  await writeFile(path, `${config.join('\n')}\n`, { mode: 0o644 })
  let child: ChildProcess | null = null

  async function start(): Promise<void> {
    // The one that runs would be left behind.
    if (child !== null) throw new Error('Mosquitto was started before, and not stopped')
    child = spawn(program, ['-c', path], { stdio: ['ignore', 'ignore', 'pipe'] })
    let said = ''
    child.stderr?.on('data', (chunk) => (said += String(chunk)))
    const ended = once(child, 'exit').then(() => {
      throw new Error(`Mosquitto ended: ${said}`)
    })
    for (const port of ports) await Promise.race([ended, answers(port)])
    ended.catch(() => undefined)
  }

  async function end(signal: NodeJS.Signals): Promise<void> {
    const ending = child
    child = null
    if (ending === null || ending.exitCode !== null) return
    const ended = once(ending, 'exit')
    ending.kill(signal)
    await ended
  }

  onTestFinished(() => end('SIGKILL'))
  await start()
  return { ports, port: ports[0] ?? 0, start, stop: () => end('SIGTERM'), kill: () => end('SIGKILL') }
}

/**
 * A port below those that the kernel gives out: no connection and no server of another test takes it before the
 * program listens, or while it restarts.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(15_000, 32_000)
    const server = createServer().listen(port, '127.0.0.1')
    const isFree = await once(server, 'listening').then(
      () => true,
      () => false,
    )
    if (!isFree) continue
    server.close()
    await once(server, 'close')
    return port
  }
}

/** Resolves when the port accepts connections; the timeout of the test bounds it. */
export async function answers(port: number): Promise<void> {
  for (;;) {
    const socket = connect({ port, host: '127.0.0.1' })
    const isOpen = await new Promise<boolean>((resolve) => {
      socket.once('connect', () => resolve(true))
      socket.once('error', () => resolve(false))
    })
    socket.destroy()
    if (isOpen) return
    await new Promise((resolve) => {
      setTimeout(resolve, 10)
    })
  }
}

/** Publishes with QoS 1 and resolves when the broker has acknowledged all. */
export async function publishAll(
  url: string,
  messages: readonly { topic: string; payload: string }[],
  options: IClientOptions = {},
): Promise<void> {
  const client: MqttClient = await connectAsync(url, options)
  await Promise.all(messages.map(({ topic, payload }) => client.publishAsync(topic, payload, { qos: 1 })))
  await client.endAsync()
}
