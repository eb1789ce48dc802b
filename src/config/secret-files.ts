// secret-files.ts: the files that a config takes secrets from, and whether other users may read them.

import { stat } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { Secret } from '../std/secret.ts'
import type { ConfigWarning } from './config-warnings.ts'

/** Of the files that were read, those whose text is in a secret of the config. */
export function filesOfSecrets(config: unknown, read: ReadonlyMap<string, string>): string[] {
  const secrets: string[] = []
  collect(config)
  return [...read]
    .filter(([, text]) => {
      const inserted = text.replace(/\r?\n$/, '')
      return inserted !== '' && secrets.some((secret) => secret.includes(inserted))
    })
    .map(([path]) => path)

  function collect(value: unknown): void {
    if (value instanceof Secret) secrets.push(value.reveal())
    else if (typeof value === 'object' && value !== null)
      for (const part of Object.values(value)) collect(part)
  }
}

/** A file that systemd passes has an ACL, which shows as rights of the group. */
export async function secretFileWarnings(
  paths: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Promise<ConfigWarning[]> {
  const passed = env['CREDENTIALS_DIRECTORY'] ?? ''
  const warnings: ConfigWarning[] = []
  for (const path of new Set(paths)) {
    if (passed !== '' && !relative(join(passed), path).startsWith('..')) continue
    // What is wrong with a missing file, its reader says.
    const mode = await stat(path).then(
      (found) => found.mode & 0o077,
      () => 0,
    )
    if (mode === 0) continue
    const who = (mode & 0o007) === 0 ? 'its group' : 'every user of this machine'
    warnings.push({
      what: `The secret in ${path} is open to ${who}.`,
      act: `Run \`chmod 600 ${path}\`. Its owner must be the user of the daemon, or root with LoadCredential.`,
    })
  }
  return warnings
}
