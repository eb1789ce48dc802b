// gateway-process.ts: the gateway as a user starts it, in processes of their own: the daemon and its commands.
// Each has a time limit, so that a process that loops or hangs is a finding and not an endless run.

import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { sandboxAccount } from '../../src/sandbox/sandbox.ts'

export type LogLine = { event?: string; level?: string; msg?: string } & Record<string, unknown>

export type RunningGateway = {
  readonly pid: number
  /** Of ops; null until its log names it. */
  opsUrl(): string | null
  mqttPort(scheme?: 'mqtt' | 'mqtts' | 'ws' | 'wss'): number | null
  /** All that it listens on, in the order of its config. */
  addresses(): readonly string[]
  readonly ended: Promise<string>
  readonly running: boolean
  /** Lines of the log, without those of single submissions. */
  readonly lines: readonly LogLine[]
  /** All lines so far; `lines` ends at a limit. */
  readonly lineCount: number
  /** Resolves with the first line of such an event, also one of the past; null when the process ended. */
  event(...events: string[]): Promise<LogLine | null>
  kill(): Promise<string>
  stop(): Promise<string>
}

const main = new URL('../../src/main.ts', import.meta.url).pathname
const linesMax = 5000

const gatewayEnv = (compiled: string) => ({
  ...process.env,
  AWS_ACCESS_KEY_ID: sandboxAccount.accessKeyId,
  AWS_SECRET_ACCESS_KEY: sandboxAccount.secret.reveal(),
  NODE_COMPILE_CACHE: compiled,
})

export function startGatewayProcess(config: string, compiled: string): RunningGateway {
  const child = spawn(process.execPath, [main, 'run', '--config', config], {
    env: gatewayEnv(compiled),
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  endWithParent(child)
  const lines: LogLine[] = []
  const waiters = new Set<() => void>()
  let lineCount = 0
  const take = (text: string) => {
    lineCount += 1
    if (lines.length < linesMax) lines.push(lineOf(text))
    for (const wake of waiters) wake()
  }
  createInterface({ input: child.stdout }).on('line', take)
  createInterface({ input: child.stderr }).on('line', take)
  const ended = once(child, 'close').then(([code, signal]) => String(signal ?? `exit ${code}`))
  void ended.then(() => {
    for (const wake of waiters) wake()
  })
  const isRunning = () => child.exitCode === null && child.signalCode === null
  const addresses = () =>
    lines.flatMap(({ addresses: found }) => (Array.isArray(found) ? (found as string[]) : []))

  return {
    pid: child.pid ?? 0,
    opsUrl: () => addresses().find((address) => address.startsWith('http')) ?? null,
    mqttPort: (scheme = 'mqtt') =>
      Number(new URL(addresses().find((one) => one.startsWith(`${scheme}:`)) ?? 'mqtt://x:0').port) || null,
    addresses,
    ended,
    get running() {
      return isRunning()
    },
    lines,
    get lineCount() {
      return lineCount
    },
    async event(...events) {
      for (;;) {
        const found = lines.find(({ event }) => event !== undefined && events.includes(event))
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
    },
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

function lineOf(text: string): LogLine {
  try {
    return JSON.parse(text) as LogLine
  } catch {
    return { event: 'not JSON', msg: text }
  }
}

export type CommandEnd = { status: string; stdout: string; stderr: string; tookMs: number }

/** Runs a command of the gateway; `status` is `exit N`, a signal, or `timeout`. */
export async function runCommand(
  argv: readonly string[],
  { compiled, timeoutMs }: { compiled: string; timeoutMs: number },
): Promise<CommandEnd> {
  const startedMs = performance.now()
  const child = spawn(process.execPath, [main, ...argv], { env: gatewayEnv(compiled), stdio: 'pipe' })
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
