// store-limits.ts: the bound of each store, and whether it is full.
//
//   drop_oldest   never full: eviction.ts makes room
//   hold          full at nine tenths of its bound. The last tenth is for devices and clients that use less
//                 than a hundredth of it, so that one of them does not stop all others

import { keptStoreNames, type KeptStore, type OnFull } from '../../domain/kept-store.ts'
import type { State } from '../../domain/condition-state.ts'
import type { SpoolState } from '../session-state.ts'
import type { SpoolOptions } from '../spool-options.ts'

export type StoreLimit = { bytesMax: number; onFull: OnFull }

const fullShare = 0.9
const smallShare = 0.01
/** It is not full any more at this part of where it became full, so that this does not flap. */
const resumeShare = 0.98

export function storeLimits(options: SpoolOptions): Record<KeptStore, StoreLimit> {
  const { onFull } = options
  return {
    quarantine: { bytesMax: options.quarantineBytesMax, onFull: onFull.quarantine },
    clock: { bytesMax: options.clockBytesMax, onFull: onFull.clock },
    // None are added any more, and those of before go by and by.
    deferred: { bytesMax: Number.MAX_SAFE_INTEGER, onFull: 'drop_oldest' },
    dead_letters: { bytesMax: options.deadLetterBytesMax, onFull: onFull.dead_letters },
    unlisted_dead_letters: {
      bytesMax: options.unlistedDeadLetterBytesMax,
      onFull: onFull.unlisted_dead_letters,
    },
    // Their messages are acknowledged already, so nobody can be held.
    part_dead_letters: { bytesMax: options.partDeadLetterBytesMax, onFull: 'drop_oldest' },
  }
}

export type FullStores = {
  isFull(store: KeptStore): boolean
  /** A message of this device and client has to wait. */
  holds(state: SpoolState, store: KeptStore, client: string, device: string | null): boolean
  /** True where one became full, or is not full any more. */
  update(state: SpoolState): boolean
  states(): Iterable<State>
}

export function createFullStores(options: SpoolOptions): FullStores {
  const limits = storeLimits(options)
  const full = new Set<KeptStore>()
  return { isFull: (store) => full.has(store), holds, update, states }

  function holds({ stores }: SpoolState, store: KeptStore, client: string, device: string | null): boolean {
    if (!full.has(store)) return false
    const { bytes, shares } = stores[store]
    const { bytesMax } = limits[store]
    return bytes >= bytesMax || shares.bytesOf(client, device) >= bytesMax * smallShare
  }

  function update({ stores }: SpoolState): boolean {
    let changed = false
    for (const store of keptStoreNames) {
      const { bytesMax, onFull } = limits[store]
      const fullBytes = bytesMax * fullShare * (full.has(store) ? resumeShare : 1)
      const isFull = onFull === 'hold' && stores[store].bytes >= fullBytes
      if (isFull === full.has(store)) continue
      changed = true
      if (isFull) full.add(store)
      else full.delete(store)
    }
    return changed
  }

  function* states(): Generator<State> {
    for (const store of full) {
      const isDead = store.endsWith('dead_letters')
      const { bytesMax } = limits[store]
      yield { code: isDead ? 'DEAD_LETTERS_FULL' : 'QUARANTINE_FULL', store, bytesMax }
    }
  }
}
