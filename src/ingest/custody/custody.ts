// custody.ts: custody `delivered`: the engine gets its acknowledgement when the ingestion API has accepted
// the payloads of a message, or the message or payload is in the engine again. A gateway whose disk is lost
// then loses nothing. Entry file of this folder.
//
// Promises
//   A message is acknowledged only when each payload of it was accepted, or is stored in a queue of the
//   engine that has confirmed it (`parked`), or is a dead letter with a copy there (`dead`), or was not
//   wanted. In the order of the messages of a partition.
//   What is not delivered does not stop what is: it is parked, and comes back in its turn.
//   In an outage of the service the messages stay in the engine, and not here.
//   It holds while the disk is there, too: what is in the spool is delivered from here.
//
// How: once in 100 ms, never for each message
//   custody-units.ts   which messages have left the gateway, and in which order they are acknowledged
//   parking.ts         stores in the engine what is not delivered, and removes it here
//   take-back.ts       stores here what comes back; parked-entry.ts has the bytes
//   dead-copies.ts     copies dead letters to the engine
//   outage.ts          nothing is taken; what was never submitted goes back, once
//   engine-queues.ts   tries again where the engine does not confirm
//
// What can go wrong, and what then happens
//   the disk is lost         the engine delivers what was not acknowledged to another gateway. What the
//                            service had accepted meanwhile comes twice, with the same payloadId
//   the process dies         the same messages come again; the dedup window knows those that are in the spool
//   the store is lost        everything is given back: what the disk lost is delivered again
//   an engine confirms       nothing is removed and nothing acknowledged; the window bounds what is taken
//   nothing
//   a batch gets no answer   it stays, unacknowledged, with all behind it, until it is resolved under its
//                            batchId; CUSTODY_WAITING names it
//   a provider of a lane is  the lane is never empty: CUSTODY_WAITING names it. Configure the provider, or
//   not in the config        assign the lane

import type { CancelTimer, Clock } from '../../std/clock.ts'
import type { Emit } from '../../domain/event.ts'
import type { LaneView } from '../../spool/spool.ts'
import type { CustodyFeed, FeedCustody, Partition } from '../message-sources/message-sources.ts'
import { advance, newUnit, type Ends, type Places, type Unit } from './custody-units.ts'
import { createDeadCopies } from './dead-copies.ts'
import { createEngineQueues } from './engine-queues.ts'
import { createOutage, returnable } from './outage.ts'
import { createParking } from './parking.ts'
import { createShelfHeads } from './shelf-heads.ts'
import { createTakeBack } from './take-back.ts'
import type { CustodyDeps, CustodyOptions, CustodyView } from './types.ts'
import { createWaitReport, waitsFor } from './waits-for.ts'
import { createWriteBarrier } from './write-barrier.ts'

export type * from './types.ts'

export type Custody = FeedCustody & {
  /** Before the first message. `update`: there may be more or less room in the feeds. */
  start(feeds: readonly CustodyFeed[], update: () => void): void
  view(): CustodyView
  /** Nothing is parked or given back any more; what is done is still acknowledged. */
  release(): Promise<void>
  close(): void
}

type Deps = { clock: Clock; emit: Emit }

const tickMs = 100
const closingMsAtOnce = 1000

export function createCustody({ clock, emit }: Deps, deps: CustodyDeps, options: CustodyOptions): Custody {
  const { spool, delivery } = deps
  const stopping = new AbortController()
  const { signal } = stopping
  let feeds: readonly CustodyFeed[] = []
  let update = () => {}
  let units: Unit[] = []
  /** The state before the first unit. */
  let firstEnds: Ends = { lanes: new Map(), others: null }
  /** Units from this index on are being removed from the spool; null: none. */
  let withdrawingFrom: number | null = null
  let isLost = false
  let closingMs = 0
  let lastTickMs = clock.monotonic()
  let returned = 0
  let withdrawn = 0
  let cancel: CancelTimer = () => {}
  /** Also where the outage ends while a withdrawal runs: nothing may come between it and the return. */
  const isHolding = () => outage.isHolding() || withdrawingFrom !== null
  const oldestMs = (now: number) => (units.length === 0 ? null : now - units[0]!.closedAtMs)
  const sources = () => feeds.map(({ source }) => source)
  const queues = createEngineQueues({ clock, emit, sources })
  const barrier = createWriteBarrier(spool)
  const takeBack = createTakeBack({ ...deps, clock, emit }, options)
  const parking = createParking({ ...deps, clock, queues, releaseOrder: deps.releaseOrder, signal }, options)
  const copies = createDeadCopies({ ...deps, emit, queues, mark: deps.copied, signal })
  const outage = createOutage({ delivery, clock, emit, changed: () => update(), signal }, options)
  const heads = createShelfHeads(spool)
  const waiting = createWaitReport(emit, options)
  const unlisten = spool.listen({ storeLost: lost, storeReopened: reopened })

  return {
    isHolding() {
      return isHolding()
    },
    takeBack: takeBack.add,
    start,
    view,
    release,
    close,
  }

  function start(given: readonly CustodyFeed[], changed: () => void): void {
    feeds = given
    update = changed
    firstEnds = endsNow()
    arm()
  }

  function arm(): void {
    cancel = clock.after(tickMs, () => {
      tick()
      arm()
    })
  }

  function lost(): void {
    isLost = true
    units = []
    withdrawingFrom = null
  }

  /** What the disk may have lost is not acknowledged: all of it comes again. */
  function reopened(): void {
    units = []
    copies.restart()
    barrier.restart()
    for (const feed of feeds) feed.giveBackAll()
    isLost = false
    firstEnds = endsNow()
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
    waiting.report(oldestMs(now), { outstanding, waitsFor: waitsForNow })
  }

  /** What was committed since the last tick. */
  function closeUnit(now: number): void {
    const parts = feeds.flatMap((feed) => feed.collect())
    if (parts.length === 0) return
    let messages = 0
    for (const part of parts) messages += part.count - part.partition.collected
    for (const { partition, count } of parts) partition.collected = count
    units.push(newUnit(parts, { closedAtMs: now, messages, ends: endsNow() }))
  }

  function work(now: number, lanes: readonly LaneView[]): void {
    const oldestMs = units.length === 0 ? 0 : now - units[0]!.closedAtMs
    outage.update({ oldestMs, lanes })
    if (outage.mayGiveBack() && withdrawingFrom === null && canGiveBack()) void giveBack()
    if (isHolding()) return
    takeBack.storeDue()
    const pressed = feeds.some((feed) => feed.windowUse() > 0.5)
    if (oldestMs >= options.parkAfterMs || (pressed && units.length > 0)) parking.round({ pressed })
  }

  function acknowledge(places: Places): void {
    let done = 0
    let isInOrder = true
    const end = withdrawingFrom ?? units.length
    for (let index = 0; index < end; index += 1) {
      const unit = units[index]!
      advance(unit, places)
      isInOrder &&= unit.place === 'done'
      if (isInOrder) done += 1
    }
    if (units.some(({ place }) => place === 'barrier')) barrier.pass()
    if (units.some(({ place }) => place === 'dead_letters')) copies.pass()
    if (done === 0) return
    const gone = units.splice(0, done)
    if (withdrawingFrom !== null) withdrawingFrom -= done
    firstEnds = gone.at(-1)!.ends
    for (const { parts } of gone) for (const part of parts) part.feed.delivered(part)
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
      movedBack: spool.totals().movedBack,
      barrier: barrier.tickets,
    }
  }

  function endsNow(): Ends {
    const lanes = new Map(spool.lanes().map(({ id, committedSeq }) => [id, committedSeq]))
    if (deps.records().openParts > 0) return { lanes, others: null }
    const kept = spool.shelves().reduce((sum, { nextSeq }) => sum + nextSeq, 0)
    return { lanes, others: `${spool.totals().exchanged} ${kept} ${spool.nextDeadLetter()}` }
  }

  // ------------------------------------------------------------------ the outage

  function canGiveBack(): boolean {
    return units.length > 0 && feeds.every(({ source }) => source.custody?.mayGiveBack?.() !== false)
  }

  async function giveBack(): Promise<void> {
    withdrawingFrom = units.length
    try {
      // Exchanges that are under way are in the lanes after it, and are seen.
      await spool.exchange({ take: [], payloads: [], deadLetters: [], stateChanges: [] })
      const isQuiet = feeds.every((feed) => feed.isQuiet()) && takeBack.isQuiet()
      if (isLost || !outage.isHolding() || !isQuiet) return
      closeUnit(clock.monotonic())
      const found = returnable(units, { first: firstEnds, now: endsNow(), lanes: spool.lanes() })
      if (found === null) return
      withdrawingFrom = found.from
      const payloads = await outage.withdraw(found.numbers)
      if (isLost) return
      giveBackUnits(units.splice(withdrawingFrom), payloads)
    } catch {
      // The store is lost, or one of them was sealed meanwhile: the next tick looks again.
    } finally {
      withdrawingFrom = null
      // The outage may be over by now; sources take nothing after a return until they are asked.
      update()
    }
  }

  function giveBackUnits(gone: readonly Unit[], payloads: number): void {
    const messages = gone.reduce((sum, unit) => sum + unit.messages, 0)
    const partitions = new Map<Partition, CustodyFeed>()
    for (const { parts } of gone) for (const { partition, feed } of parts) partitions.set(partition, feed)
    for (const [partition, feed] of partitions) {
      const parts = units.flatMap((unit) => unit.parts.filter((part) => part.partition === partition))
      takeBack.forget(partition)
      feed.giveBackBehind(partition, parts.at(-1) ?? null)
      partition.collected = partition.committed
    }
    returned += messages
    withdrawn += payloads
    emit({ kind: 'custody_returned', messages, payloads })
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
      returned,
      withdrawn,
      copied: copies.copied(),
      storeFailures: queues.failures(),
      outstanding: outstanding(),
      oldestMs: oldestMs(clock.monotonic()),
      waitsFor: waitsForNow(),
      holds: outage.isHolding(),
      waitingEntries: takeBack.waiting(),
    }
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
