// message-engine.ts: a NATS or RabbitMQ as processes of the test, on ports of loopback: one node or three. A node is
// killed by the id of the process that serves (for RabbitMQ: the Erlang VM), stopped by SIGTERM, and started again with
// its data.
//
// One node runs the package of the machine (Debian: nats-server, rabbitmq-server), three nodes those that
// `install-engines.sh` unpacks. Tests skip with a message where they are missing.

import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { answers } from '../support/mosquitto.ts'

export type EngineNode = {
  readonly name: string
  readonly mqttPort: number
  /** Of AMQP, or of the clients of NATS. */
  readonly port: number
  /** Of `/healthz` and the like, or of the management of RabbitMQ. */
  readonly monitorPort: number
}

export type Engine = {
  readonly kind: 'nats' | 'rabbitmq'
  readonly nodes: readonly EngineNode[]
  /** What the nodes have on the disk. */
  readonly folder: string
  /** `nats://127.0.0.1:PORT` or `amqp://...` of each node. */
  readonly urls: readonly string[]
  /** `mqtt://127.0.0.1:PORT` of each node. */
  readonly mqttUrls: readonly string[]
  /** Of the process that serves; null while it does not run. */
  pid(node: number): number | null
  /** SIGKILL. */
  kill(node: number): Promise<void>
  killAll(): Promise<void>
  /** SIGTERM, and waits for the end. */
  stop(node: number): Promise<void>
  stopAll(): Promise<void>
  /** Starts a node that was killed or stopped; does not wait until it is ready. */
  start(node: number): void
  startAll(): void
  /** Starts it, and waits until all nodes are ready. */
  restart(node: number): Promise<void>
  /** All nodes run, replicate and take messages. */
  ready(): Promise<void>
  /** Of a stream, of a consumer as STREAM/NAME, or of a queue. Rejects where nothing leads. */
  leaderOf(name: string): Promise<number>
}

/** Where `install-engines.sh` unpacks. */
export const enginesFolder =
  process.env['TELEMETRY_TEST_ENGINES'] ?? join(tmpdir(), 'telemetry-gateway-engines')

/** Where a program is, says on stderr if not. */
export function isInstalled(path: string, how: string): boolean {
  const is = existsSync(path)
  if (!is) process.stderr.write(`Tests with ${path} are skipped: it is missing. ${how}\n`)
  return is
}

/** What runs a function when the test, or with `afterAll` when the file, is done. */
export type AtEnd = (end: () => Promise<void>) => void

export const atEndOfTest: AtEnd = (end) => onTestFinished(end)

export async function engineFolder(atEnd: AtEnd): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'gateway-engine-'))
  atEnd(() => rm(folder, { recursive: true, force: true }))
  return folder
}

type Parts = {
  kind: Engine['kind']
  folder: string
  nodes: readonly EngineNode[]
  run(node: number): ChildProcess
  /** Of a node whose ports are open. */
  isReady(node: EngineNode): Promise<boolean>
  leaderOf(name: string): Promise<string | null>
  scheme: string
}

/** Starts all nodes and waits until they are ready. */
export async function startEngine(parts: Parts, atEnd: AtEnd): Promise<Engine> {
  const { kind, nodes, folder, run, isReady, scheme } = parts
  const processes = nodes.map((node, index) => createProcess(node.name, () => run(index)))
  atEnd(async () => {
    await Promise.all(processes.map(({ end }) => end('SIGKILL')))
  })
  const endAll = async (signal: NodeJS.Signals) => {
    await Promise.all(processes.map(({ end }) => end(signal)))
  }
  const engine: Engine = {
    kind,
    nodes,
    folder,
    urls: nodes.map(({ port }) => `${scheme}://127.0.0.1:${port}`),
    mqttUrls: nodes.map(({ mqttPort }) => `mqtt://127.0.0.1:${mqttPort}`),
    pid: (node) => processes[node]!.pid(),
    kill: (node) => processes[node]!.end('SIGKILL'),
    killAll: () => endAll('SIGKILL'),
    stop: (node) => processes[node]!.end('SIGTERM'),
    stopAll: () => endAll('SIGTERM'),
    start: (node) => processes[node]!.start(),
    startAll() {
      for (const { start } of processes) start()
    },
    async restart(node) {
      engine.start(node)
      await engine.ready()
    },
    async ready() {
      await Promise.race([allReady(), ...processes.map(({ failure }) => failure())])
    },
    async leaderOf(name) {
      const leader = await parts.leaderOf(name)
      const index = nodes.findIndex((node) => node.name === leader)
      if (index === -1) throw new Error(`nothing leads ${name}`)
      return index
    },
  }

  async function allReady(): Promise<void> {
    for (const node of nodes) {
      await Promise.all([answers(node.mqttPort), answers(node.port), answers(node.monitorPort)])
      await eventually(() => isReady(node).catch(() => false))
    }
  }

  engine.startAll()
  await engine.ready()
  return engine
}

/** One process that is started again and again. */
export function createProcess(name: string, run: () => ChildProcess) {
  let child: ChildProcess | null = null
  let said = ''

  return {
    pid: () => (isRunning(child) ? (child!.pid ?? null) : null),
    start() {
      if (isRunning(child)) throw new Error(`${name} runs`)
      child = run()
      said = ''
      for (const stream of [child.stdout, child.stderr])
        stream?.on('data', (chunk) => (said = `${said}${String(chunk)}`.slice(-6000)))
    },
    async end(signal: NodeJS.Signals) {
      const ending = child
      child = null
      if (!isRunning(ending)) return
      const ended = once(ending!, 'exit')
      ending!.kill(signal)
      await ended
    },
    /** Rejects when it ends by itself. */
    async failure(): Promise<never> {
      const running = child
      if (isRunning(running)) await once(running!, 'exit')
      if (child !== running) return await new Promise<never>(() => undefined)
      throw new Error(`${name} ended: ${said}`)
    },
  }
}

function isRunning(child: ChildProcess | null): boolean {
  return child !== null && child.exitCode === null && child.signalCode === null
}

/** It does not outlive a test run that is killed: it ends with this process, and this one with the run. */
export function spawnEngine(
  program: string,
  words: readonly string[],
  env: NodeJS.ProcessEnv = {},
): ChildProcess {
  // A worker of vitest goes on where the process that started it is killed.
  if (process.listenerCount('disconnect', endWorker) === 0) process.once('disconnect', endWorker)
  return spawn('setpriv', ['--pdeathsig', 'KILL', '--', program, ...words], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
}

function endWorker(): void {
  process.exit()
}
