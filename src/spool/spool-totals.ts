// spool-totals.ts: the totals of the spool. While the store is lost, its content counts as nothing.

import { keptStoreNames, type KeptStore } from '../domain/kept-store.ts'
import type { StoreLimit } from './kept/store-limits.ts'
import { kindOf } from './kept/store-use.ts'
import type { Session } from './session-state.ts'
import type { SpoolCounters, SpoolTotals } from './views.ts'

export function newCounters(): SpoolCounters {
  return {
    payloads: 0,
    duplicates: 0,
    delivered: 0,
    retried: 0,
    dead: 0,
    returned: 0,
    damaged: 0,
    kept: 0,
    taken: 0,
    exchanged: 0,
    movedBack: 0,
    lateMoved: 0,
    recordsMissing: 0,
    receiptsDropped: 0,
    receiptsReread: 0,
    ackWaitMs: 0,
    evicted: perStore(() => 0),
  }
}

export function totalsOf(
  session: Session | null,
  counters: SpoolCounters,
  {
    limits,
    ...disk
  }: Pick<SpoolTotals, 'bytesMax' | 'reserveBytes' | 'diskBytes' | 'freeBytes' | 'freeBytesMin'> & {
    limits: Record<KeptStore, StoreLimit>
  },
): SpoolTotals {
  const messages = { quarantine: 0, clock: 0, deferred: 0 }
  const bytesOf = (store: KeptStore) => session?.stores[store].bytes ?? 0
  const held = { batches: 0, payloads: 0 }
  for (const { claimed } of session?.lanes.values() ?? []) {
    held.batches += claimed.heldBatches
    held.payloads += claimed.heldPayloads
  }
  for (const shelf of session?.shelves.values() ?? []) messages[kindOf(shelf.name)] += shelf.messages
  return {
    ...counters,
    openBytes: session?.openBytes ?? 0,
    heldBatches: held.batches,
    heldPayloads: held.payloads,
    deadLetters: session?.deadLetters.count ?? 0,
    deadLetterBytes: session?.deadLetters.bytes ?? 0,
    stores: perStore((store) => ({
      ...limits[store],
      bytes: bytesOf(store),
      ...(session?.stores[store].shares.names() ?? { devices: 0, clients: 0 }),
    })),
    quarantined: messages.quarantine + messages.clock,
    quarantineBytes: bytesOf('quarantine') + bytesOf('clock'),
    deferred: messages.deferred,
    deferredBytes: bytesOf('deferred'),
    stateEntries: session?.stateEntries.sizes.size ?? 0,
    stateBytes: session?.stateEntries.bytes ?? 0,
    receipts: session?.receipts.sizes.size ?? 0,
    receiptBytes: session?.receipts.bytes ?? 0,
    groups: session?.committer.writes() ?? 0,
    windowIds: session?.window.size() ?? 0,
    ...disk,
  }
}

function perStore<Value>(valueOf: (store: KeptStore) => Value): Record<KeptStore, Value> {
  return Object.fromEntries(keptStoreNames.map((store) => [store, valueOf(store)])) as Record<
    KeptStore,
    Value
  >
}
