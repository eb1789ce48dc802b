// regular-file.ts: opens files of a directory that may be damaged. A directory, a pipe or a device can be in
// the place of a file, and a damaged file system cannot open some files.

import { constants } from 'node:fs'
import { open, type FileHandle } from 'node:fs/promises'
import { codeOf } from '../std/gateway-error.ts'

/** Opens a file to read it. Rejects with ENOTREG where something else is in its place. */
export async function openRegular(path: string): Promise<FileHandle> {
  // Without O_NONBLOCK, the opening of a pipe waits for a program that writes to it.
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
  try {
    if ((await file.stat()).isFile()) return file
    throw Object.assign(new Error(`${path} is no regular file`), { code: notRegular })
  } catch (error) {
    await file.close()
    throw error
  }
}

const notRegular = 'ENOTREG'

/** ENXIO: a socket. Node has no names for the codes of a damaged file system (EUCLEAN, EBADMSG). */
const unreadableCodes = /^(EIO|EISDIR|ENXIO|ENODEV|ELOOP|Unknown system error.*)$/

/** What is wrong where a file cannot be read because it is damaged; null for all other errors. */
export function unreadableText(error: unknown): string | null {
  const code = codeOf(error) ?? ''
  if (code === notRegular || code === 'EISDIR') return notFileText
  return unreadableCodes.test(code) ? `the file cannot be read (${code})` : null
}

export const notFileText = 'it is no regular file'
