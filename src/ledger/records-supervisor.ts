// records-supervisor.ts: keeps the records of the ledger open, and opens them again after a failure.
//
//   locked        a command has opened the records of a stopped daemon: tried again until they are free
//   unwritable    tried again after 1 s, doubling to one minute
//   damaged       renamed to `records.damaged`, of which one is kept; new records are created. After an
//                 unclean end of the process the tables are checked before LevelDB reads them
//                 (records-check.ts)
//   a write failed, or a read found damage    closed, because the handle is unreliable from then on, and
//                                             reopened
//   none are there                            created, unless this process had some, or the directory has no
//                                             marker of a spool: its file system may not be mounted

import { rename, rm } from 'node:fs/promises'
import type { Clock } from '../std/clock.ts'
import { codeOf, GatewayError, messageOf } from '../std/gateway-error.ts'
import type { State, StateSource } from '../domain/condition-state.ts'
import type { Emit } from '../domain/event.ts'
import { hasDatabase, storeFilesAt, type CheckStore, type OpenStore, type Store } from '../storage/storage.ts'
import { openRecords, type Records, type RecordsOptions } from './ledger-records.ts'
import { checkRecords, recordsPath, restartCure, type PreviousEnd } from './records-check.ts'

export { recordsPath } from './records-check.ts'

export type RecordsSupervisor = StateSource & {
  /** Null while the records are not open. */
  readonly records: Records | null
  /** Opens the records where they are closed and the delay is over. Never rejects. */
  ensure(): Promise<Records | null>
  /** An operation of these records failed. They are closed and opened again. */
  lost(records: Records, error: unknown): Promise<void>
  /** Work of others in the same database. Null where it is not open or the work failed; never rejects. */
  use<Result>(work: (store: Records['store']) => Promise<Result>): Promise<Result | null>
  close(): Promise<void>
}

type Deps = {
  clock: Clock
  emit: Emit
  openStore: OpenStore
  /** Without it nothing is checked. */
  checkStore?: CheckStore
  previousEnd?: PreviousEnd
  isSpoolThere?: () => Promise<boolean>
}

type Options = RecordsOptions & { path: string; reopen: { firstMs: number; mostMs: number } }

const storeOptions = { writeBufferBytes: 4 * 1024 * 1024 }

export function createRecordsSupervisor(
  { clock, emit, openStore, checkStore, previousEnd = 'clean', isSpoolThere = async () => true }: Deps,
  options: Options,
): RecordsSupervisor {
  const path = recordsPath(options.path)
  const asidePath = `${path}.damaged`
  let records: Records | null = null
  let opening: Promise<Records | null> | null = null
  /** False once there were records. */
  let mayCreate = true
  let failures = 0
  /** Why they are not open; null while they are, and before the first try. */
  let fault: GatewayError | null = null
  let nextTryMs = Number.NEGATIVE_INFINITY
  const closing = new AbortController()
  /** Until the first opening: which tables the check reads. */
  let suspected: 'none' | 'unverified' | 'all' = tablesToCheck[previousEnd]

  return {
    get records() {
      return records
    },
    ensure,
    lost,
    use,
    *states(): Generator<State> {
      if (fault !== null) yield { code: 'LEDGER_UNAVAILABLE', fault }
    },
    close,
  }

  function ensure(): Promise<Records | null> {
    if (records !== null || closing.signal.aborted || clock.monotonic() < nextTryMs)
      return Promise.resolve(records)
    opening ??= open().finally(() => {
      opening = null
    })
    return opening
  }

  async function open(): Promise<Records | null> {
    const startedMs = clock.monotonic()
    try {
      if (checkStore !== undefined)
        await checkRecords(checkStore, { spoolPath: options.path, tables: suspected }, closing.signal)
      const createIfMissing = mayCreate && (await isSpoolThere())
      const opened = await openAt(openStore, path, { ...options, createIfMissing })
      suspected = 'none'
      mayCreate = false
      if (closing.signal.aborted) {
        await opened.close()
        return null
      }
      records = opened
      failures = 0
      fault = null
      emit({ kind: 'ledger_opened', ...opened.totals(), tookMs: clock.monotonic() - startedMs })
    } catch (error) {
      if (!closing.signal.aborted) await failed(error)
    }
    return records
  }

  async function failed(error: unknown): Promise<void> {
    const { firstMs, mostMs } = options.reopen
    nextTryMs = clock.monotonic() + Math.min(mostMs, firstMs * 2 ** failures)
    failures += 1
    if (isDamage(error) && (await setAside(messageOf(error)))) return
    fault = faultOf(error, path)
  }

  /** False where this fails, too. */
  async function setAside(why: string): Promise<boolean> {
    try {
      await rm(asidePath, { recursive: true, force: true })
      await rename(path, asidePath)
    } catch (error) {
      fault = faultOf(error, path)
      return false
    }
    emit({ kind: 'ledger_set_aside', path: asidePath, why })
    suspected = 'none'
    mayCreate = true
    nextTryMs = Number.NEGATIVE_INFINITY
    return true
  }

  async function lost(failing: Records, error: unknown): Promise<void> {
    if (records !== failing) return
    records = null
    // A failure to close does not matter: this handle is not used again.
    await failing.close().catch(() => undefined)
    await failed(error)
  }

  async function use<Result>(work: (store: Records['store']) => Promise<Result>): Promise<Result | null> {
    const open = await ensure()
    if (open === null) return null
    try {
      return await work(open.store)
    } catch (error) {
      await lost(open, error)
      return null
    }
  }

  async function close(): Promise<void> {
    closing.abort()
    await opening
    const open = records
    records = null
    await open?.close().catch(() => undefined)
  }
}

const tablesToCheck = { clean: 'none', unclean: 'unverified', aborted: 'all' } as const

/**
 * The records of a stopped daemon. All tables are read first. Rejects with LEDGER_LOCKED, LEDGER_UNUSABLE or
 * LEDGER_MISSING.
 */
export async function openOfflineRecords(
  { openStore, checkStore }: { openStore: OpenStore; checkStore: CheckStore },
  spoolPath: string,
): Promise<Records> {
  const path = recordsPath(spoolPath)
  const files = await storeFilesAt(path)
  if (!files.hasCurrent && !hasDatabase(files)) {
    throw new GatewayError('LEDGER_MISSING', {
      what: `There is no ledger at ${path}.`,
      why: 'No gateway has kept a ledger with this spool, or spool.path of the config is wrong.',
      act: 'Check spool.path and ledger.enabled.',
    })
  }
  try {
    await checkRecords(checkStore, { spoolPath, tables: 'all' }, new AbortController().signal)
    return await openAt(openStore, path, { blockReceiptBytesMax: Infinity, blockAgeMaxMs: Infinity })
  } catch (error) {
    throw faultOf(error, path)
  }
}

async function openAt(
  openStore: OpenStore,
  path: string,
  { createIfMissing = true, ...options }: RecordsOptions & { createIfMissing?: boolean },
): Promise<Records> {
  let store: Store | null = null
  try {
    store = await openStore(path, { ...storeOptions, createIfMissing })
    return await openRecords(store, options)
  } catch (error) {
    await store?.close()
    throw error
  }
}

/** The spool is open then, so the last two say that the records are no directory. */
const damageCodes: ReadonlySet<string> = new Set([
  'SPOOL_DAMAGED',
  'SPOOL_NOT_DIRECTORY',
  'SPOOL_PATH_INVALID',
])

function isDamage(error: unknown): boolean {
  if (codeOf(error) === 'LEVEL_CORRUPTION') return true
  return error instanceof GatewayError && damageCodes.has(error.code)
}

/** Converts an error of the store, whose text names the spool, to an error of the ledger. */
function faultOf(error: unknown, path: string): GatewayError {
  if (error instanceof GatewayError && error.code === 'SPOOL_LOCKED') {
    return new GatewayError('LEDGER_LOCKED', {
      what: `Cannot open the ledger at ${path}.`,
      why: 'Another process uses it: a gateway, or another `telemetry-gateway ledger`.',
      act: 'Ask the running gateway (--url, or the --config that it was started with), or wait for the other command.',
      cause: error,
    })
  }
  const why = error instanceof GatewayError ? error.why : `${messageOf(error)}.`
  return new GatewayError('LEDGER_UNUSABLE', {
    what: `Cannot use the ledger at ${path}.`,
    why,
    act: isDamage(error)
      ? restartCure
      : 'Delivery does not need it. Check the disk, and that the user of the gateway can write there.',
    cause: error,
  })
}
