// terminal.ts: what a command may use of the process, and how it prints. A command writes to these streams
// and reports an exit status, so a test runs it without a process.

import type { Readable, Writable } from 'node:stream'
import type { Command } from 'commander'
import { visible } from '../../std/quote.ts'

export type CommandIo = {
  stdin: Readable
  stdout: Writable
  stderr: Writable
  env: NodeJS.ProcessEnv
  /** Aborts at the first SIGINT or SIGTERM. A second signal ends the process at once (main.ts). */
  stop: AbortSignal
  /** Calls `listener` at each SIGHUP. Before the first call a SIGHUP ends the process, the default. */
  onHangUp(listener: () => void): void
}

/** 0 success, 1 failure, 2 wrong usage or invalid config. */
export type ExitStatus = 0 | 1 | 2

/** Builds a command. Its action calls `done` with the exit status, or rejects with a GatewayError. */
export type BuildCommand = (io: CommandIo, done: (status: ExitStatus) => void) => Command

/** Prints one line of JSON for a program, or text for a person. */
export function printAnswer<Answer>(
  { stdout }: CommandIo,
  { json }: { json?: boolean },
  answer: Answer,
  textOf: (answer: Answer) => string,
): void {
  stdout.write(json ? `${JSON.stringify(answer)}\n` : visibleLines(textOf(answer)))
}

/** Text of devices or of the service must not move the cursor of a terminal, or hide other text. */
export function visibleLines(text: string): string {
  return text.split('\n').map(visible).join('\n')
}

/** Waits while the reader of stdout is slower than this command; not after a stop. */
export async function write({ stdout, stop }: CommandIo, text: string): Promise<void> {
  if (stdout.write(text) || stop.aborted) return
  await new Promise<void>((resolve) => {
    const proceed = () => {
      for (const event of ['drain', 'close']) stdout.off(event, proceed)
      stop.removeEventListener('abort', proceed)
      resolve()
    }
    for (const event of ['drain', 'close']) stdout.on(event, proceed)
    stop.addEventListener('abort', proceed)
  })
}
