// in-use-marker.ts: the file `in-use` beside the store, which exists while a daemon uses it. A start that
// finds it follows an unclean end. systemd adds the signal that ended the process (`last-exit`, written by
// ExecStopPost of the unit).

import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { codeOf } from '../../std/gateway-error.ts'
import { readRegular, replaceRegular } from '../../std/file-system/regular-file.ts'
import { syncDirectory } from '../../storage/storage.ts'
import { isoTime, type EpochMs } from '../../std/clock.ts'

/**
 * How the process ended that had the store before. `aborted`: the files are suspect, because LevelDB aborts
 * on damaged tables.
 */
export type PreviousEnd = 'clean' | 'unclean' | 'aborted'

/** The last look of this process at the marker, or its last write; absent after an end in order. */
export type InUseMemory = { inUse?: { marker: string | null; end: PreviousEnd; isOurs: boolean } }

/** LevelDB ends the process so on damaged files, and a disk that cannot read a mapped page. */
const abortSignals = /\b(ABRT|BUS|SEGV)\b/

const inUsePath = (spoolPath: string) => join(spoolPath, 'in-use')

/** The marker as it is; null without one. */
export function readInUse(spoolPath: string): Promise<string | null> {
  return readIfThere(inUsePath(spoolPath))
}

/** Durable before the store is opened. */
export async function markInUse(
  spoolPath: string,
  memory: InUseMemory,
  { end, bootId, startedAt }: { end: PreviousEnd; bootId: string; startedAt: EpochMs },
): Promise<void> {
  const content = `${JSON.stringify({ pid: process.pid, bootId, startedAt: isoTime(startedAt) })}\n`
  await replaceRegular(inUsePath(spoolPath), content, { isSynced: true })
  // It is there from now on, also where the directory cannot be synced.
  memory.inUse = { marker: content, end, isOurs: true }
  await syncDirectory(spoolPath)
}

/** After the store was closed in order. */
export async function unmarkInUse(spoolPath: string, memory: InUseMemory): Promise<void> {
  await rm(inUsePath(spoolPath), { force: true })
  delete memory.inUse
}

/** After an attempt to open the store that failed: an end in order before it stays the last one. */
export async function takeBackInUse(spoolPath: string, memory: InUseMemory): Promise<void> {
  const { marker, end, isOurs } = memory.inUse ?? {}
  if (end !== 'clean' || !isOurs) return
  // Another process may have the store now.
  if ((await readInUse(spoolPath)) === marker) await unmarkInUse(spoolPath, memory)
}

/** Whether systemd saw the last process end by a signal that damaged files cause. */
export async function endedByAbort(lastExitPath: string): Promise<boolean> {
  return abortSignals.test((await readIfThere(lastExitPath)) ?? '')
}

export async function forgetLastExit(lastExitPath: string): Promise<void> {
  // A file that another user owns stays; then the next start checks more than it must.
  await rm(lastExitPath, { force: true }).catch(() => undefined)
}

async function readIfThere(path: string): Promise<string | null> {
  try {
    return (await readRegular(path)).slice(0, 1000)
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return null
    // Something is there and cannot be read.
    return ''
  }
}
