// error-report.ts: an error as the person at the terminal, or the program behind `--json`, gets it.

import type { Writable } from 'node:stream'
import { GatewayError } from '../../std/gateway-error.ts'
import { visible } from '../../std/quote.ts'
import type { ExitStatus } from './terminal.ts'

/** Codes that mean wrong use or wrong config; everything else is a failure. */
const wrongUse: ReadonlySet<string> = new Set([
  'CONFIG_INVALID',
  'CONFIG_UNREADABLE',
  'USAGE',
  'DEVICES_INVALID',
])

/** Writes `error` and gives the exit status. What is no GatewayError is our own mistake and is thrown on. */
export function reportError(error: unknown, stderr: Writable, { json }: { json: boolean }): ExitStatus {
  if (!(error instanceof GatewayError)) throw error
  const { code, what, why, act } = error
  if (json) {
    const problems = 'problems' in error ? { problems: error.problems } : {}
    stderr.write(`${JSON.stringify({ error: { code, what, why, act, ...problems } })}\n`)
  } else {
    const indented = [what, why, act]
      .flatMap((text) => text.split('\n'))
      .map((line) => `  ${visible(line)}\n`)
    stderr.write(`${code}\n${indented.join('')}`)
  }
  return wrongUse.has(code) ? 2 : 1
}
