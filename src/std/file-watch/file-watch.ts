// file-watch.ts: reports that files were changed, created, replaced or removed. It does not read them.
//
//   the system reports an event in a folder -> pause -> check -> changed(files)
//   every `pollMs`, with or without events              -> check -> changed(files)
//
// An event is only a hint: there are too many (a log beside the config), they come too early (a file half
// written), or not at all (network file systems, the target of a link, no inotify watches left). A check
// compares times, sizes and identities of the files with those of the last one. Bounds: one check at a time,
// one watch a folder, at most `foldersMax`. Why this is own code: docs/decisions/0027-own-file-watch.md.

import { watch } from 'node:fs'
import { stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { every, type CancelTimer, type Clock } from '../clock.ts'

export type FileWatch = {
  /** Watches the files from their present state on: to be called before they are read. */
  watch(files: readonly string[]): Promise<void>
  close(): void
}

export type FileWatchOptions = {
  /** From an event to the check: editors write in several steps. */
  settleMs: number
  pollMs: number
}

/** Calls `changed` for any event in `folder`; throws where it cannot be watched. For tests. */
export type WatchFolder = (folder: string, changed: () => void) => { close(): void }

type Deps = { clock: Clock; changed: (files: readonly string[]) => void; watchFolder?: WatchFolder }

const foldersMax = 64

export function createFileWatch(
  { clock, changed, watchFolder = watchWithSystem }: Deps,
  { settleMs, pollMs }: FileWatchOptions,
): FileWatch {
  const seen = new Map<string, string>()
  const folders = new Map<string, { close(): void }>()
  let checking = false
  let hinted = false
  let cancelHint: CancelTimer = () => {}
  let closed = false
  const endPolls = every(clock, pollMs, check)
  return { watch: watchFiles, close }

  async function watchFiles(files: readonly string[]): Promise<void> {
    for (const file of files) {
      seen.set(file, await stateOf(file))
      watchFolderOf(file)
    }
  }

  function watchFolderOf(file: string): void {
    const folder = dirname(file)
    if (closed || folders.has(folder) || folders.size >= foldersMax) return
    try {
      folders.set(folder, watchFolder(folder, hint))
    } catch {
      // No watches left, or no such folder: the poll finds changes.
      folders.set(folder, { close() {} })
    }
  }

  function hint(): void {
    if (hinted || closed) return
    hinted = true
    cancelHint = clock.after(settleMs, () => {
      hinted = false
      // Never rejects: a file that cannot be read counts as missing.
      void check()
    })
  }

  async function check(): Promise<void> {
    if (checking || closed) return
    checking = true
    const found: string[] = []
    for (const [file, state] of seen) {
      const now = await stateOf(file)
      if (now === state) continue
      seen.set(file, now)
      found.push(file)
    }
    checking = false
    if (found.length > 0 && !closed) changed(found)
  }

  function close(): void {
    closed = true
    cancelHint()
    endPolls()
    for (const one of folders.values()) one.close()
  }
}

async function stateOf(file: string): Promise<string> {
  try {
    const { mtimeMs, ctimeMs, size, ino } = await stat(file)
    return `${mtimeMs}|${ctimeMs}|${size}|${ino}`
  } catch (error) {
    return `missing: ${String(error)}`
  }
}

function watchWithSystem(folder: string, changed: () => void): { close(): void } {
  const watcher = watch(folder, { persistent: false }, changed)
  // The folder was removed: the poll finds its files when they are back.
  watcher.on('error', () => watcher.close())
  return watcher
}
