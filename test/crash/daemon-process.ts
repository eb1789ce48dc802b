// daemon-process.ts: the daemon as a child process: starts it, queries it, and kills it by its process id. No
// daemon runs after the test.

import { fork, type ChildProcess } from 'node:child_process'
import { join } from 'node:path'
import { setTimeout as pauseMs } from 'node:timers/promises'
import type { Status } from '../../src/ops/status-schema/status-schema.ts'
import type { DaemonWord } from './killable-daemon.ts'
import type { AnyPoint, Mistake } from './kill-points.ts'

export type DaemonOptions = {
  configPath: string
  kill?: { point: AnyPoint; after: number } | null
  mistake?: Mistake | null
  /** The disk is full at this write of each of the first openings of the store. */
  enospc?: { at: number; times: number } | null
  /** The wall clock of the daemon is wrong. */
  clockBehindMs?: number
  env?: Record<string, string>
  onEvent?: (event: string, detail: string) => void
}

export type ReadyDaemon = { mqttPort: number; wsPort: number; opsUrl: string }

export type Daemon = AsyncDisposable & {
  readonly pid: number
  /** Null when it ended before it was ready. */
  readonly ready: Promise<ReadyDaemon | null>
  /** Resolves when the process is gone, with its signal or exit status. */
  readonly ended: Promise<string>
  readonly running: boolean
  kill(): void
  /** SIGTERM. */
  stop(): Promise<string>
  /** Null where it no longer answers. */
  status(): Promise<Status | null>
  /** The last lines of its output. */
  log(): string
}

const logLinesMax = 60

export function startDaemon(options: DaemonOptions): Daemon {
  const { kill = null, mistake = null, enospc = null, clockBehindMs = 0 } = options
  const child = fork(
    join(import.meta.dirname, 'killable-daemon.ts'),
    [
      '--config',
      options.configPath,
      ...(kill === null ? [] : ['--kill-at', kill.point, '--after', String(kill.after)]),
      ...(mistake === null ? [] : ['--mistake', mistake]),
      ...(clockBehindMs === 0 ? [] : ['--clock-behind', `${clockBehindMs}`]),
      ...(enospc === null ? [] : ['--enospc-at', `${enospc.at}`, '--enospc-times', `${enospc.times}`]),
    ],
    { stdio: ['ignore', 'pipe', 'pipe', 'ipc'], execArgv: [], env: { ...process.env, ...options.env } },
  )
  const { pid } = child
  if (pid === undefined) throw new Error('the daemon could not be started')
  const lines = keepLastLines(child)
  const killChild = () => void child.kill('SIGKILL')
  process.once('exit', killChild)
  const ended = new Promise<string>((resolve) => {
    child.once('exit', (code, signal) => {
      process.removeListener('exit', killChild)
      resolve(signal ?? `exit ${code}`)
    })
  })
  let opsUrl: string | null = null
  const ready = new Promise<ReadyDaemon | null>((resolve) => {
    child.on('message', (word: DaemonWord) => {
      if (word.kind === 'event') options.onEvent?.(word.event, word.detail)
      else {
        opsUrl = word.ops
        // Without a listener the spool is refused.
        const portOf = (url: string) => (url === '' ? 0 : Number(new URL(url).port))
        resolve({ mqttPort: portOf(word.mqtt), wsPort: portOf(word.ws), opsUrl: word.ops })
      }
    })
    void ended.then(() => resolve(null))
  })
  const isRunning = () => child.exitCode === null && child.signalCode === null

  return {
    pid,
    ready,
    ended,
    get running() {
      return isRunning()
    },
    kill: killChild,
    stop() {
      child.kill('SIGTERM')
      return ended
    },
    async status() {
      if (opsUrl === null || !isRunning()) return null
      try {
        const response = await fetch(`${opsUrl}/status`, { signal: AbortSignal.timeout(5000) })
        return (await response.json()) as Status
      } catch {
        return null
      }
    },
    log: () => lines.join('\n'),
    async [Symbol.asyncDispose]() {
      if (isRunning()) killChild()
      await ended
    },
  }
}

function keepLastLines(child: ChildProcess): string[] {
  const lines: string[] = []
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (chunk: Buffer) => {
      lines.push(...chunk.toString().trimEnd().split('\n'))
      lines.splice(0, Math.max(0, lines.length - logLinesMax))
    })
  }
  return lines
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
