// terminal.ts: what a command may use of the process, and how it prints. A command writes to these streams
// and reports an exit status, so a test runs it without a process.

import type { Readable, Writable } from 'node:stream'
import type { Command } from 'commander'
import { visible, visibleJson } from '../../std/quote.ts'

export type CommandIo = {
  stdin: Readable
  stdout: Writable
  stderr: Writable
  env: NodeJS.ProcessEnv
  /** Aborts at the first SIGINT or SIGTERM. A second signal ends the process at once (main.ts). */
  stop: AbortSignal
  /**
   * For `run`: calls `listener` at each SIGHUP, and at once where one came before. Elsewhere it ends the
   * process, the default.
   */
  onHangUp(listener: () => void): void
  /**
   * From now on the end of the reader of stdout stops the command at once, and not only at its next write.
   * For commands that wait and change nothing meanwhile.
   */
  endWithReader(): void
  /** The command prints JSON, also its errors. */
  json?: boolean
}

/** 0 success, 1 failure, 2 wrong usage or invalid config. */
export type ExitStatus = 0 | 1 | 2

/** Builds a command. Its action calls `done` with the exit status, or rejects with a GatewayError. */
export type BuildCommand = (io: CommandIo, done: (status: ExitStatus) => void) => Command

/**
 * The reason of `stop` where nobody reads the output any more (`tap | head -1`), or where it cannot be
 * written (a full disk). main.ts says which.
 */
export const outputEnded = new Error('the output of the command ended')

/** Prints one line of JSON for a program, or text for a person. `width`: as terminalWidth(). */
export function printAnswer<Answer>(
  { stdout }: Pick<CommandIo, 'stdout'>,
  { json }: { json?: boolean },
  answer: Answer,
  textOf: (answer: Answer, width: number) => string,
): void {
  stdout.write(
    json ? `${visibleJson(JSON.stringify(answer))}\n` : visibleLines(textOf(answer, terminalWidth(stdout))),
  )
}

/** Says on stderr what is no error. Beside --json it is a line of JSON, as errors are. */
export function printNote({ stderr, json }: Pick<CommandIo, 'stderr' | 'json'>, text: string): void {
  stderr.write(json === true ? `${JSON.stringify({ note: text })}\n` : `${text}\n`)
}

/** For a text that is drawn anew on a terminal. */
export const clearScreen = '\u001b[H\u001b[J'

/** A narrower terminal has no use for a table. */
const columnsMin = 40

/** Columns of the terminal. A file or a pipe has no limit, nor a terminal that does not say it. */
export function terminalWidth(stdout: Writable): number {
  const { isTTY, columns = 0 } = stdout as Writable & { isTTY?: boolean; columns?: number }
  return isTTY === true && columns > 0 ? Math.max(columns, columnsMin) : Number.POSITIVE_INFINITY
}

/** Text of devices or of the service must not move the cursor of a terminal, or hide other text. */
export function visibleLines(text: string): string {
  return text.split('\n').map(visible).join('\n')
}

/** Waits while the reader of stdout is slower; not after a stop. Rejects with outputEnded. */
export async function write({ stdout, stop }: CommandIo, text: string): Promise<void> {
  if (stop.reason === outputEnded) throw outputEnded
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
