// regular-file.ts: opens, reads and replaces files where something else may be in their place: a directory, a
// pipe, a device without an end; or a file system that is damaged, or does not answer.

import { constants } from 'node:fs'
import { open, rename, type FileHandle } from 'node:fs/promises'
import { systemClock } from '../clock.ts'
import { codeOf } from '../gateway-error.ts'

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

export type ReadBounded = (path: string) => Promise<Buffer>

/**
 * For what a daemon reads while it runs: at most `bytesMax` of a regular file, within `answerMs`. Rejects
 * with ENOTREG, EFBIG, or ETIMEDOUT. A read that hangs keeps one of the few threads of Node, so none of the
 * same reader starts beside one of the same file.
 */
export function createBoundedReader(): ReadBounded {
  const hanging = new Set<string>()
  return (path) => {
    if (hanging.has(path)) return Promise.reject(timedOut(path))
    hanging.add(path)
    const reading = readWhole(path).finally(() => hanging.delete(path))
    return new Promise((resolve, reject) => {
      const cancel = systemClock.after(answerMs, () => reject(timedOut(path)))
      reading.finally(cancel).then(resolve, reject)
    })
  }
}

const bytesMax = 64 * 1024 * 1024
const answerMs = 10_000

async function readWhole(path: string): Promise<Buffer> {
  const file = await openRegular(path)
  try {
    const { size } = await file.stat()
    if (size <= bytesMax) return await file.readFile()
    throw Object.assign(new Error(`${path} has ${size} bytes, and ${bytesMax} are allowed`), {
      code: 'EFBIG',
    })
  } finally {
    await file.close()
  }
}

function timedOut(path: string): Error {
  return Object.assign(new Error(`the file system of ${path} does not answer`), { code: 'ETIMEDOUT' })
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
