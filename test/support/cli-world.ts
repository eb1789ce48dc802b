// cli-world.ts: a command run inside the test, with streams that are read back.

import { Readable } from 'node:stream'
import { runCommandLine } from '../../src/cli/cli.ts'
import type { CommandIo } from '../../src/cli/terminal/terminal.ts'
import { keptOutput } from './ops-world.ts'

export type CliResult = { status: number; stdout: string; stderr: string }

export async function runCli(
  argv: readonly string[],
  {
    env = {},
    stdin = '',
    stop = new AbortController().signal,
  }: { env?: NodeJS.ProcessEnv; stdin?: string | Buffer | readonly Buffer[]; stop?: AbortSignal } = {},
): Promise<CliResult> {
  const stdout = keptOutput()
  const stderr = keptOutput()
  const streams = { stdin: Readable.from([stdin].flat()), stdout: stdout.stream, stderr: stderr.stream }
  const io = commandIo({ ...streams, env, stop })
  const status = await runCommandLine(argv, io)
  return { status, stdout: stdout.text(), stderr: stderr.text() }
}

/** What a command has of a process; without input, and with output that nobody reads. */
export function commandIo(parts: Partial<CommandIo> = {}): CommandIo {
  return {
    stdin: Readable.from([]),
    stdout: keptOutput().stream,
    stderr: keptOutput().stream,
    env: {},
    stop: new AbortController().signal,
    onHangUp: () => undefined,
    endWithReader: () => undefined,
    ...parts,
  }
}
