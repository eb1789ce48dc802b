// command-hook.ts: runs a program for each alert: no shell, the alert as JSON on stdin, few environment
// variables, a bounded time and bounded output.
//
// The program leads a process group of its own, and the whole group is ended: SIGTERM when the time is over,
// SIGKILL two seconds later, and SIGKILL to what is left of it when the program has ended. What it prints is
// read and thrown away but for an excerpt; beyond 1 MiB it is ended.

import { spawn, type ChildProcess } from 'node:child_process'
import { constants } from 'node:fs'
import { access, stat } from 'node:fs/promises'
import type { Readable, Writable } from 'node:stream'
import { codeOf, messageOf } from '../../std/gateway-error.ts'
import { bounded, visible } from '../../std/quote.ts'
import { bodyOf } from '../alert-body.ts'
import type { AlertReceiver, Sent } from '../types.ts'

const outputBytesMax = 1024 * 1024
const excerptBytesMax = 1024
const checkCommand = 'Run the command by hand as the user of the daemon, with the body of an alert on stdin.'

export function createCommandHook(
  command: readonly string[],
  timeoutMs: number,
  killAfterMs = 2000,
): AlertReceiver {
  const [path = ''] = command
  return {
    type: 'command',
    // Arguments may have secrets.
    target: path,
    timeoutMs,
    send: (alert, ends) =>
      run(command, { input: `${JSON.stringify(bodyOf(alert))}\n`, id: alert.id, killAfterMs }, ends),
    check: () => checkFile(path),
  }
}

function run(
  [path = '', ...args]: readonly string[],
  { input, id, killAfterMs }: { input: string; id: string; killAfterMs: number },
  ends: AbortSignal,
): Promise<Sent> {
  return new Promise((resolve) => {
    const output = { text: '', bytes: 0 }
    let ending: string | null = null
    let killTimer: NodeJS.Timeout | null = null
    const child = spawn(path, args, {
      cwd: '/',
      env: { PATH: '/usr/local/bin:/usr/bin:/bin', LANG: 'C.UTF-8', GATEWAY_ALERT_ID: id },
      stdio: ['pipe', 'pipe', 'pipe'],
      shell: false,
      detached: true,
    })
    // Where no file descriptor is left, a program that cannot be started has no streams.
    const streams: (Readable | Writable | undefined)[] = [child.stdin, child.stdout, child.stderr]
    const end = (why: string) => {
      if (ending !== null) return
      ending = why
      signalGroup(child, 'SIGTERM')
      killTimer = setTimeout(() => signalGroup(child, 'SIGKILL'), killAfterMs)
    }
    const onAbort = () => end('it took longer than its timeout')
    const done = (sent: Sent) => {
      if (killTimer !== null) clearTimeout(killTimer)
      ends.removeEventListener('abort', onAbort)
      for (const stream of streams) stream?.destroy()
      resolve(sent)
    }
    const read = (part: Buffer) => {
      output.bytes += part.length
      if (output.text.length < excerptBytesMax)
        output.text += part.toString('utf8', 0, excerptBytesMax - output.text.length)
      if (output.bytes > outputBytesMax) end(`it printed more than ${outputBytesMax} bytes`)
    }
    // Before anything of it is used: an error without a listener ends the daemon.
    child.on('error', (error) => {
      // Where it cannot be started; there is no exit then.
      if (child.pid === undefined) done(failure(`The command cannot be started: ${startFault(error)}`))
    })
    if (child.pid === undefined) return
    child.stdout.on('data', read)
    child.stderr.on('data', read)
    // A program need not read its stdin.
    for (const stream of streams) stream?.on('error', () => undefined)
    child.on('exit', (code, signal) => {
      signalGroup(child, 'SIGKILL')
      // What it printed before its end may still be in the pipes.
      setImmediate(() => done(resultOf({ code, signal, ending }, output.text)))
    })
    if (ends.aborted) onAbort()
    else ends.addEventListener('abort', onAbort, { once: true })
    child.stdin.end(input)
  })
}

/** Of a group that is gone already, nothing is to be ended. */
function signalGroup({ pid }: ChildProcess, signal: 'SIGTERM' | 'SIGKILL'): void {
  if (pid === undefined) return
  try {
    process.kill(-pid, signal)
  } catch {
    // ESRCH: no process of it is left.
  }
}

type End = { code: number | null; signal: string | null; ending: string | null }

function resultOf({ code, signal, ending }: End, output: string): Sent {
  const printed = visible(bounded(output.replaceAll(/\s+/g, ' ').trim(), 300))
  const rest = printed === '' ? '' : `: ${printed}`
  if (ending !== null) return failure(`The command was ended, because ${ending}${rest}`)
  if (signal !== null) return failure(`The command was ended by ${signal}${rest}`)
  if (code === 0) return { kind: 'sent', detail: `Exit status 0${rest}`, warning: null }
  return failure(`Exit status ${code}${rest}`)
}

function failure(why: string): Sent {
  return { kind: 'failed', why, act: checkCommand, retryAfterMs: null, mayHaveArrived: false }
}

function startFault(error: Error): string {
  switch (codeOf(error)) {
    case 'ENOENT':
      return 'the file does not exist, or its interpreter does not'
    case 'EACCES':
      return 'the user of the daemon may not execute it'
    case 'EMFILE':
    case 'ENFILE':
      return 'no file descriptor is left'
    case 'EAGAIN':
      return 'the system allows no further process now'
    case undefined:
    default:
      return messageOf(error)
  }
}

async function checkFile(path: string): Promise<Sent> {
  try {
    await access(path, constants.X_OK)
    if (!(await stat(path)).isFile()) return failure('The command is no file')
    return { kind: 'sent', detail: 'The file exists and can be executed. It was not run.', warning: null }
  } catch (error) {
    return failure(
      `The command cannot be started: ${error instanceof Error ? startFault(error) : String(error)}`,
    )
  }
}
