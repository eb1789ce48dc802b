// spool-access.ts: commands that only read ask the daemon; where none runs they open the spool themselves.

import type { Command } from 'commander'
import { useTimeZone } from '../../std/clock.ts'
import { GatewayError } from '../../std/gateway-error.ts'
import type { RestingSpool } from '../../spool/spool.ts'
import { withProgress, type ReportAmount } from '../terminal/progress.ts'
import type { CommandIo } from '../terminal/terminal.ts'
import { requestDaemon, type Daemon, type DaemonRequest } from './daemon-client.ts'
import { waitForDaemon, withDaemonOptions, type DaemonOptions } from './daemon-options.ts'
import { findDaemon } from './find-daemon.ts'
import { notes } from '../terminal/text-format.ts'

export type SpoolOptions = DaemonOptions & { path?: string }

export function withSpoolOptions(command: Command): Command {
  return withDaemonOptions(command)
    .option('--path <dir>', 'read this spool directory, which no daemon may use')
    .addHelpText(
      'after',
      notes('Without a running daemon, the command reads the spool of --config or --path.'),
    )
}

/** What `read` finds in the spool at `path`. */
export function readSpool<Answer>(
  path: string,
  io: CommandIo,
  read: (spool: RestingSpool, report: ReportAmount) => Promise<Answer>,
): Promise<Answer> {
  return withSpool(path, (spool) =>
    withProgress(io, { what: 'Reading the spool' }, (report) => read(spool, report)),
  )
}

/** The answer of the daemon, or what `work` does with the directory of the spool where no daemon answers. */
export function requestOrOpen<Answer>(
  options: SpoolOptions,
  io: CommandIo,
  request: Omit<DaemonRequest, 'daemon' | 'stop'>,
  work: (path: string) => Promise<Answer>,
): Promise<Answer> {
  const fromDaemon = (daemon: Daemon) => askDaemon<Answer>(io, request, daemon)
  return fromDaemonOrPath(options, io, fromDaemon, work)
}

function askDaemon<Answer>(
  io: CommandIo,
  request: Omit<DaemonRequest, 'daemon' | 'stop'>,
  daemon: Daemon,
): Promise<Answer> {
  return withProgress(
    io,
    waitForDaemon,
    async () => (await requestDaemon({ ...request, daemon, stop: io.stop })) as Answer,
  )
}

export async function fromDaemonOrSpool<Result>(
  options: SpoolOptions,
  io: CommandIo,
  fromDaemon: (daemon: Daemon) => Promise<Result>,
  fromSpool: (spool: RestingSpool, path: string) => Promise<Result>,
): Promise<Result> {
  return fromDaemonOrPath(options, io, fromDaemon, (path) =>
    withSpool(path, (spool) => fromSpool(spool, path)),
  )
}

export async function fromDaemonOrPath<Result>(
  options: SpoolOptions,
  io: CommandIo,
  fromDaemon: (daemon: Daemon) => Promise<Result>,
  fromPath: (path: string) => Promise<Result>,
): Promise<Result> {
  const { path, url, socket, config } = options
  if (path !== undefined && (url ?? socket ?? config) !== undefined)
    throw new GatewayError('USAGE', {
      what: '--path is given together with --url, --socket or --config.',
      why: 'Each of them names a spool.',
      act: 'Give one of them.',
    })
  if (path !== undefined) return fromPath(path)
  try {
    return await fromDaemon(await findDaemon(options, io))
  } catch (error) {
    if (!isUnreachable(error) || config === undefined) throw error
  }
  return fromPath(await spoolPathIn(config, io))
}

export function isUnreachable(error: unknown): error is GatewayError {
  return error instanceof GatewayError && error.code === 'DAEMON_UNREACHABLE'
}

/** From then on times are read and shown in the zone of the config. */
export async function spoolPathIn(config: string, { env }: Pick<CommandIo, 'env'>): Promise<string> {
  // Loaded late: it brings the schema of every stage.
  const { loadSpoolPlace } = await import('../../config/config.ts')
  const { spoolPath, timeZone } = await loadSpoolPlace(config, { env })
  useTimeZone(timeZone)
  return spoolPath
}

async function withSpool<Result>(
  path: string,
  use: (spool: RestingSpool) => Promise<Result>,
): Promise<Result> {
  const { openRestingSpool } = await import('../../spool/spool.ts')
  const spool = await openRestingSpool(path)
  try {
    return await use(spool)
  } finally {
    await spool.close()
  }
}
