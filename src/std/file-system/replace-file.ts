// replace-file.ts: changes a file that a running daemon reads: a password file, the device table.
//
// The new file is written beside the old one, with its owner, and renamed over it, so a reader finds the old
// or the new one and never a part. The name of the new file is also the lock: two commands at the same time
// would lose a change of one of them.

import { chown, open, rename, rm, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { codeOf, GatewayError, whyUnwritable } from '../gateway-error.ts'

/** `mode`: null for that of the old file. */
export type ReplaceOptions = { noun: string; mode: number | null }

/** `change` gives the new text while no other process changes the file. Rejects with OUTPUT_UNWRITABLE. */
export async function replaceFile(
  path: string,
  { noun, mode }: ReplaceOptions,
  change: () => Promise<string>,
): Promise<void> {
  const temporary = `${path}.new`
  const file = await open(temporary, 'wx', 0o600).catch((error: unknown) => {
    throw unwritable(path, noun, temporary, error)
  })
  try {
    await file.writeFile(await change())
    await file.chmod(mode ?? (await modeOf(path)))
    await keepOwner(path, temporary)
    await file.sync()
    await file.close()
    await rename(temporary, path)
  } catch (error) {
    await file.close().catch(() => undefined)
    await rm(temporary, { force: true })
    throw error instanceof GatewayError ? error : unwritable(path, noun, temporary, error)
  }
  const folder = await open(dirname(path), 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}

const newMode = 0o640

async function modeOf(path: string): Promise<number> {
  const found = await stat(path).catch(() => null)
  return found === null ? newMode : found.mode & 0o777
}

/** What root writes must stay readable for the daemon: it gets the owner of the old file or the folder. */
async function keepOwner(path: string, temporary: string): Promise<void> {
  if (process.geteuid?.() !== 0) return
  const { uid, gid } = await stat(path).catch(() => stat(dirname(path)))
  await chown(temporary, uid, gid)
}

function unwritable(path: string, noun: string, temporary: string, cause: unknown): GatewayError {
  const isLocked = codeOf(cause) === 'EEXIST'
  return new GatewayError('OUTPUT_UNWRITABLE', {
    what: `Cannot change the ${noun} ${path}.`,
    why: isLocked ? `Another command is changing it: ${temporary} exists.` : whyUnwritable(path, cause),
    act: isLocked
      ? `Run the command again. If no other one runs, delete ${temporary}.`
      : 'Give the user who changes it the right to write into the folder, or change the file as another user.',
    cause,
  })
}
