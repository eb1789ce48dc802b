// file-bytes.ts: random access to a file that may be damaged. What the disk cannot read counts as zeros, so
// that the checksums of the units there are wrong and everything around them is still read.

import { open } from 'node:fs/promises'
import { codeOf } from '../../std/gateway-error.ts'

export type FileBytes = {
  readonly size: number
  /** The bytes from `offset` on in a new buffer; fewer than `bytes` at the end of the file. */
  read(offset: number, bytes: number): Promise<Buffer>
  /** True if the disk could not read a part of this range when it was read. */
  hasFailed(offset: number, bytes: number): boolean
  close(): Promise<void>
}

/** Sectors of disks have up to this size. */
const pageBytes = 4096

/** Rejects with the code of the file system, such as ENOENT. */
export async function openFileBytes(path: string): Promise<FileBytes> {
  const file = await open(path, 'r')
  const failedPages = new Set<number>()
  const { size } = await file.stat()
  return { size, read, hasFailed, close: () => file.close() }

  async function read(offset: number, bytes: number): Promise<Buffer> {
    const buffer = Buffer.allocUnsafe(Math.max(0, Math.min(bytes, size - offset)))
    try {
      return buffer.subarray(0, await readInto(buffer, offset))
    } catch (error) {
      if (codeOf(error) !== 'EIO') throw error
    }
    for (let start = 0; start < buffer.length;) {
      const end = Math.min(buffer.length, start + pageBytes - ((offset + start) % pageBytes))
      await readPage(buffer.subarray(start, end), offset + start)
      start = end
    }
    return buffer
  }

  async function readPage(page: Buffer, offset: number): Promise<void> {
    try {
      page.fill(0, await readInto(page, offset))
    } catch (error) {
      if (codeOf(error) !== 'EIO') throw error
      failedPages.add(Math.floor(offset / pageBytes))
      page.fill(0)
    }
  }

  /** Returns how many bytes there were. */
  async function readInto(buffer: Buffer, offset: number): Promise<number> {
    let used = 0
    while (used < buffer.length) {
      const { bytesRead } = await file.read(buffer, used, buffer.length - used, offset + used)
      if (bytesRead === 0) break
      used += bytesRead
    }
    return used
  }

  function hasFailed(offset: number, bytes: number): boolean {
    if (failedPages.size === 0) return false
    for (let page = Math.floor(offset / pageBytes); page * pageBytes < offset + bytes; page += 1)
      if (failedPages.has(page)) return true
    return false
  }
}
