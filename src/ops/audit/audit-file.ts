// audit-file.ts: lines of JSON in two files, `audit.ndjson` and the older `audit.1.ndjson`. A line is durable
// when append() resolves. When the newer file reaches half of the limit, it replaces the older one.

import { open, rename, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import { codeOf } from '../../std/gateway-error.ts'

export const auditFileNames = ['audit.ndjson', 'audit.1.ndjson'] as const

export type AuditFile = {
  /** Lines are appended in the order of the calls. Rejects where they cannot be written. */
  append(line: string): Promise<void>
  close(): Promise<void>
}

export function openAuditFile(folder: string, bytesMax: number): AuditFile {
  const [name, olderName] = auditFileNames.map((file) => join(folder, file)) as [string, string]
  let file: FileHandle | null = null
  let bytes = 0
  let last: Promise<unknown> = Promise.resolve()
  return { append: (line) => inOrder(() => write(line)), close: () => inOrder(end) }

  function inOrder(work: () => Promise<void>): Promise<void> {
    const done = last.then(work)
    last = done.catch(() => undefined)
    return done
  }

  async function write(line: string): Promise<void> {
    try {
      const added = Buffer.from(`${line}\n`)
      if (file !== null && bytes + added.length > bytesMax / 2) await rotate()
      file ??= await openLast()
      await file.appendFile(added)
      await file.datasync()
      bytes += added.length
    } catch (error) {
      // The file may end with a part of the line, or be on a disk that came back.
      await end()
      throw error
    }
  }

  async function openLast(): Promise<FileHandle> {
    const opened = await open(name, 'a+', 0o600)
    try {
      bytes = (await opened.stat()).size
      const end = Buffer.alloc(1)
      // A line that a crash cut must not swallow the next one.
      if (bytes > 0 && (await opened.read(end, 0, 1, bytes - 1)).bytesRead === 1 && end[0] !== 0x0a) {
        await opened.appendFile('\n')
        bytes += 1
      }
      await syncFolder()
    } catch (error) {
      await opened.close()
      throw error
    }
    return opened
  }

  async function rotate(): Promise<void> {
    await end()
    await rename(name, olderName)
  }

  async function syncFolder(): Promise<void> {
    const directory = await open(folder, 'r')
    try {
      await directory.sync()
    } finally {
      await directory.close()
    }
  }

  async function end(): Promise<void> {
    const closing = file
    file = null
    bytes = 0
    // Each line is on the disk already.
    await closing?.close().catch(() => undefined)
  }
}

const blockBytes = 64 * 1024

/**
 * Lines of both files, newest first, without the empty ones: read in blocks from the end, so that the last
 * change costs one block. A missing file has none.
 */
export async function* auditLines(folder: string): AsyncGenerator<string> {
  for (const name of auditFileNames) {
    const file = await open(join(folder, name), 'r').catch((error: unknown) => {
      if (codeOf(error) === 'ENOENT') return null
      throw error
    })
    if (file === null) continue
    try {
      yield* linesFromEnd(file)
    } finally {
      await file.close()
    }
  }
}

async function* linesFromEnd(file: FileHandle): AsyncGenerator<string> {
  let end = (await file.stat()).size
  /** The first part of a line whose beginning is in the block before. */
  let rest = Buffer.alloc(0)
  while (end > 0) {
    const from = Math.max(0, end - blockBytes)
    const block = Buffer.alloc(end - from)
    await file.read(block, 0, block.length, from)
    const bytes = Buffer.concat([block, rest])
    const first = from === 0 ? 0 : bytes.indexOf(0x0a) + 1
    rest = Buffer.from(bytes.subarray(0, from === 0 ? 0 : first === 0 ? bytes.length : first))
    const whole = from > 0 && first === 0 ? '' : bytes.subarray(first).toString('utf8')
    for (const line of whole.split('\n').reverse()) if (line !== '') yield line
    end = from
  }
}
