// spawned-daemon.ts: the gateway as `telemetry-gateway run` starts it, in a process of its own, and commands in
// processes of their own. Both can be killed.

import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { main, startDaemon } from './driver/daemon.ts'

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

/** Resolves with the path of the config; the spool is `spool` beside it. */
export async function writeDaemonConfig(folder: string, serviceUrl: string): Promise<string> {
  const config = join(folder, 'gateway.yaml')
  await writeFile(
    config,
    [
      'ingest: { broker: { listeners: [{ url: "mqtt://127.0.0.1:0" }], access: { anonymous: true }, limits: { max_messages_per_s: 1000000 } } }',
      'sources: [{ name: a, topic: "a/{device}", map: { time: { path: t, format: ms }, latitude: { path: x }, longitude: { path: y } } }]',
      'defaults: { carrier: ACME, operator: OP1, asset_type: TRACTOR }',
      'spool: { path: ./spool, allow_in_memory: true, max_bytes: 32MiB, min_free_bytes: 1MiB }',
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

export async function startSpawnedDaemon(config: string, options: SpawnOptions = {}): Promise<SpawnedDaemon> {
  let text = ''
  const daemon = startDaemon(config, { ...options, onText: (line) => (text += `${line}\n`) })
  onTestFinished(() => void daemon.kill())
  const ready = await daemon.ready
  if (ready === null) throw new Error(`the daemon ended before it was ready:\n${daemon.log()}`)
  const rawEnd = (end: string) => (end.startsWith('exit ') ? [Number(end.slice(5)), null] : [null, end])
  return {
    pid: daemon.pid,
    url: ready.opsUrl,
    mqttPort: ready.mqttPort || daemon.port('mqtts'),
    control: daemon.addresses().find((address) => address.startsWith('unix:')) ?? '',
    starting: daemon.lines.find(({ event }) => event === 'gateway_starting') ?? {},
    ended: daemon.ended.then(rawEnd),
    log: () => text,
    kill: async () => rawEnd(await daemon.kill()),
    stop: async () => rawEnd(await daemon.stop()),
  }
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
