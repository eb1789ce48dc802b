// file-checks.ts: owners and modes of the config, of files with secrets and of the spool.

import { lstat, opendir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { codeOf, messageOf } from '../../std/gateway-error.ts'
import { plural } from '../../std/quantity.ts'
import { secretFileWarnings, type Config } from '../../config/config.ts'
import type { Finding } from '../check-command/connection-findings.ts'

type Files = { path: string; config: Config; secretFiles: readonly string[]; env: NodeJS.ProcessEnv }

const name = 'file modes'
/** A spool has some thousand files. */
const filesMax = 10_000

export async function checkFiles({ path, config, secretFiles, env }: Files): Promise<Finding[]> {
  const secrets = await secretFileWarnings(secretFiles, env)
  const problems = [
    ...(await configProblems(path)),
    ...secrets.map(({ what, act }): Finding => ({ name, state: 'failed', what, act })),
    ...(await spoolProblems(config.spool.path)),
  ]
  if (problems.length > 0) return problems
  const what = 'No other user can change the config, read the secrets, or read the spool.'
  return [{ name, state: 'ok', what }]
}

async function configProblems(path: string): Promise<Finding[]> {
  const { mode } = await stat(path)
  if ((mode & 0o022) === 0) return []
  const who = (mode & 0o002) === 0 ? 'Its group' : 'Every user of this machine'
  const what = `${who} can change the config ${path}.`
  return [
    { name, state: (mode & 0o002) === 0 ? 'warning' : 'failed', what, act: `Run \`chmod go-w ${path}\`.` },
  ]
}

async function spoolProblems(path: string): Promise<Finding[]> {
  try {
    const { mode, uid } = await stat(path)
    const problems: Finding[] = []
    if ((mode & 0o077) !== 0)
      problems.push({
        name,
        state: 'failed',
        what: `Other users can open the spool ${path}, which says where vehicles are.`,
        act: `Run \`chmod 700 ${path}\`.`,
      })
    const foreign = await foreignFiles(path, uid)
    if (foreign.length > 0)
      problems.push({
        name,
        state: 'failed',
        what: `${plural(foreign.length, 'file')} of the spool ${foreign.length === 1 ? 'is' : 'are'} not of its owner (user ${uid}), such as ${foreign[0]}.`,
        why: 'A command ran as another user, for example with sudo.',
        act: `Stop the daemon and run \`chown -R ${uid} ${path}\`.`,
      })
    return problems
  } catch (error) {
    // The first start makes it.
    if (codeOf(error) === 'ENOENT') return []
    const what = `The modes of the spool ${path} cannot be read: ${messageOf(error)}.`
    return [{ name, state: 'skipped', what, act: 'Run doctor as root or as the user of the daemon.' }]
  }
}

async function foreignFiles(path: string, owner: number): Promise<string[]> {
  const foreign: string[] = []
  let files = 0
  await visit(path)
  return foreign

  async function visit(folder: string): Promise<void> {
    for await (const entry of await opendir(folder)) {
      if ((files += 1) > filesMax) return
      const file = join(folder, entry.name)
      const found = await lstat(file).catch((error: unknown) => {
        // LevelDB deletes tables meanwhile.
        if (codeOf(error) === 'ENOENT') return null
        throw error
      })
      if (found === null) continue
      if (found.uid !== owner) foreign.push(file)
      if (found.isDirectory()) await visit(file)
    }
  }
}
