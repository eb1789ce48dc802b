// quarantine-shelves.ts: reads the messages in quarantine from the shelves of the spool.

import { correctedEnvelope, type OurTime } from '../../domain/arrival.ts'
import type { ShelfName } from '../../domain/kept-store.ts'
import type { KeptEntry, Spool } from '../../spool/spool.ts'
import { storeLostFault } from '../remap/release-throttle.ts'
import type { RemapEntry } from '../remap/slice-result.ts'

export type QuarantinedEntry = RemapEntry & KeptEntry

/** The quarantine shelves that have messages, two a provider. */
export function quarantineShelves({
  holdReason,
  shelves,
}: Pick<Spool, 'holdReason' | 'shelves'>): ShelfName[] {
  // A lost store has no shelves, which must not look like empty ones.
  if (holdReason() === 'store_lost') throw storeLostFault()
  return shelves()
    .filter(({ shelf, messages }) => /^(quarantine|clock):/.test(shelf) && messages > 0)
    .map(({ shelf }) => shelf)
}

/**
 * The messages of `device`, or of all where it is null, in order of arrival. The `envelope` of an entry has
 * the time of arrival as it is known now. Ends early where `signal` aborts.
 */
export async function* quarantinedOn(
  { spool, ourTime }: { spool: Pick<Spool, 'keptMessages'>; ourTime: OurTime },
  shelf: ShelfName,
  device: string | null,
  signal: AbortSignal,
): AsyncGenerator<QuarantinedEntry> {
  for await (const entry of spool.keptMessages(shelf, device, { limit: Infinity })) {
    if (signal.aborted) return
    yield { ...entry, envelope: correctedEnvelope(entry.message.envelope, ourTime) }
  }
}
