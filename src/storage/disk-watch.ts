// disk-watch.ts: measures the file system of a store, for the limits of who writes it, and keeps the ballast
// loaded that makes room on a full disk.

import type { Clock } from '../std/clock.ts'
import type { Disk, Free } from './disk.ts'

export type DiskWatch = {
  /** Everything anew. Rejects with what the file system says. */
  measure(): Promise<void>
  /**
   * `writes`: durable ones of the open store, null without one. A look at each file would be most of the work
   * of an idle gateway, so that comes every ten seconds while nothing is written and nothing held.
   */
  look(writes: number | null): Promise<void>
  /** The ballast never makes the disk low. Without room for it the spool works without. */
  loadBallast(): Promise<void>
}

/** Compaction changes the files of a store that is not written, too. */
const filesEveryMs = 10_000

type Limits = {
  /** `usedBytes`: of the store; null: not measured now. */
  setDisk(free: Free, usedBytes: number | null): void
  /** Null: nothing is held. */
  holdReason(): string | null
}

type Deps = { clock: Clock; disk: Disk; limits: Limits }

/** `path`: of the directory that has the ballast, and the file system of `storePath`. */
type Options = { path: string; storePath: string; freeBytesMin: number; ballastBytes: number }

export function createDiskWatch({ clock, disk, limits }: Deps, options: Options): DiskWatch {
  const last: { writes: number | null; atMs: number } = { writes: null, atMs: clock.monotonic() }
  return {
    measure: async () => void (await measure()),
    look,
    loadBallast: async () => loadBallast(await free()),
  }

  function free(): Promise<Free> {
    return disk.free(options.path)
  }

  async function measure(): Promise<Free> {
    const now = await free()
    // Of the store only: the ballast, and records with a limit of their own, are beside it.
    limits.setDisk(now, await disk.usedBytes(options.storePath))
    return now
  }

  async function look(writes: number | null): Promise<void> {
    const nowMs = clock.monotonic()
    const isSame = writes !== null && writes === last.writes && limits.holdReason() === null
    if (isSame && nowMs - last.atMs < filesEveryMs) {
      limits.setDisk(await free(), null)
      return
    }
    Object.assign(last, { writes, atMs: nowMs })
    const now = await measure()
    // It was deleted to make room, or there was no room for it at the opening.
    if (writes !== null) await loadBallast(now)
  }

  async function loadBallast({ bytes }: Free): Promise<void> {
    if (bytes < options.freeBytesMin + options.ballastBytes) return
    await disk.loadBallast(options.path, options.ballastBytes).catch(() => disk.dropBallast(options.path))
  }
}
