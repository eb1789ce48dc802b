// audit-file.ts: lines of JSON in two files, `audit.ndjson` and the older `audit.1.ndjson`. A line is durable
// when append() resolves. When the newer file reaches half of the limit, it replaces the older one.

import { open, readFile, rename, type FileHandle } from 'node:fs/promises'
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

/** Lines of both files, oldest first, without the empty ones. A missing file has none. */
export async function readAuditLines(folder: string): Promise<string[]> {
  const lines: string[] = []
  for (const name of auditFileNames.toReversed()) {
    const text = await readFile(join(folder, name), 'utf8').catch((error: unknown) => {
      if (codeOf(error) === 'ENOENT') return ''
      throw error
    })
    lines.push(...text.split('\n').filter((line) => line !== ''))
  }
  return lines
}
