// dead-letter-options.ts: what a command of the dead letters is told on the command line: which letters, and where they are.
// The daemon is asked; where none runs, what only reads opens the spool itself.

import { InvalidArgumentError, type Command } from 'commander'
import { GatewayError } from '../../std/gateway-error.ts'
import { parseDuration } from '../../std/quantity.ts'
import type { DeadLetterQuery } from '../../dead-letters/dead-letters.ts'
import type { RestingSpool } from '../../spool/spool.ts'
import type { CommandIo } from '../terminal/terminal.ts'
import { daemonUrl } from '../status-command.ts'

export type PlaceOptions = { config?: string; url?: string; path?: string; json?: boolean }

export type FilterOptions = {
  stage?: 'mapping' | 'delivery'
  reason?: string
  device?: string
  source?: string
  provider?: string
  since?: number
  until?: number
  all?: boolean
}

/** Options that every command of these has. */
export function withDaemonOptions(command: Command): Command {
  return command
    .option('--config <file>', 'take the address from this config')
    .option('--url <url>', 'base URL of the daemon (default: http://127.0.0.1:8080)')
    .option('--json', 'the answer as it came')
}

/** For commands that only read. */
export function withSpoolOptions(command: Command): Command {
  return withDaemonOptions(command).option(
    '--path <dir>',
    'read this spool, which no daemon may use; where none runs, that of --config is read',
  )
}

export function withFilterOptions(command: Command): Command {
  return command
    .option('--stage <stage>', 'mapping (messages) or delivery (payloads)', stageIn)
    .option('--reason <word>', 'such as Validation or NOT_JSON')
    .option('--device <name>', 'only those of this device')
    .option('--source <name>', 'only messages that this source took')
    .option('--provider <name>', 'only payloads of this provider')
    .option('--since <time>', 'from this time on, as 2026-11-20T06:00Z or as 2h, which is ago', timeIn)
    .option('--until <time>', 'before this time', timeIn)
}

function stageIn(text: string): FilterOptions['stage'] {
  if (text === 'mapping' || text === 'delivery') return text
  throw new InvalidArgumentError('It is mapping or delivery.')
}

function timeIn(text: string): number {
  const agoMs = parseDuration(text)
  const at = agoMs === undefined ? Date.parse(text) : Date.now() - agoMs
  if (Number.isFinite(at)) return Math.max(0, Math.floor(at))
  throw new InvalidArgumentError(
    'It is a date and time, such as 2026-11-20T06:00Z, or a duration, such as 2h.',
  )
}

export function queryOf({
  stage,
  reason,
  device,
  source,
  provider,
  since,
  until,
}: FilterOptions): DeadLetterQuery {
  return {
    ...(stage === undefined ? {} : { stage }),
    ...(reason === undefined ? {} : { reason }),
    ...(device === undefined ? {} : { device }),
    ...(source === undefined ? {} : { source }),
    ...(provider === undefined ? {} : { provider }),
    ...(since === undefined ? {} : { since }),
    ...(until === undefined ? {} : { until }),
  }
}

/** For what changes something: nothing said does not mean everything. */
export function requiredQuery(ids: readonly string[], options: FilterOptions): DeadLetterQuery {
  const query = queryOf(options)
  const isSaid = ids.length > 0 || Object.keys(query).length > 0
  if (!isSaid && options.all !== true)
    throw new GatewayError('USAGE', {
      what: 'It is not said which dead letters are meant.',
      why: 'Nothing said does not mean everything.',
      act: 'Give ids, or --reason, --device and the like; or --all.',
    })
  return ids.length > 0 ? { ...query, ids } : query
}

/** Asks the daemon; where none answers and the spool can be found, reads that. */
export async function requestOrRead<Result>(
  options: PlaceOptions,
  io: CommandIo,
  ask: (url: string) => Promise<Result>,
  read: (spool: RestingSpool) => Promise<Result>,
): Promise<Result> {
  if (options.path !== undefined && (options.url ?? options.config) !== undefined)
    throw new GatewayError('USAGE', {
      what: '--path is given beside --url or --config.',
      why: 'Each of them names the letters to work with.',
      act: 'Give one of them.',
    })
  if (options.path !== undefined) return reading(options.path, read)
  try {
    return await ask(await daemonUrl(options, io))
  } catch (error) {
    const isAway = error instanceof GatewayError && error.code === 'DAEMON_UNREACHABLE'
    if (!isAway || options.config === undefined) throw error
  }
  // Loaded only here: it brings the schema of every stage along.
  const { loadSpoolPath } = await import('../../config/config.ts')
  return reading(await loadSpoolPath(options.config, io), read)
}

async function reading<Result>(
  path: string,
  read: (spool: RestingSpool) => Promise<Result>,
): Promise<Result> {
  const { openRestingSpool } = await import('../../spool/spool.ts')
  const spool = await openRestingSpool(path)
  try {
    return await read(spool)
  } finally {
    await spool.close()
  }
}
