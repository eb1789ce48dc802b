// cli-world.ts: a command run inside the test, with streams that are read back.

import { Readable } from 'node:stream'
import { runCommandLine } from '../../src/cli/cli.ts'
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
  const io = {
    stdin: Readable.from([stdin].flat()),
    stdout: stdout.stream,
    stderr: stderr.stream,
    env,
    stop,
    onHangUp: () => undefined,
    endWithReader: () => undefined,
  }
  const status = await runCommandLine(argv, io)
  return { status, stdout: stdout.text(), stderr: stderr.text() }
}
