// kept.ts: the calls that read what was kept, buried or remembered, over whichever opening of the store there is.

import type { Epoch } from '../session.ts'
import { closedFault } from '../spool-errors.ts'
import { readDevice, readDevices, readShelf, type ReadDeps } from './kept-message-reader.ts'
import { readLetter, readLetters } from './dead-letter-reader.ts'
import { readStates } from './state-entries.ts'
import type { Shelf } from './message-shelf.ts'
import type { ShelfView, Spool } from '../spool.ts'

type Reads = Pick<
  Spool,
  'stateEntries' | 'shelves' | 'keptDevices' | 'keptMessages' | 'deadLetters' | 'deadLetter'
>

export function createReads(epochNow: () => Epoch | null): Reads {
  /** Throws SPOOL_CLOSED where the store is closed or lost, also while it is being read. */
  async function* over<Entry>(read: (deps: ReadDeps) => AsyncIterable<Entry> | null): AsyncGenerator<Entry> {
    const epoch = epochNow()
    if (epoch === null) throw closedFault()
    try {
      const entries = read(epoch.reader)
      if (entries !== null) yield* entries
    } catch (error) {
      throw epoch.blame(error)
    }
  }

  return {
    stateEntries: () => over(({ state }) => readStates(state)),
    shelves: () => [...(epochNow()?.state.shelves.values() ?? [])].map(viewOfShelf),
    keptDevices: (name) =>
      over((deps) => {
        const shelf = deps.state.shelves.get(name)
        return shelf === undefined ? null : readDevices(deps, shelf)
      }),
    keptMessages: (name, device, { limit }) =>
      over((deps) => {
        const shelf = deps.state.shelves.get(name)
        if (shelf === undefined) return null
        return device === null ? readShelf(deps, shelf, limit) : readDevice(deps, shelf, device, limit)
      }),
    deadLetters: (filter) => over((deps) => readLetters(deps, filter)),
    async deadLetter(id) {
      const epoch = epochNow()
      if (epoch === null) throw closedFault()
      try {
        return await readLetter(epoch.reader, id)
      } catch (error) {
        throw epoch.blame(error)
      }
    },
  }
}

function viewOfShelf({ name, messages, bytes, nextSeq, unexplained, taken, damaged }: Shelf): ShelfView {
  return { shelf: name, messages, bytes, kept: nextSeq - unexplained, taken, damaged }
}
