// write-barrier.ts: says when everything that was added to the spool by a moment is durable and can be read.
// Records that close by time, and payloads of entries that come back, are in the open group at first.

import type { Spool } from '../../spool/spool.ts'

export type WriteBarrier = {
  /** `next`: the ticket of what is added by now. `done`: up to this ticket everything is durable. */
  readonly tickets: { next: number; done: number }
  /** Asks for the next write, if a ticket waits. One at a time. */
  pass(): void
  /** The store was opened again. */
  restart(): void
}

export function createWriteBarrier(spool: Pick<Spool, 'exchange'>): WriteBarrier {
  const tickets = { next: 1, done: 0 }
  let passing = false

  function pass(): void {
    if (passing || tickets.done >= tickets.next) return
    passing = true
    const ticket = tickets.next
    tickets.next += 1
    spool
      .exchange({ take: [], payloads: [], deadLetters: [], stateChanges: [] })
      .then(() => {
        tickets.done = ticket
      })
      // The store is lost: its return begins everything anew.
      .catch(() => undefined)
      .finally(() => {
        passing = false
      })
  }

  return {
    tickets,
    pass,
    restart: () => {
      tickets.done = tickets.next - 1
    },
  }
}
