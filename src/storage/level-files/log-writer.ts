// log-writer.ts: writes a log that LevelDB reads: write batches, or the records of a manifest. The format is
// drawn in log-reader.ts.

import type { FileHandle } from 'node:fs/promises'
import { maskedCrc } from './crc32c.ts'
import { logBlockBytes, recordHeadBytes, recordType } from './log-reader.ts'

export type LogWriter = {
  append(content: Buffer): Promise<void>
  /** Writes what is in memory and syncs the file. The caller closes it. */
  finish(): Promise<void>
}

const writeBytes = 1024 * 1024

/** Writes to a new, empty file. */
export function createLogWriter(file: FileHandle): LogWriter {
  let waiting: Buffer[] = []
  let waitingBytes = 0
  /** Bytes of the log, written and waiting. */
  let end = 0

  return {
    async append(content) {
      for (const part of recordsOf(content, end)) {
        waiting.push(part)
        waitingBytes += part.length
        end += part.length
      }
      if (waitingBytes >= writeBytes) await flush()
    },
    async finish() {
      await flush()
      await file.sync()
    },
  }

  async function flush(): Promise<void> {
    const bytes = Buffer.concat(waiting)
    waiting = []
    waitingBytes = 0
    // A short write is not an error: go on with the rest.
    for (let done = 0; done < bytes.length;) done += (await file.write(bytes, done)).bytesWritten
  }
}

/** A log in memory. */
export function encodeLog(contents: readonly Buffer[]): Buffer {
  const parts: Buffer[] = []
  let end = 0
  for (const content of contents) {
    for (const part of recordsOf(content, end)) {
      parts.push(part)
      end += part.length
    }
  }
  return Buffer.concat(parts)
}

/** The records of an entry that starts at `start` in the file, with the unused space before them. */
function* recordsOf(content: Buffer, start: number): Generator<Buffer> {
  let room = logBlockBytes - (start % logBlockBytes)
  let done = 0
  do {
    if (room < recordHeadBytes) {
      yield Buffer.alloc(room)
      room = logBlockBytes
    }
    const length = Math.min(content.length - done, room - recordHeadBytes)
    const isFirst = done === 0
    const isLast = done + length === content.length
    const record = Buffer.allocUnsafe(recordHeadBytes + length)
    record.writeUInt16LE(length, 4)
    record[6] = typeOf(isFirst, isLast)
    content.copy(record, recordHeadBytes, done, done + length)
    record.writeUInt32LE(maskedCrc(record, 6, record.length), 0)
    yield record
    done += length
    room -= record.length
  } while (done < content.length)
}

function typeOf(isFirst: boolean, isLast: boolean): number {
  if (isFirst) return isLast ? recordType.full : recordType.first
  return isLast ? recordType.last : recordType.middle
}
