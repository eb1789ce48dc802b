// daemon-options.ts: the options --config, --url and --json of commands that talk to the running daemon, and
// the request that follows from them.

import type { Command } from 'commander'
import { GatewayError } from '../../std/gateway-error.ts'
import { quote } from '../../std/quote.ts'
import { opsUrl } from '../../ops/config.ts'
import type { CommandIo } from '../terminal/terminal.ts'
import { requestDaemon, type DaemonRequest } from './daemon-client.ts'

export type DaemonOptions = { config?: string; url?: string; json?: boolean }

const defaultUrl = 'http://127.0.0.1:8080'

export function withDaemonOptions(command: Command): Command {
  return command
    .option('--config <file>', 'find the daemon at ops.listen of this config')
    .option('--url <url>', `find the daemon at this URL (default: ${defaultUrl})`)
    .option('--json', 'print the answer as JSON')
}

/** Sends a request to the daemon that the options name. */
export async function requestByOptions(
  options: DaemonOptions,
  io: CommandIo,
  request: Omit<DaemonRequest, 'url' | 'stop'>,
): Promise<unknown> {
  return requestDaemon({ ...request, url: await daemonUrl(options, io), stop: io.stop })
}

/** --url, or ops.listen of --config, or the default. */
export async function daemonUrl(
  { config, url }: Pick<DaemonOptions, 'config' | 'url'>,
  { env }: Pick<CommandIo, 'env'>,
): Promise<string> {
  if (url !== undefined && config !== undefined)
    throw new GatewayError('USAGE', {
      what: 'Both --url and --config are given.',
      why: 'Each of them names a daemon.',
      act: 'Give one of them.',
    })
  if (url !== undefined) {
    if (/^https?:\/\//.test(url) && URL.canParse(url)) return url.replace(/\/+$/, '')
    throw new GatewayError('USAGE', {
      what: `--url is not an http:// or https:// URL: ${quote(url)}.`,
      why: 'The daemon answers over HTTP.',
      act: `Write it as ${defaultUrl}.`,
    })
  }
  if (config === undefined) return defaultUrl
  // Loaded late: it brings the schema of every stage.
  const { loadOpsConfig } = await import('../../config/config.ts')
  return opsUrl((await loadOpsConfig(config, { env })).listen)
}
