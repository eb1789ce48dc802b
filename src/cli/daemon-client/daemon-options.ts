// daemon-options.ts: the options of commands that talk to the running daemon, and the request that follows
// from them.

import type { Command } from 'commander'
import { withProgress } from '../terminal/progress.ts'
import type { CommandIo } from '../terminal/terminal.ts'
import { requestDaemon, type DaemonRequest } from './daemon-client.ts'
import { defaultUrl, findDaemon, serviceSocket, type PlaceOptions } from './find-daemon.ts'

export type DaemonOptions = PlaceOptions & { json?: boolean }

export function withDaemonOptions(command: Command): Command {
  return command
    .option('--config <file>', 'find the daemon by this config')
    .option('--socket <path>', `use this control socket (default: ${serviceSocket})`)
    .option('--url <url>', `use this URL, without the control socket (else: ${defaultUrl})`)
    .option('--user <name>', 'user of ops.users, where the URL asks for one')
    .option('--password-file <file>', 'file with the password of the user')
    .option('--json', 'print the answer as JSON')
}

export const waitForDaemon = { what: 'Waiting for the daemon' }

/** Sends a request to the daemon that the options name. */
export async function requestByOptions(
  options: DaemonOptions,
  io: CommandIo,
  request: Omit<DaemonRequest, 'daemon' | 'stop'>,
): Promise<unknown> {
  return withProgress(io, waitForDaemon, async () =>
    requestDaemon({ ...request, daemon: await findDaemon(options, io), stop: io.stop }),
  )
}
