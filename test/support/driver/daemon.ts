// daemon.ts: the gateway as a user starts it, in processes of their own: the daemon and its commands. What the test knows
// of a daemon is its log, its HTTP and its end. No daemon runs after its test, and a command has a time limit, so that
// one that loops or hangs is a finding and not an endless run.

import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { setTimeout as pauseMs } from 'node:timers/promises'
import type { Status } from '../../../src/ops/status-schema/status-schema.ts'
import { sandboxAccount } from '../../../src/sandbox/sandbox.ts'

export type LogLine = { event?: string; level?: string; msg?: string } & Record<string, unknown>

/** A port is 0 where there is none. */
export type ReadyDaemon = { mqttPort: number; wsPort: number; opsUrl: string }

type Scheme = 'mqtt' | 'mqtts' | 'ws' | 'wss'

export type Daemon = AsyncDisposable & {
  readonly pid: number
  /** Null when it ended before it was ready. */
  readonly ready: Promise<ReadyDaemon | null>
  /** Resolves when the process is gone, with its signal or exit status: `SIGKILL`, `exit 0`. */
  readonly ended: Promise<string>
  readonly running: boolean
  /** The first lines of its log. */
  readonly lines: readonly LogLine[]
  readonly lineCount: number
  /** The last lines, as they are. */
  log(): string
  /** All that it listens on, in the order of its config; empty until it is ready. */
  addresses(): readonly string[]
  /** Of HTTP; null until its log names it. */
  opsUrl(): string | null
  /** 0 where there is none. */
  port(scheme?: Scheme): number
  /** Resolves with the first line of such an event, also one of the past; null when the process ended. */
  event(...events: string[]): Promise<LogLine | null>
  /** SIGKILL. */
  kill(): Promise<string>
  /** SIGTERM. */
  stop(): Promise<string>
  /** Null where it does not answer. */
  status(): Promise<Status | null>
}

export type DaemonOptions = {
  /** Words before the program: another program that starts it. */
  by?: readonly string[]
  /** The program and its words before `--config`. */
  program?: readonly string[]
  /** Words behind the config. */
  words?: readonly string[]
  env?: NodeJS.ProcessEnv
  onLine?: (line: LogLine) => void
  /** Each line as it is. */
  onText?: (text: string) => void
}

export const main = new URL('../../../src/main.ts', import.meta.url).pathname
const linesMax = 5000
const lastLinesMax = 60
const statusMs = 10_000

/** With the credentials of the account that each service of a test knows. */
const envWith = (env: NodeJS.ProcessEnv = {}) => ({
  ...process.env,
  AWS_ACCESS_KEY_ID: sandboxAccount.accessKeyId,
  AWS_SECRET_ACCESS_KEY: sandboxAccount.secret.reveal(),
  ...env,
})

export function startDaemon(config: string, options: DaemonOptions = {}): Daemon {
  const { by = [], program = [main, 'run'], words = [], env, onLine, onText } = options
  const [first = '', ...rest] = [...by, process.execPath, ...program, '--config', config, ...words]
  const child = spawn(first, rest, { env: envWith(env), stdio: ['ignore', 'pipe', 'pipe'] })
  endWithParent(child)
  const lines: LogLine[] = []
  const lastLines: string[] = []
  const waiters = new Set<() => void>()
  let lineCount = 0
  const take = (text: string) => {
    const line = lineOf(text)
    lineCount += 1
    if (lines.length < linesMax) lines.push(line)
    lastLines.push(text)
    if (lastLines.length > lastLinesMax) lastLines.shift()
    onLine?.(line)
    onText?.(text)
    for (const wake of waiters) wake()
  }
  for (const stream of [child.stdout, child.stderr]) createInterface({ input: stream }).on('line', take)
  const ended = once(child, 'close').then(([code, signal]) => String(signal ?? `exit ${code}`))
  void ended.then(() => {
    for (const wake of waiters) wake()
  })
  const isRunning = () => child.exitCode === null && child.signalCode === null
  const addresses = () =>
    lines.flatMap(({ addresses: found }) => (Array.isArray(found) ? (found as string[]) : []))
  const opsUrl = () => addresses().find((address) => address.startsWith('http')) ?? null

  const port = (scheme: Scheme = 'mqtt') =>
    Number(new URL(addresses().find((one) => one.startsWith(`${scheme}:`)) ?? 'mqtt://x:0').port)

  async function event(...events: string[]): Promise<LogLine | null> {
    for (;;) {
      const found = lines.find((line) => line.event !== undefined && events.includes(line.event))
      if (found !== undefined) return found
      if (!isRunning()) return null
      await new Promise<void>((resolve) => {
        const wake = () => {
          waiters.delete(wake)
          resolve()
        }
        waiters.add(wake)
      })
    }
  }

  return {
    pid: child.pid ?? 0,
    ready: event('gateway_ready').then((line) =>
      line === null ? null : { mqttPort: port('mqtt'), wsPort: port('ws'), opsUrl: opsUrl() ?? '' },
    ),
    ended,
    get running() {
      return isRunning()
    },
    lines,
    get lineCount() {
      return lineCount
    },
    log: () => lastLines.join('\n'),
    addresses,
    opsUrl,
    port,
    event,
    kill() {
      child.kill('SIGKILL')
      return ended
    },
    stop() {
      child.kill('SIGTERM')
      return ended
    },
    async status() {
      const url = opsUrl()
      if (url === null || !isRunning()) return null
      try {
        const response = await fetch(`${url}/status`, { signal: AbortSignal.timeout(statusMs) })
        return (await response.json()) as Status
      } catch {
        return null
      }
    },
    async [Symbol.asyncDispose]() {
      if (isRunning()) child.kill('SIGKILL')
      await ended
    },
  }
}

function lineOf(text: string): LogLine {
  try {
    return JSON.parse(text) as LogLine
  } catch {
    return { event: 'not JSON', msg: text }
  }
}

/** Polls the status until `holds` is true; throws after `boundMs` or when the daemon has ended. */
export async function statusUntil(
  daemon: Daemon,
  holds: (status: Status) => boolean,
  { what, boundMs }: { what: string; boundMs: number },
): Promise<Status> {
  const deadlineMs = performance.now() + boundMs
  for (;;) {
    const status = await daemon.status()
    if (status !== null && holds(status)) return status
    if (!daemon.running || performance.now() > deadlineMs) {
      const last =
        status === null ? 'no status' : JSON.stringify([status.lanes, status.internals.conservation])
      throw new Error(`${what} was not reached (${last}); the daemon's last lines:\n${daemon.log()}`)
    }
    await pauseMs(20)
  }
}

export function openPayloads(status: Status): number {
  return status.lanes.reduce((sum, lane) => sum + lane.pending + lane.sealed, 0)
}

export type CommandEnd = { status: string; stdout: string; stderr: string; tookMs: number }

/** Runs a command of the gateway; `status` is `exit N`, a signal, or `timeout`. */
export async function runCommand(
  argv: readonly string[],
  { env, timeoutMs }: { env?: NodeJS.ProcessEnv; timeoutMs: number },
): Promise<CommandEnd> {
  const startedMs = performance.now()
  const child = spawn(process.execPath, [main, ...argv], { env: envWith(env), stdio: 'pipe' })
  endWithParent(child)
  const out: Record<'stdout' | 'stderr', string> = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const)
    child[name].on('data', (part: Buffer) => {
      if (out[name].length < 8 * 1024 ** 2) out[name] += part.toString()
    })
  let late = false
  const timer = setTimeout(() => {
    late = true
    child.kill('SIGKILL')
  }, timeoutMs)
  const [code, signal] = (await once(child, 'close')) as [number | null, string | null]
  clearTimeout(timer)
  const status = late ? 'timeout' : (signal ?? `exit ${code}`)
  return { status, ...out, tookMs: performance.now() - startedMs }
}

function endWithParent(child: ChildProcess): void {
  const end = () => void child.kill('SIGKILL')
  process.once('exit', end)
  child.once('exit', () => process.removeListener('exit', end))
}
