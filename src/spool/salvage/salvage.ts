// salvage.ts: reads spools that no daemon uses: a check of all records, the dead letters, and a salvage of
// everything readable. Entry file of this folder.
//
//   files --own reader--> newest versions of all records --> check
//                                                       '--> dead letters, payloads, messages, state
//
// LevelDB opens no spool here: it aborts the process on some damaged files, and it changes the files. The
// reader of storage/level-files loses only the blocks and writes that are damaged, and names them. Nothing is
// written to the spool, and no copy of it is needed.
//
// Where the record of a deletion is lost, what was deleted comes back. Payloads that were settled before are
// recognized by the numbers of their lane (held-claims.ts) and kept apart. A chunk with a wrong checksum is
// read as far as its frames are plausible. Its payloads are marked as suspect, since a flipped bit may have
// changed a digit.
//
// spool-check.ts compares records and totals (record-sums.ts), lost-records.ts says what damaged files can
// have held, salvaged-records.ts reads the content of records, resting-files.ts opens the files. live-walk.ts
// walks over a spool in use.

import { dirname } from 'node:path'
import { GatewayError } from '../../std/gateway-error.ts'
import { plural } from '../../std/quantity.ts'
import type { LaneId } from '../../domain/ids.ts'
import { realDisk, type StoreRange } from '../../storage/storage.ts'
import type { Scanned } from '../chunk-log/damage-scan.ts'
import { allKeys, deadLetterIdOf, deadLetterKeyOf, table, tableRange } from '../chunk-log/key-layout.ts'
import { deadLetterRecord } from '../chunk-log/record-codec.ts'
import type { Mark } from '../high-water-mark/high-water-mark.ts'
import { readMarkIn } from '../high-water-mark/mark-file.ts'
import { fitsFilter } from '../kept/dead-letter-table.ts'
import type { DeadLetterEntry, DeadLetterFilter, Spool } from '../types.ts'
import type { SpoolCheck } from '../views.ts'
import { claimedPayloads, type ClaimedPayloads } from './held-claims.ts'
import type { MarkBefore, Sums } from './record-sums.ts'
import { openRestingFiles, type RestingFiles } from './resting-files.ts'
import { createRecordReader, type Salvaged } from './salvaged-records.ts'
import { checkPages } from './spool-check.ts'

/** First the bytes of the tables, of their total; then records, whose number is not known before. */
export type OnCheckProgress = (progress: { done: number; total?: number; unit: 'bytes' | 'records' }) => void

/** A spool that no daemon uses. */
export type RestingSpool = Pick<Spool, 'deadLetters' | 'deadLetter'> & {
  check(signal: AbortSignal, onProgress?: OnCheckProgress): Promise<SpoolCheck>
  close(): Promise<void>
}

export type Salvage = {
  /** What is wrong with the spool. */
  readonly check: SpoolCheck
  /** What the reader of the report should know about the result; a sentence each. */
  readonly notes: readonly string[]
  entries(signal: AbortSignal): AsyncGenerator<Salvaged>
  close(): Promise<void>
}

/** Opens a spool without changing a file. Rejects with SPOOL_MISSING, SPOOL_LOCKED or SPOOL_UNWRITABLE. */
export async function openRestingSpool(path: string): Promise<RestingSpool> {
  const files = await openRestingFiles(path)
  return {
    deadLetters: (filter) => deadLettersOf(files, filter),
    async deadLetter(id) {
      const key = deadLetterKeyOf(id)
      const deadLetter = key === null ? null : deadLetterRecord.decode(await files.get(key))
      return deadLetter === null ? null : { id, deadLetter }
    },
    check: async (signal, onProgress) =>
      (await checkFiles(files, await markOf(files), { signal, onProgress })).check,
    close: files.close,
  }
}

/** Reads the whole spool once for the check. Rejects as openRestingSpool does, and when it is aborted. */
export async function openSalvage(
  path: string,
  signal: AbortSignal,
  onProgress?: OnCheckProgress,
): Promise<Salvage> {
  const files = await openRestingFiles(path)
  try {
    const mark = await markOf(files)
    const { check, sums } = await checkFiles(files, mark, { signal, onProgress })
    const known = ownMark(mark, sums)
    const claimed = claimedPayloads(sums, known)
    return {
      check,
      notes: notesOf(files, claimed, known === null ? 0 : known.writes - (sums.writes ?? 0)),
      entries: (stop) => entriesOf(files, claimed, known, stop),
      close: files.close,
    }
  } catch (error) {
    await files.close()
    throw error
  }
}

/** Beside the database, or in it where the database was set aside. */
async function markOf({ path }: RestingFiles): Promise<MarkBefore> {
  const inside = await readMarkIn(path)
  const found = inside.kind === 'none' ? await readMarkIn(dirname(path)) : inside
  return { found, manifest: realDisk.manifestName(path) }
}

/** Null if the mark is unknown or that of another database. */
function ownMark({ found }: MarkBefore, { instance }: Sums): Mark | null {
  return found.kind === 'mark' && found.mark.instance === instance ? found.mark : null
}

async function checkFiles(
  files: RestingFiles,
  mark: MarkBefore,
  { signal, onProgress = () => undefined }: { signal: AbortSignal; onProgress: OnCheckProgress | undefined },
): Promise<{ check: SpoolCheck; sums: Sums }> {
  const eachPage = () => refuseAborted(signal)
  const total = files.tables.reduce((sum, { bytes }) => sum + bytes, 0)
  let bytesRead = 0
  const onBytes = (bytes: number) => {
    eachPage()
    bytesRead += bytes
    onProgress({ done: bytesRead, total, unit: 'bytes' })
  }
  try {
    // Also blocks whose entries are all overwritten, and filters.
    for (const table of files.tables) await files.checkTable(table, { signal, onBytes })
    return await checkPages(pagesOf(files, allKeys, onProgress), {
      eachPage,
      mark,
      damage: () => files.damage,
    })
  } catch (error) {
    refuseAborted(signal)
    throw files.explain(error)
  }
}

async function* pagesOf(
  files: RestingFiles,
  range: StoreRange,
  onProgress: OnCheckProgress,
): AsyncGenerator<Scanned> {
  let records = 0
  for await (const entries of files.pages(range)) {
    yield { kind: 'entries', entries }
    records += entries.length
    onProgress({ done: records, unit: 'records' })
  }
}

async function* deadLettersOf(
  files: RestingFiles,
  filter: DeadLetterFilter,
): AsyncGenerator<DeadLetterEntry> {
  let left = filter.limit
  for await (const page of files.pages(tableRange(table.deadLetters))) {
    for (const [key, value] of page) {
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

function notesOf(
  { manifest, damage }: RestingFiles,
  { returned }: ClaimedPayloads,
  missingWrites: number,
): string[] {
  const notes: string[] = []
  if (missingWrites > 0)
    notes.push(
      `The newest ${missingWrites} writes are missing. Payloads that they settled are among the result ` +
        'again. The ledger knows which ones were delivered.',
    )
  if (manifest?.isComplete !== true)
    notes.push(
      'The list of the tables in force is damaged, so all tables were read. Records that were deleted ' +
        'before can be among the result.',
    )
  else if (damage.some(({ keys }) => keys !== null))
    notes.push(
      'A part of the files cannot be read. Where it held the deletion of a record, the record is among the ' +
        'result again.',
    )
  for (const { lane, payloads } of returned)
    notes.push(`${plural(payloads, 'payload')} of lane ${lane}: settled before, in settled-before.ndjson.`)
  return notes
}

async function* entriesOf(
  files: RestingFiles,
  claimed: ClaimedPayloads,
  mark: Mark | null,
  signal: AbortSignal,
): AsyncGenerator<Salvaged> {
  // The lanes precede the chunks, so the provider of a chunk is known when it comes.
  const providers = new Map<LaneId, string>(mark?.lanes.map(({ id, provider }) => [id, provider]))
  const readRecord = createRecordReader(claimed, providers)
  for await (const page of files.pages(allKeys)) {
    refuseAborted(signal)
    for (const [key, value] of page) yield* readRecord(key, value)
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
