// kept.ts: what the spool keeps beside the payloads in its lanes. Entry file of this folder.
//
//   message-shelf.ts       whole messages: in quarantine until their device is listed or their clock is
//                          judged, or deferred until an expression maps them
//   dead-letter-table.ts   messages and payloads that were given up, with the reason
//   state-entries.ts       state that the mapping needs after a restart
//   intake-journal.ts      short entries that ingest notes with its messages
//   session-records.ts     sessions that the broker stores for its clients
//
// They are written in the same commit as the message or the settle that they come from
// (commit-attachments.ts), and they leave through exchanges: one atomic write takes an entry and adds what it
// became (exchange.ts). Each entry is taken once (entry-reservations.ts). Their number and bytes are in
// totals that each change writes, so a start counts nothing.
//
// Reading holds no long iteration, and damage never ends it: a damaged record is set aside unchanged and
// reported, a block that cannot be read is skipped and reported.

import type { OpenSession, Session, Shelf } from '../session-state.ts'
import { closedFault } from '../spool-errors.ts'
import type { KeptCalls } from '../types.ts'
import type { ShelfView } from '../views.ts'
import { readDeadLetter, readDeadLetters } from './dead-letter-table.ts'
import { readDevice, readDevices, readShelf } from './kept-message-reader.ts'
import { readJournal } from './intake-journal.ts'
import { readSessionRecords } from './session-records.ts'
import { readStateEntries } from './state-entries.ts'

export function createKeptCalls({ run, peek }: OpenSession): KeptCalls {
  /** Throws SPOOL_CLOSED if the store is closed or lost, also while it is being read. */
  async function* read<Entry>(
    entries: (session: Session) => AsyncIterable<Entry> | null,
  ): AsyncGenerator<Entry> {
    const session = peek()
    if (session === null) throw closedFault()
    try {
      const found = entries(session)
      if (found !== null) yield* found
    } catch (error) {
      throw session.failRead(error)
    }
  }

  function readOne<Entry>(
    name: Shelf['name'],
    entries: (session: Session, shelf: Shelf) => AsyncIterable<Entry>,
  ): AsyncGenerator<Entry> {
    return read((session) => {
      const shelf = session.shelves.get(name)
      return shelf === undefined ? null : entries(session, shelf)
    })
  }

  return {
    stateEntries: () => read(readStateEntries),
    journal: () => read(readJournal),
    sessionRecords: () => read(readSessionRecords),
    shelves: () => [...(peek()?.shelves.values() ?? [])].map(shelfView),
    keptDevices: (name) => readOne(name, readDevices),
    keptMessages: (name, device, { limit }) =>
      readOne(name, (session, shelf) =>
        device === null ? readShelf(session, shelf, limit) : readDevice(session, shelf, device, limit),
      ),
    deadLetters: (filter) => read((session) => readDeadLetters(session, filter)),
    deadLetter: (id) => run((session) => readDeadLetter(session, id)),
    exchange: (exchange) => run((session) => session.exchange(exchange)),
  }
}

function shelfView(shelf: Shelf): ShelfView {
  const { name, messages, bytes, headSeq, nextSeq, unexplained, taken, damaged } = shelf
  return { shelf: name, messages, bytes, kept: nextSeq - unexplained, taken, damaged, headSeq, nextSeq }
}
