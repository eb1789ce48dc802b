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

/** More of them go into the body of a request, because its head is limited. */
const idsInQueryMax = 50

/** POST /control/CHANGE with these parameters. It may take any time. */
export function changeRequest(
  change: string,
  params: URLSearchParams,
): Omit<DaemonRequest, 'daemon' | 'stop'> {
  const ids = params.getAll('id')
  const request = { method: 'POST', timeoutMs: Infinity } as const
  if (ids.length <= idsInQueryMax) return { ...request, path: `/control/${change}?${params.toString()}` }
  const others = new URLSearchParams(params)
  others.delete('id')
  const path = `/control/${change}?${others.toString()}`
  return { ...request, path, body: JSON.stringify({ id: ids }), bodyType: 'application/json' }
}
