// service-unit.ts: what systemd says about the unit of the daemon. Null where no systemd answers in time.

import { execFile } from 'node:child_process'

export const serviceUnit = 'telemetry-gateway.service'

const answerMs = 5000
const logLinesMax = 40

export type UnitProperties = ReadonlyMap<string, string>

export async function readUnit(
  env: NodeJS.ProcessEnv,
  properties: readonly string[],
): Promise<UnitProperties | null> {
  const output = await outputOf('systemctl', ['show', serviceUnit, `--property=${properties.join()}`], env)
  if (output === null) return null
  return new Map(
    output.split('\n').map((line) => {
      const at = line.indexOf('=')
      return [line.slice(0, at), line.slice(at + 1)] as const
    }),
  )
}

/** The lines of one run of the unit with the priority of an error; empty where the user may not read them. */
export async function errorsOfRun(env: NodeJS.ProcessEnv, invocation: string): Promise<string[]> {
  const select = [`_SYSTEMD_INVOCATION_ID=${invocation}`, '-p', 'err', '-o', 'cat', '-n', String(logLinesMax)]
  const output = await outputOf('journalctl', ['--quiet', '--no-pager', ...select], env)
  return (output ?? '').split('\n').filter((line) => line !== '')
}

function outputOf(program: string, args: readonly string[], env: NodeJS.ProcessEnv): Promise<string | null> {
  return new Promise((resolve) => {
    execFile(program, args, { env, timeout: answerMs }, (error, stdout) => {
      resolve(error === null ? stdout : null)
    })
  })
}
