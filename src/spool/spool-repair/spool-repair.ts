// spool-repair.ts: makes a spool with damaged files one that starts again, in place. Entry file of this
// folder.
//
//   lock -> finish or clear an interrupted repair -> plan -> space -> backup -> repair of the files -> mark
//
// What it does with the files is in storage/level-repair. Nothing is changed without `apply`.
//
// Records stay as they are: the recovery of the next start mends them, and counts what is missing. With one
// exception: entries that come back because the record of their deletion is lost (lost-payloads.ts) are
// deleted, so that what was delivered is not sent again. Claims keep their batchIds, so a batch that may have
// been sent goes again under its own.
//
// The high-water mark keeps the numbers of the lanes: the next start counts what is missing and goes on
// behind them. Its count of writes becomes that of the repaired database.
//
// The damaged files stay in `damaged/<time>` until `purge`.

import { isoTime, type EpochMs } from '../../std/clock.ts'
import {
  openLevelFiles,
  planFiles,
  readJournal,
  removeJournal,
  removeLeftovers,
  repairFiles,
  type FilePlan,
  type NewEntry,
  type RepairStep,
} from '../../storage/storage.ts'
import { formatKey, laneKey, table, writeCountLane } from '../chunk-log/key-layout.ts'
import { decodeWriteCount, formatRecord } from '../chunk-log/record-codec.ts'
import { readMarkIn, writeMarkIn } from '../high-water-mark/mark-file.ts'
import type { Mark } from '../high-water-mark/high-water-mark.ts'
import { damagedPathOf } from '../opening/aside.ts'
import { findLosses, type Losses } from './lost-payloads.ts'
import { backUp, placesOf, purgeDamaged, withLock, type Places } from './repair-places.ts'
import { refuseWithoutSpace, reportOf, writeReport, type RepairReport } from './repair-report.ts'

export type { RepairReport } from './repair-report.ts'

export type RepairOptions = {
  /** Change something. False: only the plan. */
  apply: boolean
  /** A directory for a copy of the store as it is; it must be empty or missing. */
  backup: string | null
  /** Delete what earlier repairs and starts set aside, and this one. */
  purge: boolean
  now: () => EpochMs
  signal: AbortSignal
  onProgress?: (progress: { bytesRead: number; bytesTotal: number; file: string }) => void
  onStep?: (step: RepairStep | 'mark') => void | Promise<void>
}

/**
 * Rejects with SPOOL_MISSING, SPOOL_LOCKED, SPOOL_DISK_FULL, OUTPUT_UNWRITABLE or a code of the directory.
 */
export async function repairSpool(path: string, options: RepairOptions): Promise<RepairReport> {
  const places = await placesOf(path)
  return withLock(places, options.signal, () => repairLocked(places, options))
}

async function repairLocked(places: Places, options: RepairOptions): Promise<RepairReport> {
  const { storePath, journalFile, spoolPath } = places
  const interrupted = await readJournal(journalFile, storePath)
  if (interrupted?.isSwitched === true && options.apply) await finish(places)
  else if (interrupted?.isSwitched === false && options.apply) await removeLeftovers(storePath, interrupted)
  const below = interrupted?.isSwitched === false ? interrupted.firstNumber : Infinity
  const { signal, onProgress = () => undefined } = options
  const plan = await planFiles(storePath, { signal, onProgress, below })
  const mark = await ownMark(places)
  const losses = await lossesOf(plan, mark, signal)
  const wasInterrupted = interrupted !== null
  const report = await reportOf(spoolPath, { plan, losses, wasInterrupted, apply: options.apply })
  if (plan.damage.length === 0) return { ...report, state: 'whole', purged: await purged() }
  const asidePath =
    interrupted?.isSwitched === false ? interrupted.asidePath : damagedPathOf(spoolPath, options.now())
  if (!options.apply) return { ...report, asidePath }
  refuseWithoutSpace(spoolPath, report)
  if (options.backup !== null) await backUp(storePath, options.backup)
  const startedAt = isoTime(options.now())
  const replaced = losses.returned.keys.map((key): NewEntry => [key, null])
  const onStep = async (step: RepairStep | 'mark') => {
    if (step === 'aside') await writeReport(asidePath, { ...report, startedAt })
    await options.onStep?.(step)
  }
  await repairFiles(plan, { journalFile, asidePath, startedAt, signal, replaced, onStep })
  await finish(places)
  await onStep('mark')
  const done = { asidePath, backup: options.backup, purged: await purged() }
  return { ...report, state: 'repaired', ...done }

  async function purged(): Promise<string[]> {
    return options.apply && options.purge ? purgeDamaged(spoolPath) : []
  }
}

/** The mark, where it belongs to this store. */
async function ownMark({ spoolPath, storePath }: Places): Promise<Mark | null> {
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

async function lossesOf(plan: FilePlan, mark: Mark | null, signal: AbortSignal): Promise<Losses> {
  const files = await openLevelFiles(plan.directory.path)
  try {
    return await findLosses(files, { damage: plan.damage, mark }, signal)
  } finally {
    await files.close()
  }
}

/** What follows the switch. It can be repeated. */
async function finish(places: Places): Promise<void> {
  const { spoolPath, storePath, journalFile } = places
  const mark = await ownMark(places)
  if (mark !== null) {
    const files = await openLevelFiles(storePath)
    try {
      const count = decodeWriteCount(await files.get(laneKey(table.totals, writeCountLane)))
      const manifest = files.manifest?.name ?? ''
      await writeMarkIn(spoolPath, { ...mark, writes: count ?? 0, manifest })
    } finally {
      await files.close()
    }
  }
  await removeJournal(journalFile)
}
