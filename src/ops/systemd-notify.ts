// systemd-notify.ts: notifies systemd of the state (sd_notify(3)). Node has no UNIX datagram socket, so each
// message is one run of `systemd-notify`; the unit needs NotifyAccess=all for that. Without NOTIFY_SOCKET it
// does nothing.
//
// At most one child runs. Messages that come meanwhile are joined into the next one, where a later STATUS=
// replaces an earlier one. A child that hangs is killed after `childMs`. So this is bounded however often it
// is called.
//
// The watchdog reports that the event loop turns, and nothing else: waiting cures a lost store or a refusing
// service, and a restart would only reset the back-off. The message is sent at half of WATCHDOG_USEC.

import { spawn } from 'node:child_process'
import { every, type Clock } from '../std/clock.ts'
import { bounded } from '../std/quote.ts'

const childMs = 5000
/** From each message about progress, systemd waits this long for the next one or for READY=1. */
const extendedMs = 60_000
const extendEveryMs = 10_000

export type Notify = {
  ready(status: string): void
  /** Extends the time limit of the start, which goes on. At most one message in 10 s. */
  starting(status: string): void
  status(status: string): void
  stopping(): void
  /** Ends the watchdog and waits, at most as long as a child may run, until the last message is out. */
  close(): Promise<void>
}

export function createNotify(deps: { clock: Clock; env: NodeJS.ProcessEnv }): Notify {
  const { clock, env } = deps
  const enabled = Boolean(env['NOTIFY_SOCKET'])
  const beatMs = enabled ? beatOf(env) : null
  /** By variable name: the newest value of each. */
  const waiting = new Map<string, string>()
  let running: Promise<void> | null = null
  let nextExtensionMs = -Infinity
  const endBeats = beatMs === null ? () => {} : every(clock, beatMs, () => send({ WATCHDOG: '1' }))

  return {
    ready: (status) => send({ READY: '1', STATUS: status }),
    starting,
    status: (status) => send({ STATUS: status }),
    stopping: () => send({ STOPPING: '1', STATUS: 'Stopping' }),
    async close() {
      endBeats()
      await running
    },
  }

  function starting(status: string): void {
    if (clock.monotonic() < nextExtensionMs) return
    nextExtensionMs = clock.monotonic() + extendEveryMs
    send({ EXTEND_TIMEOUT_USEC: `${extendedMs * 1000}`, STATUS: status })
  }

  function send(variables: Record<string, string>): void {
    if (!enabled) return
    for (const [name, value] of Object.entries(variables)) waiting.set(name, oneLine(value))
    running ??= drain().finally(() => {
      running = null
    })
  }

  /** Ends when nothing waits. run() never rejects. */
  async function drain(): Promise<void> {
    while (waiting.size > 0) {
      const message = [...waiting].map(([name, value]) => `${name}=${value}`)
      waiting.clear()
      await run(message)
    }
  }

  function run(message: readonly string[]): Promise<void> {
    return new Promise((resolve) => {
      const child = spawn('systemd-notify', [...message], { env, stdio: 'ignore' })
      const cancelKill = clock.after(childMs, () => child.kill('SIGKILL'))
      const ended = () => {
        cancelKill()
        resolve()
      }
      // Without systemd-notify nothing can be reported: systemd itself reports that READY never came.
      child.once('error', ended)
      child.once('exit', ended)
    })
  }
}

/** Half the watchdog's time; null where systemd does not want it, or wants it of another process. */
function beatOf(env: NodeJS.ProcessEnv): number | null {
  const microseconds = Number(env['WATCHDOG_USEC'])
  if (!(microseconds > 0)) return null
  const pid = env['WATCHDOG_PID']
  if (pid && Number(pid) !== process.pid) return null
  return Math.max(1, Math.floor(microseconds / 1000 / 2))
}

/** A line feed would begin another variable. */
function oneLine(value: string): string {
  return bounded(value.replaceAll(/\s+/g, ' '), 300)
}
