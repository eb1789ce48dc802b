// installed-gateway.ts: programs of an installation as child processes, and one message from a device to the service.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { createDevice } from '../support/mqtt-device.ts'
import { eventually } from '../support/eventually.ts'
import { machineEnvironment } from './installation.ts'

export type Running = {
  pid: number
  output(): string
  /** Resolves with the match when the output contains it; rejects when the process ends before. */
  printed(pattern: RegExp): Promise<RegExpExecArray>
  /** SIGTERM, or as a terminal does for Ctrl-C: SIGINT to it and all that it started. Resolves with the exit status. */
  stop(how?: 'Ctrl-C'): Promise<number | null>
}

export type RunOptions = { cwd: string; env?: Record<string, string>; uid?: number }

/** Starts a program that runs until it is stopped, or until the test ends. */
export function startProgram([program = '', ...args]: readonly string[], options: RunOptions): Running {
  const { cwd, env = {}, uid } = options
  const user = uid === undefined ? {} : { uid, gid: uid }
  const child = spawn(program, args, { cwd, env: { ...machineEnvironment, ...env }, ...user, detached: true })
  const exited = once(child, 'exit')
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += String(chunk)))
  const killAll = (signal: NodeJS.Signals) => {
    // A group of its own: npm must not outlive the test, nor what it started.
    try {
      if (child.pid !== undefined) process.kill(-child.pid, signal)
    } catch {
      // All of it has ended.
    }
  }
  onTestFinished(() => killAll('SIGKILL'))
  return {
    pid: child.pid ?? 0,
    output: () => output,
    async printed(pattern) {
      await eventually(() => pattern.test(output) || child.exitCode !== null || child.signalCode !== null)
      const match = pattern.exec(output)
      if (match === null) throw new Error(`${program} ended with ${child.exitCode}:\n${output}`)
      return match
    },
    async stop(how) {
      if (how === 'Ctrl-C') killAll('SIGINT')
      else child.kill('SIGTERM')
      const [status] = (await exited) as [number | null]
      return status
    },
  }
}

/** The account of the sandbox, as its help and the README have it. */
export const sandboxKeys = {
  AWS_ACCESS_KEY_ID: 'SANDBOXACCOUNT',
  AWS_SECRET_ACCESS_KEY: 'the-sandbox-account-protects-nothing',
}

/** `telemetry-gateway sandbox`; resolves with its address. */
export async function startSandbox(command: string, cwd: string): Promise<string> {
  const sandbox = startProgram([command, 'sandbox', '--listen', '127.0.0.1:0'], { cwd })
  const [, url = ''] = await sandbox.printed(/listening at (http:\/\/127\.0\.0\.1:\d+)/)
  return url
}

/**
 * A config that needs what is easily lost in a package: a preset (a file), an expression (two packages); delivery
 * itself has a thread. `more` are the lines of `spool` and `delivery.credentials`.
 */
export async function writeConfig(
  folder: string,
  { serviceUrl, spoolPath, credentials }: { serviceUrl: string; spoolPath: string; credentials: string },
): Promise<string> {
  const path = join(folder, 'gateway.yaml')
  await writeFile(
    path,
    `
ingest: { broker: { listeners: [{ url: mqtt://127.0.0.1:0 }], access: { anonymous: true } }, bridges: [] }
sources:
  - name: trucks
    topic: telemetry/v1/{device}
    map: { time: { path: ts, format: ms }, latitude: { path: gps.lat }, longitude: { path: gps.lon } }
  - name: phones
    preset: owntracks
  - name: evaluated
    topic: evaluated/{device}
    map: { time: { path: t, format: ms }, latitude: { expr: 'p[0]' }, longitude: { expr: 'p[1]' } }
defaults: { carrier: ACME, operator: OP1, asset_type: TRACTOR }
spool: { path: ${spoolPath}, min_free_bytes: 1MiB }
delivery: { base_url: '${serviceUrl}', credentials: ${credentials}, batch: { linger: 100ms } }
ops: { listen: 127.0.0.1:0 }
`,
  )
  return path
}

/** Long, for a busy machine. Below the time limit of a test, so that the error has the log of the daemon. */
const deliveryMaxMs = 40_000

const messages = (time: number) => [
  { topic: 'telemetry/v1/truck-7', payload: JSON.stringify({ ts: time, gps: { lat: 52.5, lon: 13.3 } }) },
  {
    topic: 'owntracks/anna/pixel',
    payload: JSON.stringify({ _type: 'location', lat: 46.9, lon: 7.4, tst: time / 1000 }),
  },
  { topic: 'evaluated/van-3', payload: JSON.stringify({ t: time, p: [48.1, 11.5] }) },
]

type ReceivedList = { received: { payload: { gps: { latitude: number } } }[] }

/** Publishes a message to each source and waits until the service has received all of them; it is a new service. */
export async function deliverMessages(daemon: Running, serviceUrl: string): Promise<void> {
  const [, port] = await daemon.printed(/mqtt:\/\/127\.0\.0\.1:(\d+)[\s\S]*"gateway_ready"/)
  const device = await createDevice({ port: Number(port), clientId: 'truck-7' })
  await device.connect()
  const sent = messages(Math.floor(Date.now() / 1000) * 1000)
  for (const [index, message] of sent.entries()) device.publish({ ...message, messageId: index + 1 })
  await device.acked(sent.length)
  device.end()
  const deadlineMs = performance.now() + deliveryMaxMs
  let latitudes: number[] = []
  await eventually(async () => {
    const { received } = (await readJson(`${serviceUrl}/sandbox/received`)) as ReceivedList
    latitudes = received.map(({ payload }) => payload.gps.latitude)
    if (performance.now() > deadlineMs)
      throw new Error(`the service has received ${latitudes.join(', ')}:\n${daemon.output()}`)
    return latitudes.length >= sent.length
  })
  expect(latitudes.toSorted((a, b) => a - b)).toEqual([46.9, 48.1, 52.5])
}

export async function readJson(url: string): Promise<unknown> {
  return (await fetch(url)).json()
}
