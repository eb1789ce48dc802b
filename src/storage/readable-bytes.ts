// readable-bytes.ts: reads a file of a failing disk: a sector that cannot be read costs its own bytes only.

import type { FileHandle } from 'node:fs/promises'
import { codeOf } from '../std/gateway-error.ts'

export const sectorBytes = 4096

/**
 * Fills `into` from `position` on and returns the bytes read: fewer than asked only at the end of the file.
 * A sector that the disk cannot read (EIO) becomes zeros, which no checksum fits; `onFailed` gets its offset.
 */
export async function readWhatIsReadable(
  file: FileHandle,
  into: Buffer,
  position: number,
  onFailed: (sectorOffset: number) => void = () => undefined,
): Promise<number> {
  let done = 0
  while (done < into.length) {
    const bytesRead = await readSome(file, into.subarray(done), position + done, onFailed)
    if (bytesRead === 0) break
    done += bytesRead
  }
  return done
}

async function readSome(
  file: FileHandle,
  into: Buffer,
  position: number,
  onFailed: (sectorOffset: number) => void,
): Promise<number> {
  try {
    return (await file.read(into, 0, into.length, position)).bytesRead
  } catch (error) {
    if (codeOf(error) !== 'EIO') throw error
  }
  const { size } = await file.stat()
  const toSectorEnd = sectorBytes - (position % sectorBytes)
  const sector = into.subarray(0, Math.max(0, Math.min(into.length, toSectorEnd, size - position)))
  try {
    return (await file.read(sector, 0, sector.length, position)).bytesRead
  } catch (error) {
    if (codeOf(error) !== 'EIO') throw error
    sector.fill(0)
    onFailed(position - (position % sectorBytes))
    return sector.length
  }
}
