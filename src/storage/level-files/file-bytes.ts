// file-bytes.ts: random access to a file that may be damaged. What the disk cannot read counts as zeros, so
// that the checksums of the units there are wrong and everything around them is still read.

import { open } from 'node:fs/promises'
import { readWhatIsReadable, sectorBytes } from '../readable-bytes.ts'

export type FileBytes = {
  readonly size: number
  /** The bytes from `offset` on in a new buffer; fewer than `bytes` at the end of the file. */
  read(offset: number, bytes: number): Promise<Buffer>
  /** True if the disk could not read a part of this range when it was read. */
  hasFailed(offset: number, bytes: number): boolean
  close(): Promise<void>
}

/** Rejects with the code of the file system, such as ENOENT. */
export async function openFileBytes(path: string): Promise<FileBytes> {
  const file = await open(path, 'r')
  const failedSectors = new Set<number>()
  const { size } = await file.stat().catch(async (error: unknown) => {
    await file.close()
    throw error
  })
  return { size, read, hasFailed, close: () => file.close() }

  async function read(offset: number, bytes: number): Promise<Buffer> {
    const buffer = Buffer.allocUnsafe(Math.max(0, Math.min(bytes, size - offset)))
    return buffer.subarray(
      0,
      await readWhatIsReadable(file, buffer, offset, (sectorOffset) => failedSectors.add(sectorOffset)),
    )
  }

  function hasFailed(offset: number, bytes: number): boolean {
    if (failedSectors.size === 0) return false
    for (let sector = offset - (offset % sectorBytes); sector < offset + bytes; sector += sectorBytes)
      if (failedSectors.has(sector)) return true
    return false
  }
}
