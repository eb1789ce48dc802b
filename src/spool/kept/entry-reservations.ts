// entry-reservations.ts: which kept messages and dead letters are taken. They leave the spool through
// exchanges only, and each of them once. This file holds the entries that were read and may be taken, and
// those that were taken.
//
//   read from the database -> known -> taken -> (its deletion is durable) -> forgotten
//                             ^ an exchange of known entries does not read the disk again
//
// A read that started before a deletion still shows the deleted entry. So a taken id stays recorded until
// every read that may show it has ended. Bound: `knownMax` known entries; an exchange looks up others on the
// disk. The taken entries are bounded by what waits to be written.

import { GatewayError } from '../../std/gateway-error.ts'
import { quote } from '../../std/quote.ts'
import type { DeadLetter } from '../../domain/dead-letter.ts'
import type { ShelfName } from '../../domain/kept-store.ts'
import { clientNameOf, devicesOf, type KeptMessage } from '../../domain/message.ts'
import { deadLetterKeyOf, keptKey } from '../chunk-log/key-layout.ts'
import { deadLetterRecord, keptMessageRecord } from '../chunk-log/record-codec.ts'
import type { Reservations, Shelf, SpoolState, StoredEntry } from '../session-state.ts'

const knownMax = 65_536

export function createReservations(): Reservations {
  const known = new Map<string, StoredEntry>()
  const taken = new Set<string>()
  let deletedIds: string[] = []
  let reads = 0

  async function duringRead<Result>(work: () => Promise<Result>): Promise<Result> {
    reads += 1
    try {
      return await work()
    } finally {
      reads -= 1
      forgetDeleted()
    }
  }

  function forgetDeleted(): void {
    if (reads > 0 || deletedIds.length === 0) return
    for (const id of deletedIds) taken.delete(id)
    deletedIds = []
  }

  function register(id: string, entry: StoredEntry): boolean {
    if (taken.has(id)) return false
    known.delete(id)
    known.set(id, entry)
    if (known.size > knownMax) {
      for (const oldest of known.keys()) {
        known.delete(oldest)
        break
      }
    }
    return true
  }

  function locate(ids: readonly string[], lookedUp: ReadonlyMap<string, StoredEntry>): StoredEntry[] | null {
    const entries: StoredEntry[] = []
    for (const id of ids) {
      if (taken.has(id)) throw entryGone(id)
      const entry = known.get(id) ?? lookedUp.get(id)
      if (entry === undefined) return null
      entries.push(entry)
    }
    return entries
  }

  return {
    duringRead,
    register,
    locate,
    isTaken: (id) => taken.has(id),
    take(id) {
      if (taken.has(id)) return false
      known.delete(id)
      taken.add(id)
      return true
    },
    deleted(ids) {
      for (const id of ids) deletedIds.push(id)
      forgetDeleted()
    },
  }
}

export function keptMessageId(shelf: ShelfName, seq: number): string {
  return `${shelf}#${seq}`
}

/** Looks up an entry in the database; throws if there is none. */
export async function findInStore(state: SpoolState, id: string): Promise<StoredEntry> {
  const hash = id.lastIndexOf('#')
  if (hash < 0) return findDeadLetter(state, id)
  const shelf = state.shelves.get(id.slice(0, hash) as ShelfName)
  const seq = Number(id.slice(hash + 1))
  // One spelling only: reservations go by the text of the id.
  if (shelf === undefined || keptMessageId(shelf.name, seq) !== id || !Number.isSafeInteger(seq) || seq < 0)
    throw entryGone(id)
  const value = await state.store.get(keptKey(shelf.name, seq))
  // The content of a damaged entry is unknown, so it cannot be taken. Reading its shelf sets it aside.
  const record = keptMessageRecord.decode(value)
  if (value === undefined || record === null) throw entryGone(id)
  return keptEntryOf(shelf, seq, record, value.length)
}

async function findDeadLetter(state: SpoolState, id: string): Promise<StoredEntry> {
  const key = deadLetterKeyOf(id)
  const value = key === null ? undefined : await state.store.get(key)
  const deadLetter = deadLetterRecord.decode(value)
  if (key === null || value === undefined || deadLetter === null) throw entryGone(id)
  return deadLetterEntryOf(key, deadLetter, value.length)
}

export function keptEntryOf(
  shelf: Shelf,
  seq: number,
  message: Pick<KeptMessage, 'device' | 'devices' | 'envelope'>,
  bytes: number,
): StoredEntry {
  const { device, envelope } = message
  const devices = devicesOf(message)
  return { kind: 'keptMessage', shelf, seq, client: clientNameOf(envelope), device, devices, bytes }
}

export function deadLetterEntryOf(
  key: Buffer,
  { store = 'dead_letters', device, envelope }: DeadLetter,
  bytes: number,
): StoredEntry {
  const client = envelope === null ? '' : clientNameOf(envelope)
  return { kind: 'deadLetter', key, store, client, device, bytes }
}

function entryGone(id: string): GatewayError {
  return new GatewayError('SPOOL_ENTRY_GONE', {
    what: `There is no kept message or dead letter ${quote(id, 100)}.`,
    why: 'It was released, mapped or deleted, or it never existed.',
    act: 'Nothing was changed. List the entries again.',
  })
}
