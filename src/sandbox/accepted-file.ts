// accepted-file.ts: appends every accepted payload to a file, one line of JSON each.
//
// The lines of a request are written before any other effect of it. A client that got an answer finds its
// payloads in the file, also after `kill -9`. With `sync` the lines are on disk and survive a power cut. When
// a write fails, the request has no effect and the file is cut back to the last whole line.

import { closeSync, fdatasyncSync, fstatSync, ftruncateSync, openSync, readSync, writeSync } from 'node:fs'
import { unwritable } from '../std/gateway-error.ts'
import type { ReceivedPayload } from './received-payloads.ts'

export type AcceptedFile = {
  /** Throws when the lines cannot be written; the file then has none of them. */
  append(payloads: readonly ReceivedPayload[]): void
  close(): void
}

/** Throws GatewayError OUTPUT_UNWRITABLE. */
export function openAcceptedFile(path: string, { sync }: { sync: boolean }): AcceptedFile {
  const fd = opened(path)
  let size = fstatSync(fd).size
  // A write that was killed half-way was never answered. Its rest stays, ended by a line feed.
  if (size > 0 && lastByte(fd, size) !== 0x0a) size += writeSync(fd, '\n')

  return {
    append(payloads) {
      let lines = ''
      for (const payload of payloads) lines += `${JSON.stringify(payload)}\n`
      const bytes = Buffer.from(lines)
      let written = 0
      try {
        while (written < bytes.length) written += writeSync(fd, bytes, written)
        if (sync) fdatasyncSync(fd)
        size += bytes.length
      } catch (error) {
        if (written > 0) ftruncateSync(fd, size)
        throw error
      }
    },
    close: () => closeSync(fd),
  }
}

function opened(path: string): number {
  try {
    return openSync(path, 'a+')
  } catch (error) {
    throw unwritable(
      path,
      error,
      'Name a file in a directory that exists and that this user may write.',
      'write accepted payloads to',
    )
  }
}

function lastByte(fd: number, size: number): number | undefined {
  const byte = Buffer.alloc(1)
  readSync(fd, byte, 0, 1, size - 1)
  return byte[0]
}
