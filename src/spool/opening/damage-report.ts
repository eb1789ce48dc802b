// damage-report.ts: the words for damaged files of the store: what was found, and the command for the repair.

import { resolve } from 'node:path'
import { GatewayError } from '../../std/gateway-error.ts'

export const repairCommand = (spoolPath: string) =>
  `telemetry-gateway spool repair --path ${shellArgument(resolve(spoolPath))}`

/** So that the command can be copied into a shell. */
export function shellArgument(path: string): string {
  return /^[\w/.:@%+,-]+$/.test(path) ? path : `'${path.replaceAll("'", String.raw`'\''`)}'`
}

export function damagedFault(spoolPath: string, why: string, cause?: unknown): GatewayError {
  return new GatewayError('SPOOL_DAMAGED', {
    what: `The files of the spool at ${spoolPath} are damaged. The gateway does not open them.`,
    why,
    act:
      `Run \`${repairCommand(spoolPath)}\`. It shows what is kept and what is lost, and repairs with --yes. ` +
      'The gateway then opens the spool automatically. Delete no file.',
    cause,
  })
}
