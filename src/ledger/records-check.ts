// records-check.ts: checks the files of the records before LevelDB opens them, because LevelDB aborts the
// process on some damaged tables. Logs are not checked: what is missing from a log is missing from the
// ledger, and nothing else.

import { join } from 'node:path'
import { GatewayError } from '../std/gateway-error.ts'
import {
  damageText,
  lockStore,
  readCheckState,
  storeFilesAt,
  unknownCheckState,
  writeCheckState,
  type CheckStore,
} from '../storage/storage.ts'

/** How the process ended that had the records before. */
export type PreviousEnd = 'clean' | 'unclean' | 'aborted'

export const recordsPath = (spoolPath: string) => join(spoolPath, 'records')

/**
 * Resolves when LevelDB may open the records. `tables`: which of them are read; `none` reads only those that
 * are known to be suspect. Rejects with SPOOL_DAMAGED, SPOOL_LOCKED or a code of the directory.
 */
export async function checkRecords(
  checkStore: CheckStore,
  { spoolPath, tables }: { spoolPath: string; tables: 'none' | 'unverified' | 'all' },
  signal: AbortSignal,
): Promise<void> {
  const path = recordsPath(spoolPath)
  const statePath = join(spoolPath, 'records-check.json')
  const state = (await readCheckState(statePath)) ?? unknownCheckState
  const { exists, names, hasOthers } = await storeFilesAt(path)
  if (!exists || names.length === 0) return
  if (tables === 'none' && !state.checkAll && !hasOthers) return
  const lock = await lockStore(path, spoolPath)
  try {
    // Before the check: killed during it, the next start knows the same.
    if (tables === 'all') await writeCheckState(statePath, { ...state, checkAll: true })
    const report = await checkStore(
      {
        path,
        logs: false,
        tables: state.checkAll ? 'all' : tables,
        verified: state.verified,
        asidePath: path,
        mend: false,
      },
      { onProgress: () => undefined, signal },
    )
    const isDamaged = report.kind === 'damaged'
    await writeCheckState(statePath, { ...state, verified: report.verified, checkAll: isDamaged })
    if (isDamaged) throw damagedFault(path, damageText(report.damage))
  } finally {
    await lock.release()
  }
}

/** With the code of a damaged database; the supervisor makes an error of the ledger of it. */
function damagedFault(path: string, why: string): GatewayError {
  return new GatewayError('SPOOL_DAMAGED', {
    what: `The records of the ledger at ${path} are damaged.`,
    why,
    act: restartCure,
  })
}

export const restartCure =
  'Delivery does not need the ledger. Start the gateway: it renames the damaged records to records.damaged ' +
  'and begins new ones. Check the disk (dmesg, SMART).'
