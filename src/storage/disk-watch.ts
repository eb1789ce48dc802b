// disk-watch.ts: measures the file system of a store, for the limits of who writes it, and keeps the ballast
// loaded that makes room on a full disk.

import type { Clock } from '../std/clock.ts'
import type { Disk, Free } from './disk.ts'

export type DiskWatch = {
  /** Everything anew. Rejects with what the file system says. */
  measure(): Promise<void>
  /**
   * Whether a look is due. `writes`: durable ones of the open store, null without one. While nothing is
   * written and nothing held, a look comes every ten seconds: it would be most of the work of an idle
   * gateway.
   */
  isDue(writes: number | null): boolean
  /** The sizes of all files come every ten seconds while the store uses less than half of its limit. */
  look(writes: number | null): Promise<void>
  /** The ballast never makes the disk low. Without room for it the spool works without. */
  loadBallast(): Promise<void>
}

/**
 * Between two looks where nothing is written, since compaction changes the files of such a store, too; and
 * between two looks at each file of a store that is far from its limit: an outage leaves thousands of them.
 */
const rareLookMs = 10_000
/** Of the limit: below it the store cannot fill up in that time. */
const farShare = 0.5

type Limits = {
  /** `usedBytes`: of the store; null: not measured now. */
  setDisk(free: Free, usedBytes: number | null): void
  /** Null: nothing is held. */
  holdReason(): string | null
}

type Deps = { clock: Clock; disk: Disk; limits: Limits }

/** `path`: of the directory that has the ballast, and the file system of `storePath`. */
type Options = {
  path: string
  storePath: string
  bytesMax: number
  freeBytesMin: number
  ballastBytes: number
}

export function createDiskWatch({ clock, disk, limits }: Deps, options: Options): DiskWatch {
  const last: { writes: number | null; atMs: number } = { writes: null, atMs: clock.monotonic() }
  let files = { usedBytes: Infinity, atMs: clock.monotonic() }
  return {
    measure: async () => void (await measure()),
    isDue(writes) {
      const isQuiet = writes !== null && writes === last.writes && limits.holdReason() === null
      return !isQuiet || clock.monotonic() - last.atMs >= rareLookMs
    },
    look,
    loadBallast: async () => loadBallast(await free()),
  }

  function free(): Promise<Free> {
    return disk.free(options.path)
  }

  async function measure(): Promise<Free> {
    const now = await free()
    // Of the store only: the ballast, and records with a limit of their own, are beside it.
    files = { usedBytes: await disk.usedBytes(options.storePath), atMs: clock.monotonic() }
    limits.setDisk(now, files.usedBytes)
    return now
  }

  async function look(writes: number | null): Promise<void> {
    const nowMs = clock.monotonic()
    Object.assign(last, { writes, atMs: nowMs })
    const isFar = files.usedBytes < options.bytesMax * farShare && limits.holdReason() === null
    if (writes !== null && isFar && nowMs - files.atMs < rareLookMs) {
      limits.setDisk(await free(), null)
      return
    }
    const now = await measure()
    // It was deleted to make room, or there was no room for it at the opening.
    if (writes !== null) await loadBallast(now)
  }

  async function loadBallast({ bytes }: Free): Promise<void> {
    if (bytes < options.freeBytesMin + options.ballastBytes) return
    await disk.loadBallast(options.path, options.ballastBytes).catch(() => disk.dropBallast(options.path))
  }
}
