// opening.ts: decides whether LevelDB may open the store. Entry file of this folder.
//
// LevelDB aborts the process on some damaged tables, creates a new database where CURRENT is missing, and
// drops what follows damage in a log. So the files are looked at first, without it.
//
//   the end before this start      what is checked
//   clean                          CURRENT exists, and all files of the database are files; LevelDB itself
//                                  reports a missing table
//   unclean (the marker `in-use`), or another version had the store
//                                  the logs, and the tables that were not read since they were written
//   aborted: ABRT, BUS or SEGV, or two unclean ends within ten minutes, or damage is known   all tables
//
//   what is found                                  what follows
//   nothing wrong                                  the store is opened
//   a log that is bad before its end               a copy is kept, the log is rewritten with what is readable
//   leftovers of a store that never held anything  moved to damaged/, and a new store is created
//   damage                                         SPOOL_DAMAGED; with `on_damage: set_aside` the store is
//                                                  renamed, and a new one is begun
//
//   in-use-marker.ts   how the process before this one ended
//   damage-report.ts   what was found, in words, and the command that repairs it
//   aside.ts           moves files out of the way
//   safe-open.ts       one opening of the store
//   store-watch.ts     waits for a change of the files
//   table-verification.ts  reads the tables slowly while the store is open
//
// The lock of the store is held from before the check until just before the opening, so that the files of a
// store that another process uses are not changed.

import { join } from 'node:path'
import { formatSize, plural } from '../../std/quantity.ts'
import type { Clock } from '../../std/clock.ts'
import { codeOf } from '../../std/gateway-error.ts'
import type { State, StateSource } from '../../domain/condition-state.ts'
import type { Emit } from '../../domain/event.ts'
import {
  damageText,
  explainDirectory,
  hasDatabase,
  lockStore,
  readCheckState,
  realDisk,
  storeFilesAt,
  unknownCheckState,
  writeCheckState,
  type CheckProgress,
  type CheckReport,
  type CheckState,
  type CheckStore,
  type StoreFiles,
} from '../../storage/storage.ts'
import { damagedPathOf, hasMark, moveLeftovers, setStoreAside, storePathOf, storesAside } from './aside.ts'
import { damagedFault } from './damage-report.ts'
import {
  endedByAbort,
  forgetLastExit,
  markInUse,
  readInUse,
  unmarkInUse,
  type InUseMemory,
  type PreviousEnd,
} from './in-use-marker.ts'
import type { StoreMemory } from './known-store.ts'
import type { FoundStore } from './spool-marker.ts'

export type { PreviousEnd } from './in-use-marker.ts'

export type StoreOpening = StateSource & {
  /** `clean` before the first call of prepare(). */
  previousEnd(): PreviousEnd
  /**
   * Resolves when LevelDB may open the store. Where there is one, none may be created, whatever is at the
   * path by then. Rejects with SPOOL_DAMAGED, SPOOL_LOCKED or a code of the directory.
   */
  prepare(signal: AbortSignal): Promise<FoundStore>
  /** The next prepare() reads all tables, also after a restart. */
  suspect(): Promise<void>
  checkState(): CheckState
  /** Changes what is known of the files, also for the next start. */
  note(changes: Partial<CheckState>): Promise<void>
  /** The store was closed in order. */
  closed(): Promise<void>
  /** For stores that were set aside and are not merged yet. */
  lookForAside(): Promise<void>
}

type Deps = {
  clock: Clock
  emit: Emit
  checkStore: CheckStore
  /** Tells a boot from the next. */
  bootId: string
  /** What the start does now, for the status. */
  onProgress: (text: string) => void
  memory: InUseMemory
  /** The store was set aside: a new one in its place is meant. */
  begunAnew?: () => void
}

export type OpeningOptions = {
  path: string
  onDamage: 'refuse' | 'set_aside'
  /** Where the service manager notes how the last process ended. */
  lastExitPath: string
}

/** `isFirst`: not a reopening of a store that this process has lost. */
type Start = { end: PreviousEnd; isFirst: boolean }

/** Two unclean ends within this time: all tables are read. */
const repeatedEndMs = 600_000
const uncleanEndsMax = 8
const progressEveryMs = 1000

type SpoolDeps = Omit<Deps, 'checkStore' | 'bootId' | 'onProgress' | 'begunAnew' | 'memory'> &
  Partial<Pick<Deps, 'checkStore' | 'bootId' | 'onProgress'>> & { memory: StoreMemory }

/** Null for a store in memory. */
export function openingOf(
  deps: SpoolDeps,
  options: Omit<OpeningOptions, 'lastExitPath'> & { lastExitPath?: string },
): StoreOpening | null {
  const { checkStore, bootId = '', onProgress = () => undefined, memory } = deps
  if (checkStore === undefined) return null
  const { lastExitPath = join(options.path, 'last-exit') } = options
  const begunAnew = () => void (memory.known = null)
  const openingDeps = { ...deps, checkStore, bootId, onProgress, begunAnew }
  return createStoreOpening(openingDeps, { ...options, lastExitPath })
}

export function createStoreOpening(deps: Deps, options: OpeningOptions): StoreOpening {
  const { clock, emit, checkStore, memory } = deps
  const { path } = options
  const storePath = storePathOf(path)
  const statePath = join(path, 'check-state.json')
  let previousEnd: PreviousEnd | null = null
  let state: CheckState = unknownCheckState
  /** Stores that were set aside and are not merged yet. */
  let aside: readonly string[] = []
  let saving: Promise<void> = Promise.resolve()

  return {
    previousEnd() {
      return previousEnd ?? 'clean'
    },
    prepare,
    suspect: () => note({ checkAll: true }),
    checkState: () => state,
    note,
    closed,
    lookForAside,
    states,
  }

  async function prepare(signal: AbortSignal): Promise<FoundStore> {
    try {
      const marker = await readInUse(path)
      const isOurs = marker !== null && marker === memory.inUse?.marker && memory.inUse.isOurs
      const isFirst = previousEnd === null && !isOurs
      const end = (previousEnd ??= await readPreviousEnd(marker))
      memory.inUse = { marker, end, isOurs }
      const files = await storeFilesAt(storePath)
      const isNew = files.names.length === 0 && !(await hasMark(path))
      let found: FoundStore = files.hasCurrent ? 'store' : 'nothing'
      // After a loss of the store in this process, its logs may end within a record.
      if (!isFirst || end !== 'clean' || state.checkAll || files.hasOthers || !(files.hasCurrent || isNew))
        found = await checkLocked({ end, isFirst }, signal)
      await markInUse(path, memory, { end, bootId: deps.bootId, startedAt: clock.now() })
      return found
    } catch (error) {
      signal.throwIfAborted()
      throw explainDirectory(`Cannot use the spool at ${path}.`, error)
    }
  }

  async function readPreviousEnd(marker: string | null): Promise<PreviousEnd> {
    const known = await readCheckState(statePath)
    state = known ?? unknownCheckState
    // An attempt of this process that failed has seen or written it: no process has ended since.
    if (memory.inUse?.marker === marker && (known ?? marker) !== null) return memory.inUse.end
    // A version without marker had the store, or it comes from a copy: its end is not known.
    const isUnclean = marker !== null || (known === null && (await storeFilesAt(storePath)).exists)
    if (await endedByAbort(options.lastExitPath)) return 'aborted'
    if (!isUnclean) return 'clean'
    const nowMs = clock.now()
    const isRepeated = state.uncleanEnds.some((at) => Math.abs(nowMs - at) <= repeatedEndMs)
    state = { ...state, uncleanEnds: [...state.uncleanEnds, nowMs].slice(-uncleanEndsMax) }
    return isRepeated ? 'aborted' : 'unclean'
  }

  async function checkLocked(start: Start, signal: AbortSignal): Promise<FoundStore> {
    await realDisk.makeDirectory(storePath)
    const lock = await lockStore(storePath, path)
    try {
      // Before the check: killed during it, the next start knows the same.
      await note(start.isFirst && start.end === 'aborted' ? { checkAll: true } : {})
      await forgetLastExit(options.lastExitPath)
      return await check(start, await storeFilesAt(storePath), signal)
    } finally {
      await lock.release()
    }
  }

  async function check({ isFirst }: Start, files: StoreFiles, signal: AbortSignal): Promise<FoundStore> {
    const report = await checkStore(
      {
        path: storePath,
        logs: true,
        // The tables of a store that this process has lost were checked at its start, or written since.
        tables: state.checkAll ? 'all' : isFirst ? 'unverified' : 'none',
        verified: state.verified,
        asidePath: damagedPathOf(path, clock.now()),
        mend: files.hasCurrent,
      },
      { onProgress: progressReport(), signal },
    )
    for (const { file, aside, lostBytes, lostOperations } of report.mendedLogs)
      if (aside !== null) emit({ kind: 'log_mended', file, aside, lostBytes, lostOperations })
    if (report.kind === 'ok') {
      const passed = state.checkAll ? { passedAt: clock.now() } : {}
      await note({ verified: report.verified, ...passed, checkAll: false })
      emit({ kind: 'spool_checked', tables: files.tables, tookMs: report.tookMs })
      return files.hasCurrent ? 'store' : 'nothing'
    }
    if (await neverHeldAnything(files, report)) {
      await note({ verified: [], checkAll: false })
      if (files.names.length === 0) return 'nothing'
      await leftoversAside(files)
    } else await damaged(files, report)
    return 'moved'
  }

  /** A power cut while the store was created: what is left cannot be read and holds nothing. */
  async function neverHeldAnything(files: StoreFiles, { damage }: CheckReport): Promise<boolean> {
    if (hasDatabase(files) || (await hasMark(path))) return false
    return damage.every(({ unit }) => unit === 'CURRENT' || unit === 'manifest')
  }

  async function leftoversAside({ names }: StoreFiles): Promise<void> {
    const to = damagedPathOf(path, clock.now())
    await moveLeftovers(path, names, to)
    emit({ kind: 'spool_leftovers_moved', path: to, files: names.length })
  }

  async function damaged(files: StoreFiles, report: CheckReport): Promise<void> {
    const damage = [...report.damage, ...report.mendedLogs.flatMap((log) => log.damage)]
    const why =
      damage.length > 0
        ? damageText(damage)
        : `The store is empty, and the mark beside it shows that data was stored.`
    if (options.onDamage === 'set_aside') {
      const to = await setStoreAside(path, clock.now())
      deps.begunAnew?.()
      await note({ verified: [], checkAll: false })
      emit({ kind: 'spool_set_aside', path: to, why })
      return
    }
    await note({ checkAll: true })
    throw damagedFault(
      path,
      `${why} ${plural(files.tables, 'table')} and ${formatSize(files.logBytes)} of logs are there.`,
    )
  }

  function progressReport(): (progress: CheckProgress) => void {
    let nextMs = clock.monotonic()
    return ({ bytesRead, bytesTotal }) => {
      if (clock.monotonic() < nextMs) return
      nextMs = clock.monotonic() + progressEveryMs
      deps.onProgress(`checking the spool: ${formatSize(bytesRead)} of ${formatSize(bytesTotal)}`)
    }
  }

  async function note(changes: Partial<CheckState>): Promise<void> {
    state = { ...state, ...changes }
    await save()
  }

  async function closed(): Promise<void> {
    // Where one fails, the marker stays, so the next start checks the files.
    if (await save()) await unmarkInUse(path, memory).catch(ignoreSystemError)
  }

  async function lookForAside(): Promise<void> {
    aside = await storesAside(path)
  }

  function* states(): Generator<State> {
    const [first] = aside
    if (first !== undefined)
      yield { code: 'SPOOL_SET_ASIDE', path: first, spoolPath: path, stores: aside.length }
  }

  /**
   * One write at a time. It only spares the next start some reading, so where the disk does not allow it,
   * that is no failure. Resolves with false then.
   */
  function save(): Promise<boolean> {
    const written = saving.then(() => writeCheckState(statePath, state)).then(() => true, ignoreSystemError)
    saving = written.then(
      () => undefined,
      () => undefined,
    )
    return written
  }
}

/** Where the file system reports an error. What else is thrown is a fault of the gateway. */
function ignoreSystemError(error: unknown): false {
  if (codeOf(error) === undefined) throw error
  return false
}
