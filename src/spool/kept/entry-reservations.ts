// entry-reservations.ts: who takes what. Kept messages and dead letters leave the spool through exchanges only, and each of them
// once: here stands what was read and may be taken, and what was taken a moment ago.
//
//   read from the database -> known -> taken -> (its deletion is durable) -> forgotten
//                             ^ an exchange of known entries needs no further look at the disk
//
// A read that began before a deletion still shows what was deleted, so what was taken stays noted until every read
// that may show it has ended. Bound: `knownMax` entries are known; an exchange looks for others on the disk. What is
// taken is bounded by what waits to be written.

import { GatewayError } from '../../std/gateway-error.ts'
import { quote } from '../../std/quote.ts'
import type { ShelfName } from '../../domain/message.ts'
import { keptKey, letterKeyOf } from '../chunk-log/key-layout.ts'
import { keptRecord } from '../chunk-log/record-codec.ts'
import type { Place } from '../chunk-log/commit-attachments.ts'
import type { SpoolState } from '../session-state.ts'

export type Desk = {
  /** Runs a read of the database; nothing that was taken since it began counts as there. */
  reading<Result>(work: () => Promise<Result>): Promise<Result>
  /** Within a read: notes an entry that it shows; false where somebody has taken it. */
  show(id: string, place: Place): boolean
  /** The places of `ids`, or null where one must be looked for first; throws where one is taken. */
  find(ids: readonly string[], looked: ReadonlyMap<string, Place>): Place[] | null
  /** Takes one; false where somebody has. */
  seize(id: string): boolean
  /** The deletion of `ids` is durable. */
  gone(ids: readonly string[]): void
}

const knownMax = 65_536

export function createDesk(): Desk {
  const known = new Map<string, Place>()
  const taken = new Set<string>()
  let deleted: string[] = []
  let reads = 0

  async function reading<Result>(work: () => Promise<Result>): Promise<Result> {
    reads += 1
    try {
      return await work()
    } finally {
      reads -= 1
      sweep()
    }
  }

  function sweep(): void {
    if (reads > 0 || deleted.length === 0) return
    for (const id of deleted) taken.delete(id)
    deleted = []
  }

  function show(id: string, place: Place): boolean {
    if (taken.has(id)) return false
    known.delete(id)
    known.set(id, place)
    if (known.size > knownMax) {
      for (const oldest of known.keys()) {
        known.delete(oldest)
        break
      }
    }
    return true
  }

  function find(ids: readonly string[], looked: ReadonlyMap<string, Place>): Place[] | null {
    const places: Place[] = []
    for (const id of ids) {
      if (taken.has(id)) throw goneFault(id)
      const place = known.get(id) ?? looked.get(id)
      if (place === undefined) return null
      places.push(place)
    }
    return places
  }

  return {
    reading,
    show,
    find,
    seize(id) {
      if (taken.has(id)) return false
      known.delete(id)
      taken.add(id)
      return true
    },
    gone(ids) {
      for (const id of ids) deleted.push(id)
      sweep()
    },
  }
}

export function keptIdOf(shelf: ShelfName, seq: number): string {
  return `${shelf}#${seq}`
}

/** Looks for an entry in the database; throws where there is none. */
export async function lookFor(state: SpoolState, id: string): Promise<Place> {
  const bar = id.lastIndexOf('#')
  if (bar < 0) return lookForLetter(state, id)
  const shelf = state.shelves.get(id.slice(0, bar) as ShelfName)
  const seq = Number(id.slice(bar + 1))
  // One spelling only: who takes an entry is told by its id.
  if (shelf === undefined || keptIdOf(shelf.name, seq) !== id || !Number.isSafeInteger(seq) || seq < 0)
    throw goneFault(id)
  const value = await state.store.get(keptKey(shelf.name, seq))
  // A damaged one is there, but nobody can know what is taken: reading its shelf sets it aside.
  const record = keptRecord.decode(value)
  if (value === undefined || record === null) throw goneFault(id)
  return { kind: 'kept', place: { shelf, seq, device: record.device, bytes: value.length } }
}

async function lookForLetter(state: SpoolState, id: string): Promise<Place> {
  if (!/^[0-9a-f]{32}$/.test(id)) throw goneFault(id)
  const key = letterKeyOf(id)
  const value = await state.store.get(key)
  if (value === undefined) throw goneFault(id)
  return { kind: 'letter', place: { key, bytes: value.length } }
}

function goneFault(id: string): GatewayError {
  return new GatewayError('SPOOL_ENTRY_GONE', {
    what: `There is no kept message or dead letter ${quote(id, 100)}.`,
    why: 'Somebody else released, mapped or deleted it, or it never was.',
    act: 'Nothing was changed. List them again.',
  })
}
