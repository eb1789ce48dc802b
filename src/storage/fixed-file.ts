// fixed-file.ts: a small file beside the database that keeps its size and is overwritten in place.
//
// It is allocated at its creation, so that a later write needs no space and changes no metadata but the time
// of the change. Writes are synchronous and not forced to the disk: they survive the end of the process, and
// a power cut can take them or leave a part of them. The reader must recognise such a part.

import {
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  openSync,
  readFileSync,
  readSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'

export type FixedFile = {
  /** All of its bytes; zeros where nothing was written. */
  read(): Buffer
  /** Overwrites `length` bytes at `offset` with the start of `source`. */
  write(source: Buffer, length: number, offset: number): void
  /** Forces the file to the disk. */
  sync(): void
  close(): void
}

/** Creates the file where it is missing, and extends a short one. Throws the error of the file system. */
export function openFixedFile(name: string, bytes: number): FixedFile {
  const fd = openSync(name, constants.O_RDWR | constants.O_CREAT | constants.O_NONBLOCK, 0o600)
  try {
    const found = fstatSync(fd)
    if (!found.isFile()) throw new Error(`${name} is no regular file`)
    const { size } = found
    if (size < bytes) {
      writeAll(fd, Buffer.alloc(bytes - size), bytes - size, size)
      fsyncSync(fd)
    }
  } catch (error) {
    closeSync(fd)
    throw error
  }
  return {
    read() {
      const content = Buffer.alloc(bytes)
      let at = 0
      while (at < bytes) {
        const read = readSync(fd, content, at, bytes - at, at)
        if (read === 0) break
        at += read
      }
      return content
    },
    write: (source, length, offset) => writeAll(fd, source, length, offset),
    sync: () => fsyncSync(fd),
    close: () => closeSync(fd),
  }
}

function writeAll(fd: number, source: Buffer, length: number, offset: number): void {
  let at = 0
  while (at < length) at += writeSync(fd, source, at, length - at, offset + at)
}

/** What CURRENT of a database names. Each opening by LevelDB changes it. Null where it cannot be read. */
export function manifestNameIn(storePath: string): string | null {
  try {
    // A pipe in the place of the file must not block the process.
    const fd = openSync(join(storePath, 'CURRENT'), constants.O_RDONLY | constants.O_NONBLOCK)
    try {
      return fstatSync(fd).isFile() ? readFileSync(fd, 'utf8').trim() : null
    } finally {
      closeSync(fd)
    }
  } catch {
    return null
  }
}
