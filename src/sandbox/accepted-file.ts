// accepted-file.ts: every accepted payload as one line of JSON, in a file that outlives the process.
//
// The lines of a request are written before anything else of it takes effect, so whoever got an answer finds
// its payloads in the file, also after `kill -9`. With `sync` they are on the disk too, and so outlive a
// power cut. Where a write fails nothing of the request is taken, and the file is cut back to the last whole
// line.

import { closeSync, fdatasyncSync, fstatSync, ftruncateSync, openSync, readSync, writeSync } from 'node:fs'
import { GatewayError, messageOf } from '../std/gateway-error.ts'
import { quote } from '../std/quote.ts'
import type { ReceivedPayload } from './received-payloads.ts'

export type AcceptedFile = {
  /** Throws where the lines cannot be written; then none of them is in the file. */
  append(payloads: readonly ReceivedPayload[]): void
  close(): void
}

/** Throws GatewayError OUTPUT_UNWRITABLE. */
export function openAcceptedFile(path: string, { sync }: { sync: boolean }): AcceptedFile {
  const fd = opened(path)
  let size = fstatSync(fd).size
  // A write that was killed half-way was never answered; its rest gets a line of its own, nothing is removed.
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
    throw new GatewayError('OUTPUT_UNWRITABLE', {
      what: `Cannot write accepted payloads to ${quote(path)}.`,
      why: messageOf(error),
      act: 'Name a file in a directory that exists and that this user may write.',
      cause: error,
    })
  }
}

function lastByte(fd: number, size: number): number | undefined {
  const byte = Buffer.alloc(1)
  readSync(fd, byte, 0, 1, size - 1)
  return byte[0]
}
