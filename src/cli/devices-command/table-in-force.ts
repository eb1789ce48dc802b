// table-in-force.ts: lets a running daemon read the device table that a command changed.

import { GatewayError } from '../../std/gateway-error.ts'
import { requestByOptions, type DaemonOptions } from '../daemon-client/daemon-options.ts'
import type { CommandIo } from '../terminal/terminal.ts'

/**
 * Lets the daemon read the table. Resolves with false where none answers: it reads the table at its start.
 * Rejects with the problem where the daemon refuses the table or the config.
 */
export async function putInForce(io: CommandIo, options: DaemonOptions): Promise<boolean> {
  try {
    const request = { path: '/control/reload', method: 'POST', timeoutMs: Infinity } as const
    await requestByOptions(options, io, request)
    return true
  } catch (error) {
    if (error instanceof GatewayError && error.code === 'DAEMON_UNREACHABLE') return false
    throw error
  }
}

export function inForceText(isInForce: boolean): string {
  return isInForce
    ? 'It is in force.\n'
    : 'No daemon answers; a daemon that runs reads the file by itself, and else at its start.\n'
}
