// store-use.ts: how full each store is (domain/kept-store.ts), and the shares in it (shares.ts).
//
// What this session adds counts in the shares at once. What was stored before counts up to the key that the
// walk of eviction.ts has reached, so a message that leaves is subtracted only if it was counted.

import type { DeadLetterStore } from '../../domain/dead-letter.ts'
import { keptStoreNames, type KeptStore, type ShelfKind, type ShelfName } from '../../domain/kept-store.ts'
import type { StoreRange } from '../../storage/storage.ts'
import { deadLetterNumberOf, keptKey, keptKindRange, table, tableRange } from '../chunk-log/key-layout.ts'
import type { SpoolState, StoredEntry, StoreUse } from '../session-state.ts'
import type { SpoolOptions } from '../spool-options.ts'
import { createShares } from './shares.ts'
import { storeLimits } from './store-limits.ts'

/** Devices, and as many clients, with a share of their own in each store. */
const namesMax = 10_000
/** Of them, those whose share is never counted with the small ones. */
const firstMax = 64
const pooledPart = 1 / 1024
const pooledBytesMin = 8192

export function newStores(options: SpoolOptions): SpoolState['stores'] {
  const limits = storeLimits(options)
  const entries = keptStoreNames.map((name): [KeptStore, StoreUse] => {
    const pooledBelow = Math.max(pooledBytesMin, limits[name].bytesMax * pooledPart)
    const shares = createShares({ namesMax, firstMax, pooledBelow })
    return [name, { bytes: 0, shares, countedTo: null, counted: false }]
  })
  return Object.fromEntries(entries) as SpoolState['stores']
}

export function newDeadLetterBytes(): Record<DeadLetterStore, number> {
  return { dead_letters: 0, unlisted_dead_letters: 0, part_dead_letters: 0 }
}

export function kindOf(name: ShelfName): ShelfKind {
  if (name.startsWith('quarantine:')) return 'quarantine'
  return name.startsWith('clock:') ? 'clock' : 'deferred'
}

type Owned = { client: string; device: string | null; bytes: number }

export function addToStore(use: StoreUse, { client, device, bytes }: Owned): void {
  use.bytes += bytes
  use.shares.add(client, device, bytes, use.counted)
}

/** When the deletion is written. */
export function removeFromStore(use: StoreUse, bytes: number): void {
  use.bytes = Math.max(0, use.bytes - bytes)
}

/** When the entry is taken, which is before the deletion is written. */
export function leaveShares(state: SpoolState, entry: StoredEntry): void {
  const use = state.stores[storeOf(entry)]
  const isCounted = use.counted || isOfSession(state, entry) || isBehindWalk(use, keyOf(entry))
  if (isCounted) use.shares.remove(entry.client, entry.device, entry.bytes)
}

export function storeOf(entry: StoredEntry): KeptStore {
  return entry.kind === 'deadLetter' ? entry.store : kindOf(entry.shelf.name)
}

function keyOf(entry: StoredEntry): Buffer {
  return entry.kind === 'deadLetter' ? entry.key : keptKey(entry.shelf.name, entry.seq)
}

function isBehindWalk({ countedTo }: StoreUse, key: Buffer): boolean {
  return countedTo !== null && key.compare(countedTo) < 0
}

/** It was added in this session, and counted then. */
export function isOfSession(state: SpoolState, entry: StoredEntry): boolean {
  if (entry.kind === 'keptMessage') return entry.seq >= entry.shelf.openedSeq
  const n = deadLetterNumberOf(entry.key)
  return n >= state.firstDeadLetter && n < state.nextDeadLetter
}

/** Where the records of a store are; dead letters of all stores share one table. */
export function rangeOf(store: KeptStore): StoreRange {
  switch (store) {
    case 'quarantine':
    case 'clock':
    case 'deferred':
      return keptKindRange(store)
    case 'dead_letters':
    case 'unlisted_dead_letters':
    case 'part_dead_letters':
    default:
      return tableRange(table.deadLetters)
  }
}
