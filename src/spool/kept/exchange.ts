// exchange.ts: replaces kept messages and dead letters by what they became, in one atomic durable write. Used
// by release, remap and requeue, and for state that the mapping closes by time.
//
// An exchange goes into the open group, like a message: what was added before it precedes it, what comes
// later follows it, and a crash leaves all of it or none. If everything that it takes is known
// (entry-reservations.ts), this happens before `exchange` returns; else it reads the database first.
// Exchanges that read wait for each other, and those behind them wait too, so that payloads keep the order of
// the calls. Only an exchange that changes state never waits for others, since it must stay in order with
// `putState`.
//
// A payload that was mapped just now is a duplicate where the dedup window knows it: a record that a device
// sends in several messages may be kept several times. A payload of a dead letter of the delivery is in the
// window since it was taken in first, and is no duplicate.
//
// What is kept passes the places in one order: deferred, quarantine, clock, lanes, dead letters. An exchange
// that brings something to an earlier place, or keeps a message again, is counted (`movedBack`): who follows
// messages along the places looks at all of them once more.

import { assert } from '../../std/assert.ts'
import type { ShelfKind } from '../../domain/kept-store.ts'
import type { KeptMessage } from '../../domain/message.ts'
import type { MappedPayload } from '../../domain/payload.ts'
import type { Session, StoredEntry } from '../session-state.ts'
import type { Exchange, Exchanged } from '../types.ts'
import { findInStore } from './entry-reservations.ts'
import { kindOf } from './store-use.ts'

const noneLookedUp: ReadonlyMap<string, StoredEntry> = new Map()

/** The exchange of one session. Resolves after the fsync. With SPOOL_ENTRY_GONE nothing has happened. */
export function createExchange(session: Omit<Session, 'exchange' | 'eviction'>): Session['exchange'] {
  const { committer, counters, reservations, compactor, window } = session
  /** Settles when the last exchange that reads is in its group, or has failed. */
  let lastRead: Promise<unknown> = Promise.resolve()
  let reading = 0

  return async function exchange(exchange) {
    const { take, stateChanges } = exchange
    assert(new Set(take).size === take.length, 'an exchange takes an entry once')
    const mayStart = reading === 0 || stateChanges.length > 0
    const entries = mayStart ? reservations.locate(take, noneLookedUp) : null
    const exchanged = await (entries === null ? afterRead(exchange) : addToGroup(exchange, entries))
    compactor.afterExchange()
    return exchanged
  }

  async function afterRead(exchange: Exchange): Promise<Exchanged> {
    const before = lastRead
    reading += 1
    const added = reservations.duringRead(async () => {
      try {
        const looking = lookUp(exchange.take)
        await before
        const { lookedUp, fault } = await looking
        if (fault !== null) throw fault
        const entries = reservations.locate(exchange.take, lookedUp)
        assert(entries !== null, 'every entry was looked up')
        return { durable: addToGroup(exchange, entries) }
      } finally {
        reading -= 1
      }
    })
    lastRead = added.catch(() => undefined)
    // In an object, since a promise that resolves with a promise would wait for it.
    const { durable } = await added
    return durable
  }

  /** Never rejects, since the exchange before this one is awaited first. */
  async function lookUp(
    ids: readonly string[],
  ): Promise<{ lookedUp: Map<string, StoredEntry>; fault: unknown }> {
    const lookedUp = new Map<string, StoredEntry>()
    try {
      for (const id of ids) lookedUp.set(id, await findInStore(session, id))
      return { lookedUp, fault: null }
    } catch (error) {
      return { lookedUp, fault: error }
    }
  }

  /** Everything at once and before the message ends, so that it goes into one group. */
  function addToGroup(
    { take, payloads: all, areMapped = false, deadLetters, keptMessages = [], stateChanges }: Exchange,
    entries: readonly StoredEntry[],
  ): Promise<Exchanged> {
    const group = committer.open()
    const payloads = areMapped ? all.filter(isNew) : all
    const duplicates = all.length - payloads.length
    const attachments = group.attachments()
    if (movesBack(entries, payloads.length > 0, keptMessages)) counters.movedBack += 1
    for (const id of take) reservations.take(id)
    for (const entry of entries) attachments.take(entry)
    const from = entries[0]?.kind ?? null
    for (const payload of payloads) group.append(payload, { from, attempts: payload.attempts ?? 0 })
    for (const deadLetter of deadLetters) attachments.addDeadLetter(deadLetter)
    for (const message of keptMessages) attachments.keepMessage(message)
    for (const { key, value } of stateChanges) attachments.putState(key, value)
    // `devices forget` deletes what is known on the disk too. Evictions, which come with messages, do not.
    if (stateChanges.length > 0) attachments.forgetLate()
    return new Promise((resolve, reject) => {
      committer.endMessage((fault) => {
        if (fault !== null) {
          reject(fault)
          return
        }
        reservations.deleted(take)
        counters.exchanged += payloads.length
        counters.duplicates += duplicates
        resolve({ duplicates })
      })
    })
  }

  /** Enters its key. */
  function isNew({ duplicateRule, windowKey }: MappedPayload): boolean {
    if (duplicateRule === 'resend') return true
    window.load(windowKey)
    if (window.has()) return false
    committer.open().addKey()
    return true
  }
}

const shelfOrder: readonly ShelfKind[] = ['deferred', 'quarantine', 'clock']

function movesBack(
  entries: readonly StoredEntry[],
  makesPayloads: boolean,
  keptMessages: readonly KeptMessage[],
): boolean {
  if (keptMessages.length === 0 && !makesPayloads) return false
  const first = Math.min(...keptMessages.map(({ shelf }) => shelfOrder.indexOf(kindOf(shelf))))
  return entries.some((entry) =>
    entry.kind === 'deadLetter' ? true : first <= shelfOrder.indexOf(kindOf(entry.shelf.name)),
  )
}
