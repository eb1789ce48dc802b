// spool-totals.ts: what the spool counts, as others see it. While the store is lost, what stands in it counts for nothing.

import type { Epoch } from './session.ts'
import { kindOf } from './kept/message-shelf.ts'
import type { SpoolCounters, SpoolState } from './session-state.ts'

export type SpoolTotals = {
  /** Since the process started. */
  payloads: number
  duplicates: number
  delivered: number
  retried: number
  dead: number
  damaged: number
  /** Messages put on a shelf; kept messages and dead letters that exchanges took; payloads that they appended. */
  kept: number
  taken: number
  exchanged: number
  /** Bytes of payload JSON that are open now, over all lanes, and of dead letters. */
  openBytes: number
  deadLetters: number
  deadLetterBytes: number
  /** On the shelves of each kind now; bytes with those that wait to be written. */
  quarantined: number
  quarantineBytes: number
  deferred: number
  deferredBytes: number
  receipts: number
  receiptBytes: number
  /** Since the process started: left out because there was no room. */
  receiptsDropped: number
  stateEntries: number
  stateBytes: number
  groups: number
  windowIds: number
  /** The limit of the spool, and what its files use on the disk, as last looked. */
  bytesMax: number
  diskBytes: number
}

export function totalsNow(
  epoch: Epoch | null,
  counters: SpoolCounters,
  disk: Pick<SpoolTotals, 'bytesMax' | 'diskBytes'>,
): SpoolTotals {
  const state = epoch?.state
  return {
    ...counters,
    openBytes: state?.openBytes ?? 0,
    deadLetters: state?.letters.letters ?? 0,
    deadLetterBytes: state?.letters.bytes ?? 0,
    ...keptTotals(state),
    receipts: state?.receipts.sizes.size ?? 0,
    receiptBytes: state?.receipts.bytes ?? 0,
    groups: epoch?.committer.writes ?? 0,
    windowIds: state?.window.size() ?? 0,
    ...disk,
  }
}

type KeptTotals = Pick<
  SpoolTotals,
  'quarantined' | 'quarantineBytes' | 'deferred' | 'deferredBytes' | 'stateEntries' | 'stateBytes'
>

function keptTotals(state: SpoolState | undefined): KeptTotals {
  const messages = { quarantine: 0, deferred: 0 }
  for (const shelf of state?.shelves.values() ?? []) messages[kindOf(shelf.name)] += shelf.messages
  return {
    quarantined: messages.quarantine,
    quarantineBytes: state?.keptBytes.quarantine ?? 0,
    deferred: messages.deferred,
    deferredBytes: state?.keptBytes.deferred ?? 0,
    stateEntries: state?.parts.sizes.size ?? 0,
    stateBytes: state?.parts.bytes ?? 0,
  }
}
