// spool-repair.ts: makes a spool with damaged files one that starts again, in place. Entry file of this
// folder.
//
//   lock -> backup -> finish or clear an interrupted repair -> plan -> space -> repair of the files -> mark
//   then for each store that was set aside: its entries -> a new version of the running store -> mark
//
// What it does with the files is in storage/level-repair. Nothing is changed without `apply`.
//
// Records stay as they are: the recovery of the next start mends them, and counts what is missing. With one
// exception: entries that come back because the record of their deletion is lost (lost-payloads.ts) are
// deleted, so that what was delivered is not sent again. Claims keep their batchIds, so a batch that may have
// been sent goes again under its own.
//
// The high-water mark keeps the numbers of the lanes: the next start counts what is missing and goes on
// behind them. It keeps its count of writes, too, so the next start reports the writes that are missing.
//
// A store that was set aside is merged (aside-merge.ts) with one more switch of CURRENT, and then moved to
// `damaged/<time>`, where the damaged files stay until `purge`.

import { isoTime, type EpochMs } from '../../std/clock.ts'
import {
  giveToOwner,
  openLevelFiles,
  planFiles,
  readJournal,
  removeLeftovers,
  repairFiles,
  type FilePlan,
  type InterruptedRepair,
  type NewEntry,
  type RepairStep,
} from '../../storage/storage.ts'
import { laneKey, table, writeCountLane } from '../chunk-log/key-layout.ts'
import { newWriteCount } from '../chunk-log/record-codec.ts'
import type { Mark } from '../high-water-mark/high-water-mark.ts'
import { damagedPathOf, storesAside } from '../opening/aside.ts'
import { createMerge, mergedNames } from './aside-merge.ts'
import { asideName, openAsideStore, type AsideStore } from './aside-store.ts'
import { finishRepair, ownMark } from './finish-repair.ts'
import { findLostIds } from './lost-ids.ts'
import { findLosses, type Losses } from './lost-payloads.ts'
import { backUp, placesOf, purgeDamaged, withLock, type Places } from './repair-places.ts'
import {
  mergeReportOf,
  refuseWithoutSpace,
  reportOf,
  writeReport,
  type MergeReport,
  type RepairReport,
} from './repair-report.ts'

export type { MergeReport, RepairReport } from './repair-report.ts'

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
  return withLock(places, options.signal, async () => {
    try {
      return await repairLocked(places, options)
    } finally {
      if (options.apply) await giveToOwner(places.spoolPath)
    }
  })
}

async function repairLocked(places: Places, options: RepairOptions): Promise<RepairReport> {
  const { storePath, journalFile, spoolPath } = places
  // Before anything changes, and also where nothing has to: the operator asked for a copy.
  const backup = options.apply ? options.backup : null
  if (backup !== null) await backUp(places, backup)
  const interrupted = await readJournal(journalFile, storePath)
  if (interrupted !== null && options.apply) {
    if (interrupted.isSwitched) await finishRepair(places, interrupted)
    else await removeLeftovers(storePath, interrupted)
  }
  const repaired = await repairStore(places, options, interrupted)
  const merges = await mergeStores(places, options)
  const state = repaired.state === 'whole' && merges.length > 0 ? stateOf(options) : repaired.state
  const bytesNeeded = merges.reduce((sum, merge) => sum + merge.bytesNeeded, repaired.bytesNeeded)
  const purged = options.apply && options.purge ? await purgeDamaged(spoolPath) : []
  return { ...repaired, state, merges, bytesNeeded, backup, purged }
}

const stateOf = ({ apply }: RepairOptions) => (apply ? 'repaired' : 'planned')

async function repairStore(
  places: Places,
  options: RepairOptions,
  interrupted: InterruptedRepair | null,
): Promise<RepairReport> {
  const { storePath, journalFile, spoolPath } = places
  const unfinished = interrupted?.isSwitched === false ? interrupted : null
  const { signal, onProgress = () => undefined } = options
  const plan = await planFiles(storePath, {
    signal,
    onProgress,
    below: unfinished?.firstNumber ?? Infinity,
  })
  const { losses, lostIds } = await lossesOf(plan, await ownMark(places), signal)
  const wasInterrupted = interrupted !== null
  const report = await reportOf(spoolPath, { plan, losses, lostIds, wasInterrupted, apply: options.apply })
  if (plan.damage.length === 0) return { ...report, state: 'whole', bytesNeeded: 0 }
  const asidePath = unfinished?.asidePath ?? damagedPathOf(spoolPath, options.now())
  if (!options.apply) return { ...report, asidePath }
  await refuseWithoutSpace(spoolPath, report.bytesNeeded)
  const startedAt = isoTime(options.now())
  const onStep = async (step: RepairStep | 'mark') => {
    if (step === 'aside') await writeReport(asidePath, 'repair-report.json', { ...report, startedAt })
    await options.onStep?.(step)
  }
  const replaced = () => correctionsOf(plan, losses)
  await repairFiles(plan, { journalFile, asidePath, startedAt, signal, replaced, onStep })
  await finishRepair(places, { asidePath, moved: null })
  await onStep('mark')
  return { ...report, state: 'repaired', asidePath }
}

/** In the order of the keys. */
function correctionsOf({ tables, logs }: FilePlan, { returned, added }: Losses): NewEntry[] {
  const isEmpty = tables.length === 0 && logs.every(({ batches }) => batches === 0)
  // With a count of writes, the next start reports by the mark that all are missing.
  const count: NewEntry[] = isEmpty ? [[laneKey(table.totals, writeCountLane), newWriteCount()]] : []
  const deleted = returned.keys.map((key): NewEntry => [key, null])
  return [...deleted, ...added, ...count].toSorted(([one], [other]) => one.compare(other))
}

async function lossesOf(
  plan: FilePlan,
  mark: Mark | null,
  signal: AbortSignal,
): Promise<{ losses: Losses; lostIds: string[] }> {
  const files = await openLevelFiles(plan.directory.path)
  try {
    const losses = await findLosses(files, mark, signal)
    return { losses, lostIds: await findLostIds(files, losses.ranges, signal) }
  } finally {
    await files.close()
  }
}

/** Stores that were set aside, the oldest first. Each is one more version of the running store. */
async function mergeStores(places: Places, options: RepairOptions): Promise<MergeReport[]> {
  const merges: MergeReport[] = []
  for (const path of (await storesAside(places.spoolPath)).toSorted()) {
    const aside = await openAsideStore(path, options.signal)
    try {
      const report = mergeReportOf(aside)
      merges.push(report)
      if (options.apply) await merge(places, aside, report, options)
    } finally {
      await aside.close()
    }
  }
  return merges
}

async function merge(
  places: Places,
  aside: AsideStore,
  report: MergeReport,
  options: RepairOptions,
): Promise<void> {
  const { spoolPath, storePath, journalFile } = places
  const { path: moved } = aside
  const { signal, now, onStep = () => undefined } = options
  const startedAt = isoTime(now())
  const asidePath = damagedPathOf(spoolPath, now())
  const running = await openLevelFiles(storePath)
  try {
    if (!(await mergedNames(running)).includes(asideName(moved))) {
      await refuseWithoutSpace(spoolPath, report.bytesNeeded)
      const { added, replaced } = await createMerge(aside, running, await ownMark(places))
      const plan = await planFiles(storePath, { signal })
      const content = { added: added(), replaced }
      await repairFiles(plan, { journalFile, asidePath, startedAt, moved, signal, onStep, ...content })
      await writeReport(asidePath, `${asideName(moved)}.json`, { ...report, startedAt })
    }
  } finally {
    await running.close()
  }
  await finishRepair(places, { asidePath, moved })
  await onStep('mark')
}
