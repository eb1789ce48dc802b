// killable.ts: starts a daemon that kills itself at a given point of its work (test/crash/killable-daemon.ts), or that has a
// mistake or a wrong clock.

import type { AnyPoint, Mistake } from '../../crash/kill-points.ts'
import { startDaemon, type Daemon, type LogLine } from './daemon.ts'

export type KillableOptions = {
  configPath: string
  kill?: { point: AnyPoint; after: number } | null
  mistake?: Mistake | null
  /** The wall clock of the daemon is wrong. */
  clockBehindMs?: number
  env?: Record<string, string>
  onLine?: (line: LogLine) => void
}

const program = new URL('../../crash/killable-daemon.ts', import.meta.url).pathname

export function startKillable(options: KillableOptions): Daemon {
  const { configPath, kill = null, mistake = null, clockBehindMs = 0, env, onLine } = options
  return startDaemon(configPath, {
    program: [program],
    words: [
      ...(kill === null ? [] : ['--kill-at', kill.point, '--after', `${kill.after}`]),
      ...(mistake === null ? [] : ['--mistake', mistake]),
      ...(clockBehindMs === 0 ? [] : ['--clock-behind', `${clockBehindMs}`]),
    ],
    ...(env === undefined ? {} : { env }),
    ...(onLine === undefined ? {} : { onLine }),
  })
}
