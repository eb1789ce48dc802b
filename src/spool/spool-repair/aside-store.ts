// aside-store.ts: what is in a store that was set aside, and how much: one walk over everything, before it is
// merged.

import { basename } from 'node:path'
import type { LaneId } from '../../domain/ids.ts'
import { openLevelFiles, type FileDamage, type LevelFiles } from '../../storage/storage.ts'
import { readChunk } from '../chunk-log/chunk-codec.ts'
import { keptSeqOf, laneOf, shelfOf, table, tableRange } from '../chunk-log/key-layout.ts'
import { readMarkIn } from '../high-water-mark/mark-file.ts'
import type { Mark } from '../high-water-mark/high-water-mark.ts'
import { findLosses, type Losses } from './lost-payloads.ts'
import { unlessDamaged } from './readable-keys.ts'

/** `endSeq`: behind the last one that is there. */
export type AsideShelf = { firstSeq: number; endSeq: number; messages: number; bytes: number }

export type AsideStore = {
  path: string
  files: LevelFiles
  mark: Mark | null
  damage: readonly FileDamage[]
  losses: Losses
  /** Lanes in which something is left. */
  lanes: ReadonlySet<LaneId>
  shelves: ReadonlyMap<string, AsideShelf>
  payloads: number
  batches: number
  deadLetters: number
  messages: number
  stateEntries: number
  /** Keys and values of all of it. */
  bytes: number
  /** Settled before: not merged. Keys as hexadecimal digits. */
  returned: ReadonlySet<string>
  close(): Promise<void>
}

/** Rejects where its directory cannot be read. It may be damaged. */
export async function openAsideStore(path: string, signal: AbortSignal): Promise<AsideStore> {
  const files = await openLevelFiles(path)
  try {
    for (const checked of files.tables) await files.checkTable(checked, { signal })
    // The mark was set aside with the store.
    const found = await readMarkIn(path)
    const mark = found.kind === 'mark' ? found.mark : null
    const losses = await findLosses(files, mark, signal)
    const returned = new Set(losses.returned.keys.map((key) => key.toString('hex')))
    const content = await contentOf(files, returned, signal)
    const { damage } = files
    return { path, files, mark, damage, losses, returned, ...content, close: () => files.close() }
  } catch (error) {
    await files.close()
    throw error
  }
}

async function contentOf(files: LevelFiles, returned: ReadonlySet<string>, signal: AbortSignal) {
  const lanes = new Set<LaneId>()
  const shelves = new Map<string, AsideShelf>()
  const sums = { payloads: 0, batches: 0, deadLetters: 0, messages: 0, stateEntries: 0, bytes: 0 }
  for (const kind of mergedTables) {
    for await (const page of files.pages(tableRange(kind))) {
      signal.throwIfAborted()
      for (const [key, value] of page) {
        if (returned.has(key.toString('hex'))) continue
        sums.bytes += key.length + value.length
        if (laneTables.has(kind) && key.length === laneKeyBytes) lanes.add(laneOf(key))
        if (kind === table.chunks) {
          const chunk = readChunk(key, value)
          if (chunk?.kind === 'chunk') sums.payloads += chunk.count
        }
        if (kind === table.batches) sums.batches += 1
        if (kind === table.deadLetters) sums.deadLetters += 1
        if (kind === table.state) sums.stateEntries += 1
        if (kind !== table.kept) continue
        sums.messages += 1
        unlessDamaged(() => addMessage(shelves, key, value))
      }
    }
  }
  return { lanes, shelves, ...sums }
}

function addMessage(shelves: Map<string, AsideShelf>, key: Buffer, value: Buffer): void {
  const name = shelfOf(key)
  const seq = keptSeqOf(key)
  const shelf = shelves.get(name) ?? { firstSeq: seq, endSeq: seq, messages: 0, bytes: 0 }
  shelves.set(name, shelf)
  shelf.endSeq = seq + 1
  shelf.messages += 1
  shelf.bytes += value.length
}

const laneTables: ReadonlySet<number> = new Set([table.chunks, table.batches, table.damaged])
/** Of a record with a lane and a number. */
export const laneKeyBytes = 13

/**
 * In the order of their keys. Left out: format and totals, which are made anew; the dedup window and the
 * journal, which are older than the running store; sessions, because clients have ended and begun others
 * since; receipts, because their numbers belong to the store.
 */
const mergedTables = [
  table.chunks,
  table.batches,
  table.state,
  table.deadLetters,
  table.kept,
  table.damaged,
  table.setAside,
  table.keptByDevice,
] as const

export const asideName = (path: string) => basename(path)
