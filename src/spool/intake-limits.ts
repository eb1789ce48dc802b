// intake-limits.ts: decides whether messages may come in. Owner of invariant 8: the spool stays within its
// limit.
//
// Reasons to hold everything, the most severe first: store_lost, disk_low, spool_full, state_full. At a bound
// nothing is refused or dropped. Acks are held, so devices keep their data, and settles and exchanges, which
// make room, continue in the reserve. Intake resumes automatically. A full store of kept messages is no
// reason to hold everything: only messages that would go there wait (kept/store-limits.ts), or the oldest of
// them make room (kept/eviction.ts).

import type { Clock } from '../std/clock.ts'
import { formatSize, plural } from '../std/quantity.ts'
import type { State } from '../domain/condition-state.ts'
import type { Emit, HoldReason } from '../domain/event.ts'
import { keptStoreNames } from '../domain/kept-store.ts'
import { freeFilesMin, type Free } from '../storage/storage.ts'
import { createFullStores, type FullStores } from './kept/store-limits.ts'
import type { Session, SpoolState } from './session-state.ts'
import type { SpoolOptions } from './spool-options.ts'

/** Intake resumes at this share of a bound, so that it does not flap. */
const resumeShare = 0.98

type Deps = {
  clock: Clock
  emit: Emit
  /** `holdReason` changed, or a store became full or is not full any more. */
  changed: () => void
}

export type IntakeLimits = {
  holdReason(): HoldReason | null
  readonly stores: Pick<FullStores, 'isFull' | 'holds'>
  /** The spool is full although its payloads and kept messages are not: what was deleted takes the space. */
  waitsForDisk(state: SpoolState): boolean
  /** Disk usage of the store, as last measured. */
  diskBytes(): number
  /** Free on its file system, as last measured; null before. */
  freeBytes(): number | null
  /** Compares everything with its bound; `state` is null while the store is lost. */
  update(state: SpoolState | null): void
  /** Cheaper, for the end of a message: what waits to be written counts as well. */
  updateAfterMessage(state: SpoolState): void
  /** For a message that is kept beside the lanes. */
  updateAfterKept(session: Session): void
  /** `usedBytes`: of the store; null: not measured now. */
  setDisk(free: Free, usedBytes: number | null): void
  /** A lost store is a state of the supervisor. */
  states(): Iterable<State>
}

export function createIntakeLimits({ clock, emit, changed }: Deps, options: SpoolOptions): IntakeLimits {
  const { stateBytesMax } = options
  const stores = createFullStores(options)
  const intakeBytesMax = intakeLimitOf(options)
  let holdReason: HoldReason | null = null
  let heldSinceMs = 0
  let detail = ''
  let diskLow = false
  let diskBytes = 0
  let freeBytes: number | null = null
  let freeFiles = Infinity

  function update(state: SpoolState | null): void {
    if (state !== null && stores.update(state)) changed()
    const reason = reasonToHold(state)
    if (reason === holdReason) return
    if (holdReason === null) heldSinceMs = clock.monotonic()
    holdReason = reason
    if (reason === null) emit({ kind: 'spool_resumed', heldMs: clock.monotonic() - heldSinceMs })
    else {
      detail = detailOf(reason, { state, diskBytes, freeFiles, options })
      emit({ kind: 'spool_held', reason, detail })
    }
    changed()
  }

  function reasonToHold(state: SpoolState | null): HoldReason | null {
    if (state === null) return 'store_lost'
    if (diskLow) return 'disk_low'
    const { stateEntries } = state
    const used = Math.max(usedBytes(state), diskBytes - options.reserveBytes)
    if (isFull('spool_full', used, intakeBytesMax)) return 'spool_full'
    return isFull('state_full', stateEntries.bytes, stateBytesMax) ? 'state_full' : null
  }

  function isFull(reason: HoldReason, bytes: number, bytesMax: number): boolean {
    return bytes >= bytesMax * (holdReason === reason ? resumeShare : 1)
  }

  return {
    waitsForDisk: (state) => holdReason === 'spool_full' && usedBytes(state) < intakeBytesMax,
    holdReason() {
      return holdReason
    },
    stores,
    *states() {
      if (holdReason !== null && holdReason !== 'store_lost') yield { code: holdCodes[holdReason], detail }
      yield* stores.states()
    },
    diskBytes() {
      return diskBytes
    },
    freeBytes() {
      return freeBytes
    },
    update,
    updateAfterMessage(state) {
      if (holdReason !== null) return
      if (usedBytes(state) >= intakeBytesMax || state.stateEntries.bytes >= stateBytesMax) update(state)
    },
    updateAfterKept(session) {
      if (stores.update(session)) changed()
      session.eviction.check()
    },
    setDisk({ bytes, files }, used) {
      // To resume, somewhat more than the minimum must be free, so that intake does not flap.
      const factor = diskLow ? 2 - resumeShare : 1
      diskLow = bytes < options.freeBytesMin * factor || files < freeFilesMin * factor
      freeFiles = files
      freeBytes = bytes
      if (used !== null) diskBytes = used
    },
  }
}

/** What counts towards the limit of the spool, uncommitted bytes included. */
function usedBytes({ openBytes, stores, stateEntries, receipts }: SpoolState): number {
  let kept = 0
  for (const name of keptStoreNames) kept += stores[name].bytes
  return openBytes + kept + stateEntries.bytes + receipts.bytes
}

/** What intake may use; the rest is reserved for settles. */
function intakeLimitOf({ bytesMax, reserveBytes }: SpoolOptions): number {
  return bytesMax - reserveBytes
}

const holdCodes = { spool_full: 'SPOOL_FULL', disk_low: 'DISK_LOW', state_full: 'STATE_FULL' } as const

type Measured = { state: SpoolState | null; diskBytes: number; freeFiles: number; options: SpoolOptions }

function detailOf(reason: HoldReason, { state, diskBytes, freeFiles, options }: Measured): string {
  const { bytesMax, freeBytesMin, stateBytesMax } = options
  const used = formatSize(intakeLimitOf(options))
  const isFullOfDeleted = state !== null && usedBytes(state) < intakeLimitOf(options)
  const details: Record<HoldReason, string> = {
    store_lost: 'a write to the spool failed; the store is being reopened',
    disk_low:
      freeFiles < freeFilesMin
        ? `the file system of the spool has ${plural(freeFiles, 'free inode')}, and needs ${freeFilesMin}`
        : `less than ${formatSize(freeBytesMin)} is free on the file system of the spool`,
    spool_full: isFullOfDeleted
      ? `its files take ${formatSize(diskBytes)} of ${formatSize(bytesMax)}, most of it deleted, which is being freed`
      : `${used} of ${formatSize(bytesMax)} is used; the rest is reserved for settling`,
    state_full: `the state of the mapping has reached ${formatSize(stateBytesMax)}`,
  }
  return details[reason]
}
