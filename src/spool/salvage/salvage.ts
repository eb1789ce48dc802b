// salvage.ts: reads spools that no daemon uses: a check of all records and the dead letters of an intact
// spool, and a salvage of everything readable from a damaged one. Entry file of this folder.
//
//   copy of the files -> open -> scan -> (a part cannot be read: a second copy, repaired, if it shows more)
//                          '-> (cannot be opened: repair the copy)
//
// Salvage works on copies only, so that the damaged files stay as they are. A database that LevelDB repaired
// can hold payloads that were delivered before, if the record of their deletion was lost; they keep their
// payloadId. A chunk with a wrong checksum is read as far as its frames are plausible. Its payloads are
// marked as suspect, since a flipped bit may have changed a digit.
//
// spool-check.ts compares records and totals (record-sums.ts), salvaged-records.ts reads the content of
// records, store-copy.ts copies the files. live-walk.ts walks over a spool in use.

import { rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { codeOf, GatewayError, messageOf } from '../../std/gateway-error.ts'
import { openExistingStore, realDisk, repairStore, type Store } from '../../storage/storage.ts'
import { scan } from '../chunk-log/damage-scan.ts'
import { allKeys, deadLetterIdOf, deadLetterKeyOf, table, tableRange } from '../chunk-log/key-layout.ts'
import { deadLetterRecord } from '../chunk-log/record-codec.ts'
import { readMarkIn } from '../high-water-mark/mark-file.ts'
import { fitsFilter } from '../kept/dead-letter-table.ts'
import type { DeadLetterEntry, DeadLetterFilter, Spool } from '../types.ts'
import type { SpoolCheck } from '../views.ts'
import { readHeldClaims } from './held-claims.ts'
import { createRecordReader, type Salvaged } from './salvaged-records.ts'
import { checkPages } from './spool-check.ts'
import { copyStore, refuseLocked, storeIn } from './store-copy.ts'

/** A missing or truncated table file counts as damage. */
function isDamage(error: unknown): boolean {
  return ['LEVEL_CORRUPTION', 'LEVEL_IO_ERROR', 'LEVEL_NOT_FOUND'].includes(codeOf(error) ?? '')
}

/** A spool that no daemon uses. */
export type RestingSpool = Pick<Spool, 'deadLetters' | 'deadLetter'> & {
  check(signal: AbortSignal): Promise<SpoolCheck>
  close(): Promise<void>
}

/** Opens a spool without changing a record. Rejects with SPOOL_MISSING, SPOOL_LOCKED or SPOOL_DAMAGED. */
export async function openRestingSpool(path: string): Promise<RestingSpool> {
  const storePath = await storeIn(path)
  const found = await readMarkIn(dirname(storePath))
  const mark = { found, manifest: realDisk.manifestName(storePath) }
  const store = await openExistingStore(storePath)
  return {
    deadLetters: (filter) => deadLettersOf(store, filter),
    async deadLetter(id) {
      const key = deadLetterKeyOf(id)
      const deadLetter = key === null ? null : deadLetterRecord.decode(await store.get(key))
      return deadLetter === null ? null : { id, deadLetter }
    },
    async check(signal) {
      const { check } = await checkPages(
        scan(store, allKeys, { isDamage }),
        () => refuseAborted(signal),
        mark,
      )
      return check
    },
    close: () => store.close(),
  }
}

async function* deadLettersOf(store: Store, filter: DeadLetterFilter): AsyncGenerator<DeadLetterEntry> {
  let left = filter.limit
  for await (const page of scan(store, tableRange(table.deadLetters), { isDamage })) {
    if (page.kind === 'gap') continue
    for (const [key, value] of page.entries) {
      const deadLetter = deadLetterRecord.decode(value)
      if (deadLetter === null) continue
      const entry = { id: deadLetterIdOf(key), deadLetter }
      if (!fitsFilter(entry, filter)) continue
      if (left <= 0) return
      left -= 1
      yield entry
    }
  }
}

export type Salvage = {
  /** What was necessary to read it, and the problems found in it; for the report. */
  readonly steps: readonly string[]
  readonly problems: readonly string[]
  entries(signal: AbortSignal): AsyncGenerator<Salvaged>
  /** Closes the copy and deletes it. */
  close(): Promise<void>
}

/** Creates and deletes `workPath`, a directory for the copies. Rejects as openRestingSpool does. */
export async function openSalvage(path: string, workPath: string): Promise<Salvage> {
  const from = await storeIn(path)
  try {
    await refuseLocked(from, workPath)
    return await openCopy(from, workPath)
  } catch (error) {
    await rm(workPath, { recursive: true, force: true })
    throw error
  }
}

async function openCopy(from: string, workPath: string): Promise<Salvage> {
  const steps: string[] = []
  const first = join(workPath, 'copy')
  await copyStore(from, first)
  const opened = await openOrRepair(first, steps)
  let { store } = opened
  const { check, records } = await checkPages(scan(store, allKeys, { isDamage }))
  const problems = [...check.problems]
  if (!check.ok && !opened.repaired) {
    const repaired = await repairedCopy(from, join(workPath, 'repaired'), steps)
    const repairedPages = repaired === null ? null : scan(repaired, allKeys, { isDamage })
    const shown = repairedPages === null ? null : await checkPages(repairedPages)
    const better = shown !== null && shown.records > records
    await (better ? store : repaired)?.close()
    if (better && repaired !== null) {
      store = repaired
      problems.push(...shown.check.problems)
    }
    const used = better ? 'The repaired copy' : 'The plain copy'
    if (shown !== null)
      steps.push(
        `A repaired copy has ${shown.records} records, the plain copy has ${records}. ${used} is used.`,
      )
  }
  return {
    steps,
    problems,
    entries: (signal) => entriesOf(store, signal),
    async close() {
      await store.close()
      await rm(workPath, { recursive: true, force: true })
    },
  }
}

/** Null if it cannot be repaired; the plain copy remains. */
async function repairedCopy(from: string, to: string, steps: string[]): Promise<Store | null> {
  await copyStore(from, to)
  try {
    await repairStore(to)
    return await openExistingStore(to)
  } catch (error) {
    steps.push(`A second copy could not be repaired: ${messageOf(error)}`)
    return null
  }
}

async function openOrRepair(path: string, steps: string[]): Promise<{ store: Store; repaired: boolean }> {
  try {
    return { store: await openExistingStore(path), repaired: false }
  } catch (error) {
    steps.push(`The database could not be opened (${messageOf(error)}). A copy was repaired.`)
    await repairStore(path)
    return { store: await openExistingStore(path), repaired: true }
  }
}

async function* entriesOf(store: Store, signal: AbortSignal): AsyncGenerator<Salvaged> {
  // The lanes precede the chunks, so the provider of a chunk is known when it comes. The claims follow them.
  const readRecord = createRecordReader(await readHeldClaims(store, { isDamage }))
  for await (const page of scan(store, allKeys, { isDamage })) {
    refuseAborted(signal)
    if (page.kind === 'gap') {
      const why = `cannot be read: ${messageOf(page.why)}`
      yield { kind: 'unreadable', key: page.from.toString('hex'), why, raw: null }
      continue
    }
    for (const [key, value] of page.entries) yield* readRecord(key, value)
  }
}

function refuseAborted(signal: AbortSignal): void {
  if (!signal.aborted) return
  throw new GatewayError('SPOOL_CLOSED', {
    what: 'The spool was not read to the end.',
    why: 'The command was interrupted.',
    act: 'Nothing was changed in the spool. Start the command again.',
  })
}
