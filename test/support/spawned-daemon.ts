// spawned-daemon.ts: the gateway as `telemetry-gateway run` starts it, in a process of its own, and commands in
// processes of their own. Both can be killed.

import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { onTestFinished } from 'vitest'
import { sandboxAccount } from '../../src/sandbox/sandbox.ts'

/** `control`: the control socket, as a value of `--url`. */
export type SpawnedDaemon = {
  pid: number
  url: string
  mqttPort: number
  control: string
  /** The event gateway_starting. */
  starting: Record<string, unknown>
  /** Of the process: its status and its signal. */
  ended: Promise<unknown>
  log(): string
  kill(): Promise<unknown>
  /** SIGTERM. */
  stop(): Promise<unknown>
}

const main = new URL('../../src/main.ts', import.meta.url).pathname

/** Resolves with the path of the config; the spool is `spool` beside it. */
export async function writeDaemonConfig(folder: string, serviceUrl: string): Promise<string> {
  const config = join(folder, 'gateway.yaml')
  await writeFile(
    config,
    [
      'ingest: { broker: { listeners: [{ url: "mqtt://127.0.0.1:0" }], access: { anonymous: true }, limits: { max_messages_per_s: 1000000 } } }',
      'sources: [{ name: a, topic: "a/{device}", map: { time: { path: t, format: ms }, latitude: { path: x }, longitude: { path: y } } }]',
      'defaults: { carrier: ACME, operator: OP1, asset_type: TRACTOR }',
      'spool: { path: ./spool, allow_in_memory: true, max_bytes: 1GiB, min_free_bytes: 1MiB }',
      `delivery: { base_url: "${serviceUrl}", batch: { max_payloads: 100, linger: 5ms } }`,
      'ops: { listen: "127.0.0.1:0" }',
    ].join('\n'),
  )
  return config
}

export type SpawnOptions = {
  /** A program and arguments that start the daemon. */
  by?: readonly string[]
  env?: NodeJS.ProcessEnv
}

export async function startSpawnedDaemon(
  config: string,
  { by = [], env = {} }: SpawnOptions = {},
): Promise<SpawnedDaemon> {
  const [program, ...words] = [...by, process.execPath, main, 'run', '--config', config]
  const child = spawn(program, words, {
    env: {
      ...process.env,
      AWS_ACCESS_KEY_ID: sandboxAccount.accessKeyId,
      AWS_SECRET_ACCESS_KEY: sandboxAccount.secret.reveal(),
      ...env,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = once(child, 'exit')
  onTestFinished(() => void child.kill('SIGKILL'))
  let starting: Record<string, unknown> = {}
  let log = ''
  child.stdout.on('data', (text: Buffer) => {
    log += text.toString()
  })
  for await (const line of createInterface({ input: child.stdout })) {
    const fields = JSON.parse(line) as { event: string; addresses?: string[] }
    const { event, addresses } = fields
    if (event === 'gateway_starting') starting = fields
    if (event !== 'gateway_ready') continue
    child.stdout.resume()
    return {
      pid: child.pid ?? 0,
      ended,
      starting,
      log: () => log,
      url: addresses?.find((address) => address.startsWith('http')) ?? '',
      mqttPort: Number(
        addresses
          ?.find((address) => address.startsWith('mqtt'))
          ?.split(':')
          .at(-1),
      ),
      control: addresses?.find((address) => address.startsWith('unix:')) ?? '',
      kill() {
        child.kill('SIGKILL')
        return ended
      },
      stop() {
        child.kill('SIGTERM')
        return ended
      },
    }
  }
  throw new Error('the daemon ended before it was ready')
}

/** A command in its own process. */
export function spawnCommand(argv: readonly string[]): { child: ChildProcess; ended: Promise<string> } {
  const child = spawn(process.execPath, [main, ...argv], { stdio: ['ignore', 'pipe', 'pipe'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  let text = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => {
      text += chunk.toString()
    })
  const ended = once(child, 'close').then(([code, signal]) => `${signal ?? `exit ${code}`}\n${text}`)
  return { child, ended }
}

export async function statusOf({ url }: SpawnedDaemon) {
  const status = (await (await fetch(`${url}/status`)).json()) as {
    lanes: { pending: number; sealed: number }[]
    spool: { deadLetters: number }
  }
  const open = status.lanes.reduce((sum, { pending, sealed }) => sum + pending + sealed, 0)
  return { open, left: status.spool.deadLetters }
}
