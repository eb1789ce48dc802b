// mark-file.ts: reads and writes the file of the high-water mark of a spool that no daemon uses.

import { open, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { codeOf, messageOf } from '../../std/gateway-error.ts'
import { openRegular } from '../../std/file-system/regular-file.ts'
import { fileBytes, markName, readMark, slotBytes, type FoundMark, type Mark } from './high-water-mark.ts'
import { layOutMark, sealMark } from './mark-codec.ts'

/** `directory` is that of the spool. */
export async function readMarkIn(directory: string): Promise<FoundMark> {
  try {
    const file = await openRegular(join(directory, markName))
    try {
      return readMark(await file.readFile())
    } finally {
      await file.close()
    }
  } catch (error) {
    return codeOf(error) === 'ENOENT' ? { kind: 'none' } : { kind: 'unreadable', why: messageOf(error) }
  }
}

/** Replaces the file, durable when it resolves. Rejects with errors of the file system. */
export async function writeMarkIn(
  directory: string,
  mark: Omit<Mark, 'serial' | 'lanesLeftOut'>,
): Promise<void> {
  const content = Buffer.alloc(fileBytes)
  const slot = content.subarray(0, slotBytes)
  sealMark(slot, layOutMark(slot, mark), { ...mark, serial: 2 })
  const name = join(directory, markName)
  const file = await open(`${name}.new`, 'w', 0o600)
  try {
    await file.writeFile(content)
    await file.sync()
  } finally {
    await file.close()
  }
  await rename(`${name}.new`, name)
  const folder = await open(directory, 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}
