// exchange.ts: gives kept messages and dead letters back for what they became, in one atomic durable write: release,
// remap, requeue, and the records of the mapping that close by time.
//
// An exchange is put into the open group, like a message: what was appended and remembered before it stands before it,
// what comes after stands behind it, and a crash leaves all of it or none. Where everything that it takes is known
// (entry-reservations.ts) this happens before `exchange` returns; else the database is asked first. Exchanges that must ask wait
// for each other, and those behind them wait too, so that payloads keep the order of the calls; only an exchange that
// changes state never waits for others, since it must stay in order with `remember`.

import { assert } from '../../std/assert.ts'
import type { Committer } from '../chunk-log/committer.ts'
import { lookFor, type Desk } from './entry-reservations.ts'
import type { IntakeGroup } from '../chunk-log/group.ts'
import type { Place } from '../chunk-log/commit-attachments.ts'
import type { Exchange } from '../spool.ts'
import type { SpoolState } from '../session-state.ts'

export type ExchangeDeps = {
  state: SpoolState
  committer: Committer
  desk: Desk
  /** The group that is open now. */
  group: () => IntakeGroup
}

const nothingLooked: ReadonlyMap<string, Place> = new Map()

/** Resolves after the fsync. Rejects with SPOOL_ENTRY_GONE, and then nothing has happened. */
export function createExchange(deps: ExchangeDeps): (exchange: Exchange) => Promise<void> {
  const { state, committer, desk } = deps
  /** Settles when the last exchange that has to ask is in its group, or has failed. */
  let line: Promise<unknown> = Promise.resolve()
  let inLine = 0

  return async function exchange(exchange) {
    const { take, stateChanges } = exchange
    assert(new Set(take).size === take.length, 'an exchange takes an entry once')
    const places = inLine === 0 || stateChanges.length > 0 ? desk.find(take, nothingLooked) : null
    await (places === null ? standInLine(exchange) : put(exchange, places))
  }

  async function standInLine(exchange: Exchange): Promise<void> {
    const before = line
    inLine += 1
    const placed = desk.reading(async () => {
      try {
        const looking = lookForAll(exchange.take)
        await before
        const { looked, fault } = await looking
        if (fault !== null) throw fault
        return { durable: put(exchange, placesOf(exchange.take, looked)) }
      } finally {
        inLine -= 1
      }
    })
    line = placed.catch(() => undefined)
    // In an object, since a promise that resolves with a promise would wait for it.
    const { durable } = await placed
    await durable
  }

  /** Never rejects: somebody else is waited for first. */
  async function lookForAll(ids: readonly string[]): Promise<{ looked: Map<string, Place>; fault: unknown }> {
    const looked = new Map<string, Place>()
    try {
      for (const id of ids) looked.set(id, await lookFor(state, id))
      return { looked, fault: null }
    } catch (error) {
      return { looked, fault: error }
    }
  }

  function placesOf(ids: readonly string[], looked: ReadonlyMap<string, Place>): Place[] {
    const places = desk.find(ids, looked)
    assert(places !== null, 'every entry was looked for')
    return places
  }

  /** All of it in one turn and before the message is ended, so that it lands in one group. */
  function put(
    { take, payloads, deadLetters, keptMessages, stateChanges }: Exchange,
    places: readonly Place[],
  ): Promise<void> {
    const group = deps.group()
    for (const id of take) desk.seize(id)
    for (const place of places) group.take(place)
    for (const payload of payloads) group.append(payload)
    for (const letter of deadLetters) group.bury(letter)
    for (const message of keptMessages ?? []) group.keep(message)
    for (const { key, value } of stateChanges) group.remember(key, value)
    return new Promise((resolve, reject) => {
      committer.endMessage((fault) => {
        if (fault !== null) {
          reject(fault)
          return
        }
        desk.gone(take)
        state.counters.exchanged += payloads.length
        resolve()
      })
    })
  }
}
