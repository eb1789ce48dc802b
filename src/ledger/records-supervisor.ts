// records-supervisor.ts: has the records open, or opens them again.
//
//   locked        somebody asks the records of a daemon that did not run: tried again until they are free
//   unwritable    tried again, after 1 s doubling to a minute
//   damaged       set aside as they are, under `records.damaged`, and new ones begun; one such folder is kept
//   a write failed, or a read met damage    closed, since the handle lies from then on, and opened again

import { existsSync } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '../std/clock.ts'
import { codeOf, GatewayError, messageOf } from '../std/gateway-error.ts'
import type { Emit } from '../domain/event.ts'
import type { OpenStore, Store } from '../storage/storage.ts'
import { openRecords, type Records, type RecordsOptions } from './ledger-records.ts'

export type RecordsSupervisor = {
  /** Null while they are not open. */
  readonly records: Records | null
  /** Opens them where they are not open and it is time to try; never rejects. */
  ensure(): Promise<Records | null>
  /** Something went wrong with these; they are void. */
  lost(records: Records, error: unknown): Promise<void>
  close(): Promise<void>
}

type Deps = { clock: Clock; emit: Emit; openStore: OpenStore }

type Options = RecordsOptions & { path: string; reopen: { firstMs: number; mostMs: number } }

const storeOptions = { writeBufferBytes: 4 * 1024 * 1024 }

export const recordsPath = (spoolPath: string) => join(spoolPath, 'records')

export function createRecordsSupervisor(
  { clock, emit, openStore }: Deps,
  options: Options,
): RecordsSupervisor {
  const path = recordsPath(options.path)
  const asidePath = `${path}.damaged`
  let records: Records | null = null
  let opening: Promise<Records | null> | null = null
  let failures = 0
  let nextTryMs = Number.NEGATIVE_INFINITY
  let closed = false

  return {
    get records() {
      return records
    },
    ensure,
    lost,
    close,
  }

  function ensure(): Promise<Records | null> {
    if (records !== null || closed || clock.monotonic() < nextTryMs) return Promise.resolve(records)
    opening ??= open().finally(() => {
      opening = null
    })
    return opening
  }

  async function open(): Promise<Records | null> {
    const startedMs = clock.monotonic()
    try {
      const opened = await openAt(openStore, path, options)
      if (closed) {
        await opened.close()
        return null
      }
      records = opened
      failures = 0
      emit({ kind: 'ledger_opened', ...opened.totals(), tookMs: clock.monotonic() - startedMs })
    } catch (error) {
      await failed(error)
    }
    return records
  }

  async function failed(error: unknown): Promise<void> {
    const { firstMs, mostMs } = options.reopen
    const waitMs = Math.min(mostMs, firstMs * 2 ** failures)
    failures += 1
    nextTryMs = clock.monotonic() + waitMs
    if (isDamage(error) && (await setAside(messageOf(error)))) return
    emit({ kind: 'ledger_failed', fault: faultOf(error, path), retryInMs: waitMs })
  }

  /** False where that cannot be done either. */
  async function setAside(why: string): Promise<boolean> {
    try {
      await rm(asidePath, { recursive: true, force: true })
      await rename(path, asidePath)
    } catch (error) {
      emit({ kind: 'ledger_failed', fault: faultOf(error, path), retryInMs: nextTryMs - clock.monotonic() })
      return false
    }
    emit({ kind: 'ledger_set_aside', path: asidePath, why })
    nextTryMs = Number.NEGATIVE_INFINITY
    return true
  }

  async function lost(failing: Records, error: unknown): Promise<void> {
    if (records !== failing) return
    records = null
    // Whatever else goes wrong with it: it is not used any more.
    await failing.close().catch(() => undefined)
    await failed(error)
  }

  async function close(): Promise<void> {
    closed = true
    await opening
    const open = records
    records = null
    await open?.close().catch(() => undefined)
  }
}

/** The records of a daemon that does not run. Rejects with LEDGER_LOCKED, LEDGER_UNUSABLE or LEDGER_MISSING. */
export async function openOfflineRecords(openStore: OpenStore, spoolPath: string): Promise<Records> {
  const path = recordsPath(spoolPath)
  if (!existsSync(join(path, 'CURRENT'))) {
    throw new GatewayError('LEDGER_MISSING', {
      what: `There is no ledger at ${path}.`,
      why: 'No gateway with this spool has kept one, or spool.path of the config is another.',
      act: 'Check spool.path and ledger.enabled.',
    })
  }
  try {
    return await openAt(openStore, path, { blockReceiptBytesMax: Number.POSITIVE_INFINITY })
  } catch (error) {
    throw faultOf(error, path)
  }
}

async function openAt(openStore: OpenStore, path: string, options: RecordsOptions): Promise<Records> {
  let store: Store | null = null
  try {
    store = await openStore(path, storeOptions)
    return await openRecords(store, options)
  } catch (error) {
    await store?.close()
    throw error
  }
}

function isDamage(error: unknown): boolean {
  return (
    (error instanceof GatewayError && error.code === 'SPOOL_DAMAGED') || codeOf(error) === 'LEVEL_CORRUPTION'
  )
}

/** The same in the words of the ledger: the store knows the spool alone. */
function faultOf(error: unknown, path: string): GatewayError {
  if (error instanceof GatewayError && error.code === 'SPOOL_LOCKED') {
    return new GatewayError('LEDGER_LOCKED', {
      what: `Cannot open the ledger at ${path}.`,
      why: 'Another process holds its lock: a gateway, or a `telemetry-gateway ledger` that opened it.',
      act: 'Ask the gateway that runs (--url, or the --config that it was started with), or let the other one end.',
      cause: error,
    })
  }
  const why = error instanceof GatewayError ? error.why : `${messageOf(error)}.`
  return new GatewayError('LEDGER_UNUSABLE', {
    what: `Cannot use the ledger at ${path}.`,
    why,
    act: 'Delivery does not need it. Check that the user of the gateway may write there, and the disk.',
    cause: error,
  })
}
