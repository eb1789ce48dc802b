// eviction.ts: makes room in the stores whose `on_full` is `drop_oldest`: takes the oldest messages of the
// largest shares off the disk.
//
//   a store reaches its bound -> the largest shares (shares.ts) -> a walk from their oldest message
//     -> one exchange for each page takes what belongs to them -> until the store is a little below its bound
//
// Whom it hits. Shares within an eighth of the largest one count as largest, so equal shares lose in order of
// arrival, and a share that is small loses nothing while another is large. Small shares of many names count
// as one, so a sender that invents names takes nothing from those that were there before.
//
// After a start the shares are counted by a walk in the background, begun when a store is half full. A store
// that becomes full meanwhile waits for the walk; only where it is half a group above its bound before the
// walk ends, the oldest message of all goes.
//
// Bound. A store passes its bound while the walk reads: by one group, and by what was read from the sockets
// until `behind` pauses reading. It lasts for one page and one write, a few milliseconds.
//
// Counting (invariant 10): every message is in the counter `evicted`, and in one of the events, which come at
// most once a second for each store. Messages that leave here are `taken` in the totals of their shelf, like
// those that are released.
//
// What can go wrong
//   the process dies       the exchange of a page is one write; the next start goes on
//   the store is lost      the work ends with the session
//   a message is damaged   it is passed over; its readers report it and set it aside
//   the clock was the reason (version 0.1.0 kept such messages on the quarantine shelf): it is
//   moved to the shelf of its kind and not dropped

import { setImmediate as turn } from 'node:timers/promises'
import type { CancelTimer } from '../../std/clock.ts'
import { GatewayError } from '../../std/gateway-error.ts'
import { keptStoreNames, type KeptStore } from '../../domain/kept-store.ts'
import type { KeptMessage } from '../../domain/message.ts'
import type { StoreEntry } from '../../storage/storage.ts'
import { firstEntries } from '../chunk-log/damage-scan.ts'
import {
  deadLetterIdOf,
  deadLetterKeyBytes,
  isKeptKey,
  keptSeqOf,
  keyAfter,
  shelfOf,
} from '../chunk-log/key-layout.ts'
import { deadLetterRecord, keptMessageRecord } from '../chunk-log/record-codec.ts'
import type { Eviction, Session, StoredEntry } from '../session-state.ts'
import { deadLetterEntryOf, keptEntryOf, keptMessageId } from './entry-reservations.ts'
import type { Share } from './shares.ts'
import { isOfSession, rangeOf, storeOf } from './store-use.ts'
import { storeLimits } from './store-limits.ts'

/** A record with its id; `message` where it is moved and not dropped. */
type Found = { id: string; entry: StoredEntry; moved: KeptMessage | null }

type Walk = { next: Buffer; found: number; wrapped: boolean }

const pageMax = 256
/** Shares above this part of the largest one lose messages. */
const largeShare = 7 / 8
/** Counting begins here, so that it is done when the store is full. */
const countFrom = 0.5
const slackMax = 1024 * 1024
const slackShare = 1 / 64
const eventEveryMs = 1000
const sharesShown = 3
const walksInVainMax = 3
/** Other reasons concern the clock of a listed device. */
const listedByTable = 'UNKNOWN_DEVICE'

export function createEviction(session: Omit<Session, 'eviction'>): Eviction {
  const { stores, options, counters, reservations, store: database, emit, clock } = session
  const limits = storeLimits(options)
  const running = new Set<KeptStore>()
  /** Walks over a whole store, in a row, that found nothing to drop. */
  const inVain = new Map<KeptStore, number>()
  const work = new Set<Promise<void>>()
  const reports = new Map<
    KeptStore,
    { messages: number; bytes: number; shares: string; cancel: CancelTimer | null }
  >()
  // Of an empty store nothing is left to count.
  for (const use of Object.values(stores)) use.counted = use.bytes === 0
  const ending = new AbortController()
  const { signal } = ending
  return { check, isBehind, end, idle: async () => void (await Promise.all(work)) }

  function check(): void {
    for (const name of keptStoreNames) {
      const { bytesMax, onFull } = limits[name]
      const use = stores[name]
      if (signal.aborted || running.has(name) || use.bytes < bytesMax * countFrom) continue
      if (onFull === 'drop_oldest' && use.bytes >= bytesMax) begin(name, makeRoom)
      else if (!use.counted) begin(name, count)
    }
  }

  function begin(name: KeptStore, run: (name: KeptStore) => Promise<void>): void {
    running.add(name)
    const task = run(name)
      .catch((error: unknown) => {
        // The store is lost, or other work took an entry first: a later check begins again.
        const fault = session.failRead(error)
        if (!(fault instanceof GatewayError)) throw fault
      })
      .finally(() => {
        running.delete(name)
        work.delete(task)
      })
    work.add(task)
  }

  /** More than a group above a bound, and room is being made. */
  function isBehind(): boolean {
    for (const name of running) if (isAbove(name, options.groupBytesMax)) return true
    return false
  }

  function isAbove(name: KeptStore, bytes: number): boolean {
    const { bytesMax, onFull } = limits[name]
    return onFull === 'drop_oldest' && stores[name].bytes > bytesMax + bytes
  }

  async function makeRoom(name: KeptStore): Promise<void> {
    const { bytesMax } = limits[name]
    const target = bytesMax - Math.min(slackMax, bytesMax * slackShare)
    const use = stores[name]
    const range = rangeOf(name)
    if (!use.counted) await count(name)
    while (!signal.aborted && use.bytes >= target) {
      const large = use.counted ? use.shares.above(use.shares.largest() * largeShare) : []
      const start = startOf(large)
      const walk: Walk = { next: start ?? range.gte, found: 0, wrapped: false }
      while (!signal.aborted && walk.found === 0 && !walk.wrapped) await takePage(name, large, walk, target)
      if (walk.found > 0) {
        inVain.delete(name)
        continue
      }
      for (const share of large) share.from = null
      if (start !== null) continue
      walkedInVain(name, large)
      break
    }
    if (!use.counted && !signal.aborted) await count(name)
  }

  /** They are not durable yet, or were counted by mistake: then they count no more. */
  function walkedInVain(name: KeptStore, large: readonly Share[]): void {
    const times = (inVain.get(name) ?? 0) + 1
    inVain.set(name, times)
    if (times >= walksInVainMax) for (const share of large) share.bytes = 0
  }

  /** The oldest place where a message of these shares can be; null where that is not known. */
  function startOf(large: readonly Share[]): Buffer | null {
    let first: Buffer | null = null
    for (const { from } of large) {
      if (from === null) return null
      if (first === null || from.compare(first) < 0) first = from
    }
    return first
  }

  async function takePage(
    name: KeptStore,
    large: readonly Share[],
    walk: Walk,
    target: number,
  ): Promise<void> {
    const { stores: uses } = session
    const use = uses[name]
    const cut = use.counted ? use.shares.largest() * largeShare : -1
    const range = rangeOf(name)
    const victims = await reservations.duringRead(async () => {
      const { entries } = await firstEntries(database, { gte: walk.next, lt: range.lt }, pageMax)
      const last = entries.at(-1)
      const chosen: Found[] = []
      let need = use.bytes - target
      let end: Buffer | null = null
      for (const [key, value] of entries) {
        if (need <= 0) break
        end = key
        const found = foundIn(name, key, value)
        if (found === null || use.shares.weightOf(found.entry.client, found.entry.device) <= cut) continue
        if (!reservations.register(found.id, found.entry)) continue
        chosen.push(found)
        need -= found.entry.bytes
      }
      walk.next = end === null ? walk.next : keyAfter(end)
      walk.wrapped = last === undefined
      return chosen
    })
    for (const share of large)
      if (share.from === null || share.from.compare(walk.next) < 0) share.from = walk.next
    walk.found += victims.length
    if (victims.length > 0) await takeAll(name, victims)
  }

  async function takeAll(name: KeptStore, victims: readonly Found[]): Promise<void> {
    const dropped = victims.filter(({ moved }) => moved === null)
    const keptMessages = victims.flatMap(({ moved }) => moved ?? [])
    const shares = sharesText(name)
    const take = victims.map(({ id }) => id)
    await session.exchange({ take, payloads: [], deadLetters: [], keptMessages, stateChanges: [] })
    if (dropped.length === 0) return
    counters.evicted[name] += dropped.length
    report(
      name,
      dropped.length,
      dropped.reduce((sum, { entry }) => sum + entry.bytes, 0),
      shares,
    )
  }

  /** Null where it is damaged, of another store, or taken. */
  function foundIn(name: KeptStore, key: Buffer, value: Buffer): Found | null {
    const found = decoded(key, value)
    return found === null || storeOf(found.entry) !== name || reservations.isTaken(found.id) ? null : found
  }

  function decoded(key: Buffer, value: Buffer): Found | null {
    if (key.length === deadLetterKeyBytes && key[0] === rangeOf('dead_letters').gte[0]) {
      const deadLetter = deadLetterRecord.decode(value)
      if (deadLetter === null) return null
      return { id: deadLetterIdOf(key), entry: deadLetterEntryOf(key, deadLetter, value.length), moved: null }
    }
    const shelf = isKeptKey(key) ? session.shelves.get(shelfOf(key)) : undefined
    const record = keptMessageRecord.decode(value)
    if (shelf === undefined || record === null) return null
    const seq = keptSeqOf(key)
    const { at: _at, ...message } = record
    const isMoved = message.reason !== listedByTable && shelf.name.startsWith('quarantine:')
    return {
      id: keptMessageId(shelf.name, seq),
      entry: keptEntryOf(shelf, seq, record, value.length),
      moved: isMoved ? { shelf: `clock:${message.provider}`, ...message } : null,
    }
  }

  /** Counts what was stored before this session, a page at a time. */
  async function count(name: KeptStore): Promise<void> {
    const use = stores[name]
    const range = rangeOf(name)
    let next = use.countedTo ?? range.gte
    while (!signal.aborted) {
      const page = await reservations.duringRead(async () => {
        const { entries } = await firstEntries(database, { gte: next, lt: range.lt }, pageMax)
        for (const [key, value] of entries) countOne(name, key, value)
        const last = entries.at(-1)
        if (last !== undefined) use.countedTo = next = keyAfter(last[0])
        return entries
      })
      if (page.length < pageMax) break
      // Others come first.
      await turn()
      if (isAbove(name, options.groupBytesMax / 2)) return
    }
    use.counted = !signal.aborted
  }

  function countOne(name: KeptStore, ...[key, value]: StoreEntry): void {
    const found = foundIn(name, key, value)
    if (found === null || isOfSession(session, found.entry)) return
    const { client, device, bytes } = found.entry
    stores[name].shares.add(client, device, bytes, true)
  }

  // ------------------------------------------------------------------ events

  function report(name: KeptStore, messages: number, bytes: number, shares: string): void {
    const waiting = reports.get(name) ?? { messages: 0, bytes: 0, shares, cancel: null }
    reports.set(name, waiting)
    waiting.messages += messages
    waiting.bytes += bytes
    waiting.shares = shares
    if (waiting.cancel !== null) return
    emitReport(name)
    waiting.cancel = clock.after(eventEveryMs, () => {
      waiting.cancel = null
      emitReport(name)
    })
  }

  function emitReport(name: KeptStore): void {
    const waiting = reports.get(name)
    if (waiting === undefined || waiting.messages === 0) return
    const { messages, bytes, shares } = waiting
    waiting.messages = 0
    waiting.bytes = 0
    emit({ kind: 'messages_evicted', store: name, messages, bytes, shares })
  }

  function sharesText(name: KeptStore): string {
    const { shares } = stores[name]
    const top = shares.above(shares.largest() / 2).slice(0, sharesShown)
    return top
      .map(
        ({ kind, name: who, messages }) =>
          `${kind} ${who === null ? '(others)' : JSON.stringify(who.replaceAll('\0', '/'))}: ${messages}`,
      )
      .join(', ')
  }

  function end(): void {
    ending.abort()
    for (const [name, waiting] of reports) {
      waiting.cancel?.()
      emitReport(name)
    }
  }
}
