// error-report.ts: how an error is printed: as text, or with --json as JSON.

import type { Writable } from 'node:stream'
import { GatewayError } from '../../std/gateway-error.ts'
import { writeError } from '../../std/journal.ts'
import { visible, visibleJson } from '../../std/quote.ts'
import { withoutLogins } from '../../std/shown-url.ts'
import type { ExitStatus } from './terminal.ts'

/** Codes of wrong usage and of a config that is invalid or without keys (status 2). All others are 1. */
const wrongUsage: ReadonlySet<string> = new Set([
  'CONFIG_INVALID',
  'CONFIG_UNREADABLE',
  'CREDENTIALS_MISSING',
  'USAGE',
  'DEVICES_INVALID',
  'PASSWORDS_INVALID',
])

/** Prints `error` and returns the exit status. Throws what is not a GatewayError: that is a fault of ours. */
export function reportError(
  error: unknown,
  stderr: Writable,
  { json, env }: { json: boolean; env: NodeJS.ProcessEnv },
): ExitStatus {
  if (!(error instanceof GatewayError)) throw error
  const { code } = error
  // A message of the system or of a library may quote what it was given.
  const [what = '', why = '', act = ''] = [error.what, error.why, error.act].map(withoutLogins)
  if (json) {
    const problems = 'problems' in error ? { problems: error.problems } : {}
    writeError(
      stderr,
      env,
      `${visibleJson(JSON.stringify({ error: { code, what, why, act, ...problems } }))}\n`,
    )
  } else {
    const indented = [what, why, act]
      .flatMap((text) => text.split('\n'))
      .map((line) => `  ${visible(line)}\n`)
    writeError(stderr, env, `${code}\n${indented.join('')}`)
  }
  return wrongUsage.has(code) ? 2 : 1
}
