// commit-attachments.ts: what few messages bring to a commit beside payloads: dead letters, mapping state,
// messages for a shelf, records of
// sessions, and what an exchange takes. Adds their bytes to the group.

import type { DeadLetter } from '../../domain/dead-letter.ts'
import type { StoreOp } from '../../storage/storage.ts'
import type { Group } from '../chunk-log/committer.ts'
import type { CommitAttachments, Shelf, SpoolState, StoredEntry } from '../session-state.ts'
import { deleteDeadLetters, newDeadLetter, putDeadLetters, type NewDeadLetter } from './dead-letter-table.ts'
import {
  deleteKeptMessage,
  newKeptMessage,
  putKeptMessage,
  putShelf,
  type NewMessage,
} from './message-shelf.ts'
import { changeSession, type SessionWrites } from './session-records.ts'
import {
  addLateState,
  changeState,
  closeState,
  forgetLate,
  newStateWrites,
  prepareState,
} from './state-entries.ts'
import { leaveShares } from './store-use.ts'

/** What a deletion counts for among the uncommitted bytes. */
const deletionBytes = 32

export function createAttachments(state: SpoolState, group: Group): CommitAttachments {
  const stateWrites = newStateWrites()
  const sessionWrites: SessionWrites = new Map()
  const deadLetters: NewDeadLetter[] = []
  const messages: NewMessage[] = []
  const taken: StoredEntry[] = []
  /** The numbers up to which shelves are committed with this write. */
  const shelfEnds = new Map<Shelf, number>()

  function addDeadLetter(deadLetter: DeadLetter): void {
    const added = newDeadLetter(state, deadLetter)
    deadLetters.push(added)
    group.bytes += added.value.length
  }

  function closed(): void {
    group.bytes += closeState(state.stateEntries, stateWrites)
  }

  function prepare(ops: StoreOp[]): void {
    const takenMessages = taken.filter((entry) => entry.kind === 'keptMessage')
    for (const entry of takenMessages) deleteKeptMessage(state, entry, ops)
    for (const message of messages) putKeptMessage(message, ops)
    for (const { shelf } of [...takenMessages, ...messages]) shelfEnds.set(shelf, shelf.nextSeq)
    for (const shelf of shelfEnds.keys()) putShelf(shelf, ops)
    deleteDeadLetters(
      state,
      taken.filter((entry) => entry.kind === 'deadLetter'),
      ops,
    )
    putDeadLetters(state, deadLetters, ops)
    prepareState(state.stateEntries, stateWrites, ops)
    for (const op of sessionWrites.values()) ops.push(op)
  }

  function committed(): void {
    for (const [shelf, end] of shelfEnds) shelf.committedSeq = end
    state.counters.kept += messages.length
    state.counters.taken += taken.length
    state.counters.lateMoved += stateWrites.moved
  }

  return {
    addDeadLetter,
    putState(key, value) {
      group.bytes += changeState(state.stateEntries, stateWrites, key, value)
    },
    forgetLate: () => forgetLate(stateWrites),
    putLateState(entry) {
      group.bytes += addLateState(stateWrites, entry)
    },
    putSession(name, value) {
      group.bytes += changeSession(sessionWrites, name, value)
    },
    keepMessage(message) {
      const added = newKeptMessage(state, message)
      messages.push(added)
      group.bytes += added.value.length
    },
    take(entry) {
      taken.push(entry)
      leaveShares(state, entry)
      group.bytes += deletionBytes
    },
    closed,
    prepare,
    committed,
  }
}
