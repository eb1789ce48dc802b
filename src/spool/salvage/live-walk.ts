// live-walk.ts: walks over the records of a spool in use: over all of them for `spool verify`, or over its
// payloads and messages to find duplicates before an import.
//
// The walk over everything starts when no write runs, so that its snapshot and the counts in memory belong to
// the same moment; the two are compared. It holds one iteration open, and LevelDB keeps what is deleted
// meanwhile until it ends. So it runs on request only (open-count.ts counts in slices, without a request).
// The tables are read without LevelDB first, in a thread. Where one is damaged, the check reports that and
// walks over nothing.

import { codeOf } from '../../std/gateway-error.ts'
import { payloadIdIn } from '../../domain/payload.ts'
import {
  liveTablesAt,
  readTablesInThread,
  type FileDamage,
  type ReadTable,
  type VerifiedTable,
} from '../../storage/storage.ts'
import { eachFrame, readChunk } from '../chunk-log/chunk-codec.ts'
import { scan, type Scanned } from '../chunk-log/damage-scan.ts'
import { allKeys, table, tableRange } from '../chunk-log/key-layout.ts'
import { settledPayloads } from '../chunk-log/lane.ts'
import { deadLetterRecord, keptMessageRecord } from '../chunk-log/record-codec.ts'
import { storePathOf } from '../opening/aside.ts'
import type { OpenSession, Session, SpoolState } from '../session-state.ts'
import { closedFault } from '../spool-errors.ts'
import type { StoredVisitor, WalkCalls } from '../types.ts'
import type { SpoolCheck } from '../views.ts'
import { checkPages, damagedCheck } from './spool-check.ts'

export function createWalkCalls({ run }: OpenSession): WalkCalls {
  return {
    check: (signal) => run((session) => check(session, signal)),
    eachStored: (visitor, signal) => run((session) => eachStored(session, visitor, signal)),
  }
}

async function check(session: Session, signal: AbortSignal): Promise<SpoolCheck> {
  const { store, committer, options } = session
  const damage = await tableDamage(storePathOf(options.path), signal)
  if (damage.length > 0) return damagedCheck(damage, laneViews(session))
  const look = () => ({ pages: started(scan(store, allKeys)), memory: lanesInMemory(session) })
  const seen = await committer.betweenWrites(look, signal)
  if (seen === null) throw closedFault()
  const { check: found } = await checkPages(seen.pages, {
    eachPage() {
      if (signal.aborted) throw closedFault()
    },
  })
  const differences = found.ok ? differencesOf(seen.memory, found) : []
  return { ...found, ok: found.ok && differences.length === 0, problems: [...found.problems, ...differences] }
}

/** LevelDB can abort the process on a damaged table, so the tables are read without it first. */
async function tableDamage(path: string, signal: AbortSignal): Promise<FileDamage[]> {
  const found: FileDamage[] = []
  const tables = (await liveTablesOf(path)).map(({ number }) => number)
  if (tables.length === 0) return found
  if (signal.aborted) throw closedFault()
  const onTable = ({ damage }: ReadTable) => void found.push(...damage)
  await readTablesInThread({ path, tables, bytesPerS: Infinity }, { onTable, signal })
  if (signal.aborted) throw closedFault()
  return found
}

async function liveTablesOf(path: string): Promise<readonly VerifiedTable[]> {
  try {
    return await liveTablesAt(path)
  } catch (error) {
    // A store in memory.
    if (codeOf(error) === 'ENOENT') return []
    throw error
  }
}

function laneViews({ lanes }: SpoolState): SpoolCheck['lanes'] {
  return [...lanes.values()].map(({ id, provider, role, claims, nextSeq, settled, openPayloads }) => ({
    lane: id,
    provider,
    role: role.kind,
    batches: claims.size,
    appended: nextSeq,
    settled: settledPayloads(settled),
    open: openPayloads,
  }))
}

/** An iteration that takes its snapshot now and not at its first read. */
function started(pages: AsyncGenerator<Scanned>): AsyncGenerator<Scanned> {
  const first = pages.next()
  // The reader of the first page gets its failure.
  first.catch(() => undefined)
  return (async function* () {
    try {
      const { done, value } = await first
      if (done === true) return
      yield value
      yield* pages
    } finally {
      await pages.return(undefined)
    }
  })()
}

type LaneCount = Pick<SpoolCheck['lanes'][number], 'lane' | 'appended' | 'settled' | 'open'>

function lanesInMemory({ lanes }: SpoolState): LaneCount[] {
  return [...lanes.values()]
    .filter(({ nextSeq }) => nextSeq > 0)
    .map(({ id, nextSeq, settled, openPayloads }) => ({
      lane: id,
      appended: nextSeq,
      settled: settledPayloads(settled),
      open: openPayloads,
    }))
}

function differencesOf(memory: readonly LaneCount[], { lanes }: SpoolCheck): string[] {
  const textOf = ({ lane, appended, settled, open }: LaneCount) =>
    `Lane ${lane}: ${appended} appended, ${settled} settled, ${open} open`
  const onDisk = new Set(lanes.map(textOf))
  return memory
    .map(textOf)
    .filter((text) => !onDisk.has(text))
    .map((text) => `${text} in memory; the records differ.`)
}

async function eachStored(
  { store }: SpoolState,
  { payload, message }: StoredVisitor,
  signal: AbortSignal,
): Promise<void> {
  // All snapshots before the first read, so that a record that moves from one table to another is seen.
  const chunks = started(scan(store, tableRange(table.chunks)))
  const deadLetters = started(scan(store, tableRange(table.deadLetters)))
  const kept = message === null ? null : started(scan(store, tableRange(table.kept)))
  try {
    await eachValue(chunks, signal, (value, key) => {
      const chunk = readChunk(key, value)
      if (chunk?.kind === 'chunk')
        eachFrame(chunk, (_attempts, start) => payload(payloadIdIn(chunk.value, start)))
    })
    await eachValue(deadLetters, signal, (value) => {
      const deadLetter = deadLetterRecord.decode(value)
      if (deadLetter === null) return
      if (deadLetter.payloadId !== null) payload(deadLetter.payloadId)
      if (deadLetter.envelope !== null) message?.(deadLetter.envelope)
    })
    if (kept === null) return
    await eachValue(kept, signal, (value) => {
      const record = keptMessageRecord.decode(value)
      if (record !== null) message?.(record.envelope)
    })
  } finally {
    for (const pages of [chunks, deadLetters, kept]) await pages?.return(undefined)
  }
}

async function eachValue(
  pages: AsyncGenerator<Scanned>,
  signal: AbortSignal,
  visit: (value: Buffer, key: Buffer) => void,
): Promise<void> {
  for await (const page of pages) {
    if (signal.aborted) throw closedFault()
    if (page.kind === 'gap') continue
    for (const [key, value] of page.entries) visit(value, key)
  }
}
