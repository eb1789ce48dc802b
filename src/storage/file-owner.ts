// file-owner.ts: a command that root runs must not leave files that the gateway cannot read.

import { lchown, readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { codeOf } from '../std/gateway-error.ts'

/** Gives everything below `path` to the owner of `path`. Does nothing unless root runs it. */
export async function giveToOwner(path: string): Promise<void> {
  if (process.geteuid?.() !== 0) return
  const { uid, gid } = await stat(path)
  if (uid === 0) return
  for (const name of await readdir(path, { recursive: true })) {
    try {
      await lchown(join(path, name), uid, gid)
    } catch (error) {
      // It was deleted meanwhile.
      if (codeOf(error) !== 'ENOENT') throw error
    }
  }
}
