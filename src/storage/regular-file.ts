// regular-file.ts: opens and replaces files of a directory that may be damaged. A directory, a pipe or a
// device can be in the place of a file, and a damaged file system cannot open some files.

import { constants } from 'node:fs'
import { open, rename, type FileHandle } from 'node:fs/promises'
import { codeOf } from '../std/gateway-error.ts'

/** Opens a file to read it. Rejects with ENOTREG where something else is in its place. */
export function openRegular(path: string): Promise<FileHandle> {
  return openAs(path, constants.O_RDONLY)
}

/** Opens an empty file to write it, a new one where it is missing. Rejects as openRegular does. */
export function createRegular(path: string): Promise<FileHandle> {
  return openAs(path, constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC)
}

export async function readRegular(path: string): Promise<string> {
  const file = await openRegular(path)
  try {
    return await file.readFile('utf8')
  } finally {
    await file.close()
  }
}

/** Replaces the file by a rename. `isSynced`: its content is durable first. */
export async function replaceRegular(
  path: string,
  content: string | Buffer,
  { isSynced }: { isSynced: boolean },
): Promise<void> {
  const next = `${path}.next`
  const file = await createRegular(next)
  try {
    await file.writeFile(content)
    if (isSynced) await file.sync()
  } finally {
    await file.close()
  }
  await rename(next, path)
}

async function openAs(path: string, flags: number): Promise<FileHandle> {
  // Without O_NONBLOCK, the opening of a pipe waits for the program at its other end.
  const file = await open(path, flags | constants.O_NONBLOCK)
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
