// spool-path.ts: which spool a command works on: by --path or by the config.

import { GatewayError } from '../../std/gateway-error.ts'
import { spoolPathIn } from '../daemon-client/spool-access.ts'
import type { CommandIo } from '../terminal/terminal.ts'

export type SpoolPathOptions = { path?: string; config?: string }

export async function spoolPathOf({ path, config }: SpoolPathOptions, io: CommandIo): Promise<string> {
  if (path !== undefined && config === undefined) return path
  if (config !== undefined && path === undefined) return spoolPathIn(config, io)
  throw new GatewayError('USAGE', {
    what: path === undefined ? 'No spool is given.' : 'Both --path and --config are given.',
    why: 'The command works on one spool.',
    act: 'Give either --path or --config.',
  })
}
