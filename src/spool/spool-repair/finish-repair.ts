// finish-repair.ts: what follows the switch of a repair. Each step can be repeated: a repair that was
// interrupted behind its switch does only this.

import { mkdir, rename } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { codeOf } from '../../std/gateway-error.ts'
import {
  openLevelFiles,
  removeJournal,
  syncDirectory,
  type InterruptedRepair,
} from '../../storage/storage.ts'
import { formatKey, laneKey, table, writeCountLane } from '../chunk-log/key-layout.ts'
import { decodeWriteCount, formatRecord } from '../chunk-log/record-codec.ts'
import { readMarkIn, writeMarkIn } from '../high-water-mark/mark-file.ts'
import type { Mark } from '../high-water-mark/high-water-mark.ts'
import type { Places } from './repair-places.ts'

/** The mark, where it belongs to this store. */
export async function ownMark({ spoolPath, storePath }: Places): Promise<Mark | null> {
  const found = await readMarkIn(spoolPath)
  if (found.kind !== 'mark') return null
  const files = await openLevelFiles(storePath)
  try {
    const instance = formatRecord.decode(await files.get(formatKey))?.instance ?? null
    return instance === null || instance === found.mark.instance ? found.mark : null
  } finally {
    await files.close()
  }
}

/** The mark keeps the numbers of the lanes and of the writes: the next start reports what is missing. */
export async function finishRepair(
  places: Places,
  { asidePath, moved }: Pick<InterruptedRepair, 'asidePath' | 'moved'>,
): Promise<void> {
  const { spoolPath, storePath, journalFile } = places
  const mark = await ownMark(places)
  if (mark !== null) {
    const files = await openLevelFiles(storePath)
    try {
      const count = decodeWriteCount(await files.get(laneKey(table.totals, writeCountLane)))
      const manifest = files.manifest?.name ?? ''
      await writeMarkIn(spoolPath, { ...mark, writes: Math.max(mark.writes, count ?? 0), manifest })
    } finally {
      await files.close()
    }
  }
  if (moved !== null) await moveInto(asidePath, moved, spoolPath)
  await removeJournal(journalFile)
}

async function moveInto(asidePath: string, moved: string, spoolPath: string): Promise<void> {
  await mkdir(asidePath, { recursive: true })
  try {
    await rename(moved, join(asidePath, basename(moved)))
  } catch (error) {
    // It was moved before the interruption.
    if (codeOf(error) !== 'ENOENT') throw error
  }
  await syncDirectory(asidePath)
  await syncDirectory(spoolPath)
}
