// killable.ts: starts a daemon that kills itself at a given point of its work, or that does not force its writes to the disk
// (killable-daemon.ts). The simulation has the other points and mistakes.

import { startDaemon, type Daemon, type DaemonOptions } from './daemon.ts'

/** Around a write with messages: it was started; it is durable, and its acknowledgements are not given yet. */
export const killPoints = ['during-write', 'after-write-before-ack'] as const

export type KillPoint = (typeof killPoints)[number]

export type KillableOptions = Pick<DaemonOptions, 'env'> & {
  configPath: string
  /** At the `after`-th time that it reaches the point. */
  kill?: { point: KillPoint; after: number } | null
  /** A mistake that only a power cut can show. */
  withoutSync?: boolean
}

const program = new URL('killable-daemon.ts', import.meta.url).pathname

export function startKillable({ configPath, kill = null, withoutSync, ...options }: KillableOptions): Daemon {
  return startDaemon(configPath, {
    ...options,
    program: [program],
    words: [
      ...(kill === null ? [] : ['--kill-at', kill.point, '--after', `${kill.after}`]),
      ...(withoutSync === true ? ['--without-sync'] : []),
    ],
  })
}
