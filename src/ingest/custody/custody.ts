// custody.ts: custody `delivered`: the engine gets its acknowledgement when the ingestion API has accepted
// the payloads of a message, or they are stored in a queue of the engine. A gateway whose disk is lost then
// loses nothing. Entry file of this folder.
//
// Promises
//   A message is acknowledged only when each payload of it was accepted, or is stored in a queue of the
//   engine that has confirmed it (`parked`), or is a dead letter or in a held batch with a copy there
//   (`dead`), or was not wanted. In the order of the messages of a partition.
//   What is not delivered does not stop what is: it is parked, and comes back in its turn.
//   In an outage of the service nothing more is taken. What was taken stays in the spool, and is delivered
//   from here. Nothing is removed because the engine has a message: it may be purged or lost there.
//   A message that the engine delivers again is not stored again, however long the outage was.
//
// How: once in 100 ms, never for each message
//   custody-units.ts   which messages have left the gateway, and in which order they are acknowledged
//   parking.ts         stores in the engine what is not delivered, and removes it here
//   take-back.ts       stores here what comes back; parked-entry.ts has the bytes
//   dead-copies.ts     copies dead letters to the engine
//   held-copies.ts     copies held batches that cannot be parked
//   outage.ts          nothing is taken
//   known-keys.ts      keeps the payloadIds of what is not acknowledged in the dedup window
//   engine-queues.ts   tries again where the engine does not confirm
//
// What can go wrong, and what then happens
//   the disk is lost         the engine delivers what was not acknowledged to another gateway. What the
//                            service had accepted meanwhile comes twice, with the same payloadId
//   the process dies, the    the same messages come again. The dedup window knows those of the spool.
//   engine restarts          They wait for what is in the lanes then, so for the copy that came before them
//   the store is lost        the engine delivers again what is not acknowledged: the disk may have lost it
//   an engine confirms       nothing is removed and nothing acknowledged; the window bounds what is taken
//   nothing
//   a batch gets no answer   it stays, unacknowledged, with all behind it, until it is resolved under its
//                            batchId; CUSTODY_WAITING names it. When it is held, it is copied to the engine,
//                            and nothing waits for it any more
//   a provider of a lane is  the lane is never empty: CUSTODY_WAITING names it. Configure the provider, or
//   not in the config        assign the lane

import { every, type CancelTimer, type Clock } from '../../std/clock.ts'
import type { State } from '../../domain/condition-state.ts'
import type { Emit } from '../../domain/event.ts'
import type { LaneView, ShelfView, Batch } from '../../spool/spool.ts'
import type { CustodyFeed, FeedCustody } from '../message-sources/message-sources.ts'
import { advance, newUnit, type Places, type Unit, blocker } from './custody-units.ts'
import { createDeadCopies } from './dead-copies.ts'
import { createEngineQueues } from './engine-queues.ts'
import { createHeldCopies } from './held-copies.ts'
import { createKnownKeys } from './known-keys.ts'
import { createOutage } from './outage.ts'
import { createParking } from './parking.ts'
import { createTakeBack } from './take-back.ts'
import type { CustodyDeps, CustodyOptions, CustodyView, CustodySpool } from './types.ts'
import { createWriteBarrier } from './write-barrier.ts'
import { quote } from '../../std/quote.ts'

export type * from './types.ts'

export type Custody = FeedCustody & {
  /** Before the first message. `update`: there may be more or less room in the feeds. */
  start(feeds: readonly CustodyFeed[], update: () => void): void
  view(): CustodyView
  states(): readonly State[]
  /** Nothing is parked any more; what is done is still acknowledged. */
  release(): Promise<void>
  close(): void
}

type Deps = { clock: Clock; emit: Emit }

const tickMs = 100
const closingMsAtOnce = 1000
/** A message that waits longer than park_after by this much is a condition. */
const slackMs = 25_000

export function createCustody({ clock, emit }: Deps, deps: CustodyDeps, options: CustodyOptions): Custody {
  const { spool, delivery } = deps
  const stopping = new AbortController()
  const { signal } = stopping
  let feeds: readonly CustodyFeed[] = []
  let update = () => {}
  let units: Unit[] = []
  let isLost = false
  let closingMs = 0
  let lastTickMs = clock.monotonic()
  let cancel: CancelTimer = () => {}
  const oldestMs = (now: number) => (units.length === 0 ? null : now - units[0]!.closedAtMs)
  const sources = () => feeds.map(({ source }) => source)
  const queues = createEngineQueues({ clock, sources })
  const barrier = createWriteBarrier(spool)
  const takeBack = createTakeBack({ ...deps, clock, emit }, options)
  const heldCopies = createHeldCopies({ spool, queues, lineOf: deps.heldLineOf, clock, signal })
  const { releaseOrder } = deps
  const parking = createParking({ ...deps, clock, queues, heldCopies, releaseOrder, signal }, options)
  const copies = createDeadCopies({ ...deps, emit, queues, mark: deps.copied, signal })
  const outage = createOutage({ delivery, clock, changed: () => update() }, options)
  const keys = createKnownKeys(spool)
  const heads = createShelfHeads(spool)
  const unlisten = spool.listen({ storeLost: lost, storeReopened: reopened })

  return {
    isHolding: outage.isHolding,
    takeBack: takeBack.add,
    start,
    view,
    states,
    release,
    close,
  }

  function start(given: readonly CustodyFeed[], changed: () => void): void {
    feeds = given
    update = changed
    cancel = every(clock, tickMs, tick)
  }

  function lost(): void {
    isLost = true
    units = []
    keys.restart()
  }

  /** What the disk may have lost is not acknowledged: all of it comes again. */
  function reopened(): void {
    units = []
    copies.restart()
    barrier.restart()
    for (const feed of feeds) feed.giveBackAll()
    isLost = false
  }

  function tick(): void {
    const now = clock.monotonic()
    const elapsedMs = now - lastTickMs
    lastTickMs = now
    if (isLost) return
    // After a standstill the records that are due have still to be closed.
    if (spool.holdReason() === null && !spool.congested()) closingMs += Math.min(elapsedMs, closingMsAtOnce)
    closeUnit(now)
    const lanes = spool.lanes()
    if (!signal.aborted) work(now, lanes)
    acknowledge(placesNow(now, lanes))
    if (units.length === 0) queues.idle()
    if (feeds.every((feed) => feed.isReady())) keys.passed(Math.min(elapsedMs, closingMsAtOnce), units[0])
  }

  /** What was committed since the last tick. */
  function closeUnit(now: number): void {
    const parts = feeds.flatMap((feed) => feed.collect())
    const keysFrom = keys.nextUnit()
    if (parts.length === 0) return
    let messages = 0
    for (const part of parts) messages += part.count - part.partition.collected
    for (const { partition, count } of parts) partition.collected = count
    units.push(newUnit(parts, { closedAtMs: now, messages, keysFrom }))
  }

  function work(now: number, lanes: readonly LaneView[]): void {
    const oldestMs = units.length === 0 ? 0 : now - units[0]!.closedAtMs
    outage.update({ oldestMs, lanes })
    if (outage.isHolding()) return
    takeBack.storeDue()
    const pressed = feeds.some((feed) => feed.windowUse() > 0.5)
    if (oldestMs >= options.parkAfterMs || (pressed && units.length > 0)) parking.round({ pressed })
  }

  function acknowledge(places: Places): void {
    let done = 0
    let isInOrder = true
    for (const unit of units) {
      advance(unit, places)
      isInOrder &&= unit.place === 'done'
      if (isInOrder) done += 1
    }
    if (units.some(({ place }) => place === 'barrier')) barrier.pass()
    if (units.some(({ place }) => place === 'dead_letters')) copies.pass()
    if (done === 0) return
    for (const { parts } of units.splice(0, done)) for (const part of parts) part.feed.delivered(part)
  }

  function placesNow(nowMs: number, lanes: readonly LaneView[]): Places {
    const { openParts, openMsMax } = deps.records()
    const shelves = spool.shelves()
    heads.read(nowMs, shelves, units)
    return {
      nowMs,
      lanes,
      shelves,
      // Records are looked at once a second.
      records: { openParts, closingMs, closingMsMax: openMsMax + 3000 },
      nextDeadLetter: spool.nextDeadLetter() ?? Number.POSITIVE_INFINITY,
      copiedTo: copies.copiedTo(),
      isCopied: heldCopies.isCopied,
      movedBack: spool.totals().movedBack,
      barrier: barrier.tickets,
    }
  }

  // ------------------------------------------------------------------ what is shown

  function waitsForNow(): string | null {
    const [unit] = units
    if (unit === undefined || isLost) return null
    return waitsFor(unit, placesNow(clock.monotonic(), spool.lanes()), spool.batches)
  }

  function outstanding(): number {
    return units.reduce((sum, { messages }) => sum + messages, 0)
  }

  function view(): CustodyView {
    return {
      ...takeBack.counters(),
      ...parking.counters(),
      copied: copies.copied() + heldCopies.copied(),
      storeFailures: queues.failures(),
      outstanding: outstanding(),
      oldestMs: oldestMs(clock.monotonic()),
      waitsFor: waitsForNow(),
      holds: outage.isHolding(),
      waitingEntries: takeBack.waiting(),
    }
  }

  function states(): readonly State[] {
    const states = [...queues.states()]
    const outageMs = outage.waitedMs()
    if (outageMs !== null) states.push({ code: 'CUSTODY_OUTAGE', waitedMs: outageMs })
    const waitedMs = oldestMs(clock.monotonic()) ?? 0
    if (waitedMs > options.parkAfterMs + slackMs)
      states.push({
        code: 'CUSTODY_WAITING',
        messages: outstanding(),
        waitedMs,
        waitsFor: waitsForNow() ?? '',
      })
    return states
  }

  async function release(): Promise<void> {
    stopping.abort()
    await Promise.all([parking.idle(), copies.idle()])
  }

  function close(): void {
    stopping.abort()
    cancel()
    unlisten()
  }
}

// Keeps what is known of the heads of shelves fresh while units wait for them: a read from
// the head of a shelf finds where it begins now.

const everyMs = 500

function createShelfHeads(spool: Pick<CustodySpool, 'keptMessages'>) {
  let readMs = 0

  async function readHead(shelf: ShelfView['shelf']): Promise<void> {
    for await (const _ of spool.keptMessages(shelf, null, { limit: 1 })) break
  }

  return {
    read(nowMs: number, shelves: readonly ShelfView[], units: readonly Unit[]): void {
      if (nowMs - readMs < everyMs) return
      const places = new Set<string>(units.map(({ place }) => place))
      const waited = shelves.filter(({ shelf, messages }) => messages > 0 && places.has(shelf.split(':')[0]!))
      if (waited.length === 0) return
      readMs = nowMs
      // A store that is lost meanwhile begins everything anew when it returns.
      for (const { shelf } of waited) readHead(shelf).catch(() => undefined)
    },
  }
}

// What the oldest unacknowledged messages wait for, in words: a batch, a lane, a shelf.

function waitsFor(unit: Unit, places: Places, batches: () => readonly Batch[]): string | null {
  if (unit.place === 'done') return null
  const what = blocker(unit, places)
  if (what === null) return null
  if (typeof what === 'object')
    return 'shelf' in what ? shelfText(what) : laneText(what, { places, batches: batches() })
  if (what === 'records') return 'open records of the mapping'
  if (what === 'dead_letters') return 'copies of dead letters in the engine'
  return 'a write of the spool'
}

function shelfText({ shelf, messages }: ShelfView): string {
  return `${messages} messages on the shelf ${quote(shelf, 80)}`
}

function laneText(
  lane: LaneView,
  { places, batches }: { places: Places; batches: readonly Batch[] },
): string {
  const { id, provider, role, open } = lane
  const lowSeq = lane.lowSeqBeside(places.isCopied)
  const kind = role.kind === 'retry' ? `retry lane (step ${role.step + 1})` : `${role.kind} lane`
  const name = `the ${kind} of provider ${quote(provider, 64)}`
  const batch = batches.find((one) => one.lane === id && one.firstSeq === lowSeq)
  if (batch === undefined) return `${open} payloads of ${name}`
  const held = batch.held === null ? '' : `, which is held (${batch.held.reason})`
  return `batch ${batch.batchId} of ${name}${held}`
}
