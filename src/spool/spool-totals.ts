// spool-totals.ts: the totals of the spool. While the store is lost, its content counts as nothing.

import { kindOf } from './kept/message-shelf.ts'
import type { Session } from './session-state.ts'
import type { SpoolCounters, SpoolTotals } from './views.ts'

export function newCounters(): SpoolCounters {
  return {
    payloads: 0,
    duplicates: 0,
    delivered: 0,
    retried: 0,
    dead: 0,
    damaged: 0,
    kept: 0,
    taken: 0,
    exchanged: 0,
    recordsMissing: 0,
    receiptsDropped: 0,
  }
}

export function totalsOf(
  session: Session | null,
  counters: SpoolCounters,
  disk: Pick<SpoolTotals, 'bytesMax' | 'diskBytes'>,
): SpoolTotals {
  const messages = { quarantine: 0, deferred: 0 }
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
    quarantined: messages.quarantine,
    quarantineBytes: session?.keptBytes.quarantine ?? 0,
    deferred: messages.deferred,
    deferredBytes: session?.keptBytes.deferred ?? 0,
    stateEntries: session?.stateEntries.sizes.size ?? 0,
    stateBytes: session?.stateEntries.bytes ?? 0,
    receipts: session?.receipts.sizes.size ?? 0,
    receiptBytes: session?.receipts.bytes ?? 0,
    groups: session?.committer.writes ?? 0,
    windowIds: session?.window.size() ?? 0,
    ...disk,
  }
}
