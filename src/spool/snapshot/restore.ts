// restore.ts: makes a spool of a snapshot, or of a copy of a spool that no process uses.
//
//   check of the whole snapshot -> files into store.new -> new id of the store -> store becomes
//   store.replaced-<time>, store.new becomes store -> mark
//
// The restored store gets an id of its own: what other files say about the old one (a mark that is copied by
// hand, for example) does not fit it. Its mark is written anew. Numbers that the replaced store gave after
// the snapshot are not given again: the new mark has the larger ones.
//
// What the snapshot holds goes again, also what was delivered since: payloads under their payloadIds, sealed
// batches under their batchIds. What devices sent since is not in it, and they do not send it again.

import { readdir, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { fileTime, type EpochMs } from '../../std/clock.ts'
import { codeOf, GatewayError } from '../../std/gateway-error.ts'
import type { BatchId, NewId } from '../../domain/ids.ts'
import {
  explainDirectory,
  openExistingStore,
  realDisk,
  syncDirectory,
  transferStore,
  type LevelFiles,
} from '../../storage/storage.ts'
import { formatKey, laneKey, laneOf, table, tableRange, writeCountLane } from '../chunk-log/key-layout.ts'
import { claimRecord, decodeWriteCount, formatRecord } from '../chunk-log/record-codec.ts'
import { readMarkIn, writeMarkIn } from '../high-water-mark/mark-file.ts'
import type { MarkedLane } from '../high-water-mark/high-water-mark.ts'
import { storePathOf } from '../opening/aside.ts'
import { makeMarker } from '../opening/spool-marker.ts'
import { openRestingFiles } from '../salvage/resting-files.ts'
import { openRestingSpool } from '../salvage/salvage.ts'
import { withLock } from '../spool-repair/repair-places.ts'
import type { SnapshotSummary, SpoolCheck } from '../views.ts'

export type RestoreReport = {
  state: 'restored' | 'planned'
  from: string
  path: string
  /** When the snapshot was made; null for a plain copy of a spool. */
  snapshotAt: string | null
  /** Where the spool is that was there before; null if there was none. */
  replaced: string | null
  payloads: number
  batches: readonly { batchId: BatchId; lane: number; payloads: number }[]
  batchesHidden: number
  deadLetters: number
  keptMessages: number
}

export type RestoreOptions = {
  /** Replace the spool that is there. */
  replace: boolean
  now: () => EpochMs
  newId: NewId
  signal: AbortSignal
}

const batchesShown = 1000

/** Rejects with SPOOL_MISSING, SPOOL_LOCKED, SPOOL_DAMAGED (the snapshot) or a code of the directory. */
export async function restoreSpool(
  from: string,
  path: string,
  options: RestoreOptions,
): Promise<RestoreReport> {
  const content = await contentOf(from, options.signal)
  await realDisk.makeDirectory(path)
  const isOccupied = (await readdir(path)).some((name) => occupying.has(name))
  const report = { from, path, ...content, replaced: null }
  if (isOccupied && !options.replace) return { ...report, state: 'planned' }
  const places = { spoolPath: path, storePath: storePathOf(path), journalFile: '' }
  const replaced = await withLock(places, options.signal, () => restoreLocked(from, path, options))
  return { ...report, state: 'restored', replaced }
}

/** Names in the directory of a spool that show that it is in use. */
const occupying: ReadonlySet<string> = new Set(['store', 'mark', 'records'])

async function contentOf(from: string, signal: AbortSignal) {
  const { ok, problems, lanes, tables, shelves } = await checked(from, signal)
  if (!ok)
    throw new GatewayError('SPOOL_DAMAGED', {
      what: `The snapshot at ${from} is damaged.`,
      why: problems.slice(0, 3).join(' '),
      act: `Copy it, run \`telemetry-gateway spool repair --yes --path COPY\`, and restore from the copy.`,
    })
  const deadLetters = tables.find((found) => found.table === 'dead letters')?.records ?? 0
  const payloads = lanes.reduce((sum, { open }) => sum + open, 0)
  const keptMessages = shelves.reduce((sum, { messages }) => sum + messages, 0)
  const snapshotAt = await summaryOf(from)
  return { snapshotAt, payloads, ...(await batchesOf(from)), deadLetters, keptMessages }
}

async function checked(from: string, signal: AbortSignal): Promise<SpoolCheck> {
  const spool = await openRestingSpool(from)
  try {
    return await spool.check(signal)
  } finally {
    await spool.close()
  }
}

async function summaryOf(from: string): Promise<string | null> {
  try {
    return (JSON.parse(await readFile(join(from, 'snapshot.json'), 'utf8')) as SnapshotSummary).createdAt
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return null
    throw new GatewayError('INPUT_UNREADABLE', {
      what: `Cannot read ${join(from, 'snapshot.json')}.`,
      why: 'It is no summary of a snapshot.',
      act: 'Delete that file to restore from the directory as a plain copy of a spool.',
      cause: error,
    })
  }
}

async function batchesOf(from: string): Promise<Pick<RestoreReport, 'batches' | 'batchesHidden'>> {
  const batches: { batchId: BatchId; lane: number; payloads: number }[] = []
  let found = 0
  const files = await openRestingFiles(from)
  try {
    for await (const page of files.pages(tableRange(table.batches))) {
      for (const [key, value] of page) {
        const claim = claimRecord.decode(value)
        if (claim === null) continue
        found += 1
        const { batchId, payloads } = claim
        if (batches.length < batchesShown) batches.push({ batchId, lane: laneOf(key), payloads })
      }
    }
  } finally {
    await files.close()
  }
  return { batches, batchesHidden: found - batches.length }
}

async function restoreLocked(
  from: string,
  path: string,
  { now, newId, signal }: RestoreOptions,
): Promise<string | null> {
  const storePath = storePathOf(path)
  const fresh = join(path, 'store.new')
  const instance = newId()
  try {
    await rm(fresh, { recursive: true, force: true })
    const writes = await makeFresh(from, fresh, { instance, createdAt: now() }, signal)
    const before = await readMarkIn(path)
    const lanes = before.kind === 'mark' ? before.mark.lanes : []
    const nextLane = before.kind === 'mark' ? before.mark.nextLane : 1
    const aside = await switchStores(path, fresh, now())
    const manifest = realDisk.manifestName(storePath) ?? ''
    await makeMarker(path, { by: 'restore', madeAt: now(), hasStore: true })
    await writeMarkIn(path, { instance, manifest, writes, nextLane, lanes: lanes.map(withoutOpen) })
    return aside
  } catch (error) {
    if (error instanceof GatewayError) throw error
    throw explainDirectory(`Cannot restore the spool at ${path}.`, error)
  }
}

/** Their numbers were given; that nothing of them is open is no loss. */
function withoutOpen(lane: MarkedLane): MarkedLane {
  return { ...lane, open: 0 }
}

/** Returns the count of writes. */
async function makeFresh(
  from: string,
  fresh: string,
  identity: { instance: string; createdAt: EpochMs },
  signal: AbortSignal,
): Promise<number> {
  const files: LevelFiles = await openRestingFiles(from)
  try {
    await transferStore(files.path, fresh, signal)
  } finally {
    await files.close()
  }
  const store = await openExistingStore(fresh)
  try {
    const known = formatRecord.decode(await store.get(formatKey))
    const record = { version: known?.version ?? 1, ...identity }
    await store.write([{ type: 'put', key: formatKey, value: formatRecord.encode(record) }], { sync: true })
    return decodeWriteCount(await store.get(laneKey(table.totals, writeCountLane))) ?? 0
  } finally {
    await store.close()
  }
}

/** Returns where the old store is; null if there was none. */
async function switchStores(path: string, fresh: string, at: EpochMs): Promise<string | null> {
  const storePath = storePathOf(path)
  const names = await readdir(storePath)
  const isUsed = names.some((name) => name === 'CURRENT' || /\.(ldb|sst|log)$/.test(name))
  const aside = join(path, `store.replaced-${fileTime(at)}`)
  await rename(storePath, aside)
  await rename(fresh, storePath)
  if (isUsed) await rename(join(path, 'mark'), join(aside, 'mark')).catch(ignoreMissing)
  else await rm(aside, { recursive: true })
  // They are about the store that was there before.
  for (const name of ['check-state.json', 'in-use', 'last-exit']) await rm(join(path, name), { force: true })
  await syncDirectory(path)
  return isUsed ? aside : null
}

function ignoreMissing(error: unknown): void {
  if (codeOf(error) !== 'ENOENT') throw error
}
