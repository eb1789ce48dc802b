// commit-attachments.ts: what a group carries besides payloads and dead letters: state of the mapping, messages for a shelf, and
// what an exchange takes away. Made when the first of them comes, so that a group without them pays nothing.

import type { KeptMessage } from '../../domain/message.ts'
import type { StoreOp } from '../../storage/storage.ts'
import { takeLetters, type LetterPlace } from '../kept/dead-letter-table.ts'
import { changePart, prepareParts, type PartWrites } from '../kept/state-entries.ts'
import {
  dropKept,
  newKeeping,
  putKept,
  putShelf,
  type Keeping,
  type KeptPlace,
  type Shelf,
} from '../kept/message-shelf.ts'
import type { SpoolState } from '../session-state.ts'

/** An entry that an exchange takes away: it stands in the database, and nobody else takes it. */
export type Place = { kind: 'kept'; place: KeptPlace } | { kind: 'letter'; place: LetterPlace }

/** Each returns by how many bytes the group grows. */
export type Side = {
  remember(name: string, value: Buffer | null): number
  keep(message: KeptMessage): number
  take(place: Place): number
  prepare(ops: StoreOp[]): void
  committed(): void
}

/** What a deletion counts for among the uncommitted bytes. */
const deletionBytes = 32

export function createSide(state: SpoolState): Side {
  const parts: PartWrites = { ops: new Map(), entries: 0, bytes: 0 }
  const keeping: Keeping[] = []
  const kept: KeptPlace[] = []
  const letters: LetterPlace[] = []
  const ends = new Map<Shelf, number>()

  function keep(message: KeptMessage): number {
    const one = newKeeping(state, message)
    keeping.push(one)
    return one.value.length
  }

  function take(entry: Place): number {
    if (entry.kind === 'kept') kept.push(entry.place)
    else letters.push(entry.place)
    return deletionBytes
  }

  function prepare(ops: StoreOp[]): void {
    for (const place of kept) {
      dropKept(state, place, ops)
      ends.set(place.shelf, place.shelf.nextSeq)
    }
    for (const one of keeping) {
      putKept(one, ops)
      ends.set(one.shelf, one.shelf.nextSeq)
    }
    for (const shelf of ends.keys()) putShelf(shelf, ops)
    takeLetters(state, letters, ops)
    prepareParts(state.parts, parts, ops)
  }

  function committed(): void {
    for (const [shelf, end] of ends) shelf.committedSeq = end
    state.counters.kept += keeping.length
    state.counters.taken += kept.length + letters.length
  }

  return {
    remember: (name, value) => changePart(state.parts, parts, name, value),
    keep,
    take,
    prepare,
    committed,
  }
}
