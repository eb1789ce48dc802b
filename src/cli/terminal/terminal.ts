// terminal.ts: what a command may touch of the process. Commands write here and return an exit status,
// so that a test can run one without a process.

import type { Readable, Writable } from 'node:stream'

export type CommandIo = {
  stdin: Readable
  stdout: Writable
  stderr: Writable
  env: NodeJS.ProcessEnv
  /** Aborts at the first SIGINT or SIGTERM. A second signal ends the process at once (main.ts). */
  stop: AbortSignal
  /** Calls `listener` at each SIGHUP. Before the first call a SIGHUP ends the process, as it does by default. */
  onHangUp(listener: () => void): void
}

/** 0 fine, 1 failed, 2 wrong use or wrong config. */
export type ExitStatus = 0 | 1 | 2
