// children.ts: the processes of the bench: started, waited for, and ended by their own id, whatever happens.

import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { openSync, closeSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

const repository = fileURLToPath(new URL('../..', import.meta.url))
/** How long a process may take from SIGTERM to its end before SIGKILL. */
const endMs = 45_000

export type Child = AsyncDisposable & {
  pid: number
  /** False as soon as the process has ended. */
  readonly running: boolean
  signal(name: NodeJS.Signals): void
  /** SIGTERM, and SIGKILL when that is not enough. */
  end(): Promise<void>
}

/** A script of this folder that serves: ready with its first line, `{"port":N}`. */
export async function startServer(
  script: string,
  args: readonly string[] = [],
): Promise<Child & { port: number }> {
  const child = spawnNode([`test/bench/${script}`, ...args])
  const running = childOf(child)
  const line = await Promise.race([lines(child).next(), once(child, 'exit').then(() => null)])
  if (line === null || line.done) throw new Error(`${script} ended before it was ready`)
  return Object.assign(running, { port: (JSON.parse(line.value) as { port: number }).port })
}

/** A script of this folder that measures: its last line is the result. */
export async function runScript<Result>(
  script: string,
  args: readonly string[],
  timeoutMs = 600_000,
): Promise<Result> {
  const child = spawnNode([`test/bench/${script}`, ...args])
  await using running = childOf(child)
  const timer = setTimeout(() => running.signal('SIGKILL'), timeoutMs)
  let last: string | null = null
  for await (const line of lines(child)) last = line
  if (running.running) await once(child, 'exit')
  clearTimeout(timer)
  if (child.exitCode !== 0 || last === null)
    throw new Error(`${script} ${args.join(' ')} ended with status ${child.exitCode ?? child.signalCode}`)
  return JSON.parse(last) as Result
}

/** The daemon itself; its output goes to a file. */
export function startDaemon(
  args: readonly string[],
  options: { logFile: string; env: NodeJS.ProcessEnv },
): Child {
  const log = openSync(options.logFile, 'a')
  try {
    return childOf(
      spawn(process.execPath, args, { cwd: repository, stdio: ['ignore', log, log], env: options.env }),
    )
  } finally {
    closeSync(log)
  }
}

function spawnNode(args: readonly string[]): ChildProcess {
  return spawn(process.execPath, args, { cwd: repository, stdio: ['pipe', 'pipe', 'inherit'] })
}

function childOf(child: ChildProcess): Child {
  const { pid } = child
  if (pid === undefined) throw new Error(`cannot start ${child.spawnargs.join(' ')}`)
  const isRunning = () => child.exitCode === null && child.signalCode === null
  // When the bench itself is ended, nobody stays behind. Before the folders go, so that nobody writes there again.
  const onExit = () => child.kill('SIGKILL')
  process.prependOnceListener('exit', onExit)
  child.once('exit', () => process.removeListener('exit', onExit))

  async function end(): Promise<void> {
    if (!isRunning()) return
    const ended = once(child, 'exit')
    child.kill('SIGTERM')
    const timer = setTimeout(() => child.kill('SIGKILL'), endMs)
    await ended
    clearTimeout(timer)
  }

  return {
    pid,
    get running() {
      return isRunning()
    },
    signal: (name) => void child.kill(name),
    end,
    [Symbol.asyncDispose]: end,
  }
}

async function* lines(child: ChildProcess): AsyncGenerator<string, undefined> {
  if (child.stdout === null) return
  for await (const line of createInterface({ input: child.stdout })) yield line
}
