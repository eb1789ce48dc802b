// file-watch.ts: tells when files were changed, created, replaced or removed. Knows nothing of what is in them.
//
//   the system says that something moved in a folder -> pause -> look -> changed()
//   every 30 s, whatever the system says             ----------> look -> changed()
//
// What the system says is only a hint: it says too much (a log beside the config), too early (a file half written), or
// nothing at all (network file systems, a folder that was a link, no watches left). What counts is a look: times,
// sizes and identities of the files. Bounds: one look at a time, one watch a folder, at most `foldersMax`.

import { watch } from 'node:fs'
import { stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { CancelTimer, Clock } from '../std/clock.ts'

export type FileWatch = {
  /** Takes the files as they are now as seen, and watches them: to be called before they are read. */
  watch(files: readonly string[]): Promise<void>
  close(): void
}

export type FileWatchOptions = {
  /** Editors write in several steps. */
  settleMs: number
  pollMs: number
}

/** Calls `changed` for any event in `folder`; throws where it cannot be watched. For tests. */
export type WatchFolder = (folder: string, changed: () => void) => { close(): void }

type Deps = { clock: Clock; changed: () => void; watchFolder?: WatchFolder }

const foldersMax = 64

export function createFileWatch(
  { clock, changed, watchFolder = watchWithSystem }: Deps,
  { settleMs, pollMs }: FileWatchOptions,
): FileWatch {
  const seen = new Map<string, string>()
  const folders = new Map<string, { close(): void }>()
  let looking = false
  let hinted = false
  let cancelHint: CancelTimer = () => {}
  let closed = false
  let cancelPoll = clock.after(pollMs, poll)
  return { watch: see, close }

  async function see(files: readonly string[]): Promise<void> {
    for (const file of files) {
      seen.set(file, await signOf(file))
      watchFolderOf(file)
    }
  }

  function watchFolderOf(file: string): void {
    const folder = dirname(file)
    if (closed || folders.has(folder) || folders.size >= foldersMax) return
    try {
      folders.set(folder, watchFolder(folder, hint))
    } catch {
      // No watches left, or no such folder: the poll finds what changes.
      folders.set(folder, { close() {} })
    }
  }

  function hint(): void {
    if (hinted || closed) return
    hinted = true
    cancelHint = clock.after(settleMs, () => {
      hinted = false
      // Never rejects: what cannot be looked at is missing.
      void look()
    })
  }

  function poll(): void {
    void look()
    cancelPoll = clock.after(pollMs, poll)
  }

  async function look(): Promise<void> {
    if (looking || closed) return
    looking = true
    let moved = false
    for (const [file, sign] of seen) {
      const now = await signOf(file)
      if (now === sign) continue
      seen.set(file, now)
      moved = true
    }
    looking = false
    if (moved && !closed) changed()
  }

  function close(): void {
    closed = true
    cancelHint()
    cancelPoll()
    for (const one of folders.values()) one.close()
  }
}

async function signOf(file: string): Promise<string> {
  try {
    const { mtimeMs, ctimeMs, size, ino } = await stat(file)
    return `${mtimeMs}|${ctimeMs}|${size}|${ino}`
  } catch (error) {
    return `missing: ${String(error)}`
  }
}

function watchWithSystem(folder: string, changed: () => void): { close(): void } {
  const watcher = watch(folder, { persistent: false }, changed)
  // The folder went: the poll finds it when it is back.
  watcher.on('error', () => watcher.close())
  return watcher
}
