// quarantine.ts: releases messages that were quarantined because their device was unknown, once it is known.
// The commands of a person are in quarantine-decisions.ts.
//
//   a new mapping -> beginSwap: live messages of devices that it newly admits are kept behind the quarantined
//                 -> findReleasable: which devices on the shelves does it admit? only those are released
//                 -> each device, in order of arrival: read, map (remap.ts), one exchange, until none is left
//                 -> barrier, read once more, nothing arrived since: its live messages are mapped directly
//
// Promises
//   Nothing is lost and nothing is sent twice: messages leave their shelf in the write that adds their
//   results.
//   The payloads of a device keep the order in which its messages arrived, including those that arrive
//   meanwhile: these are kept behind (release-order.ts). Values that form one payload together stay together.
//   What cannot be mapped becomes a dead letter in the same write. What is kept because of its clock stays:
//   a person decides about it, or clock-verdicts.ts where our own clock was wrong.
//
// What can go wrong, and what then happens
//   the process dies      the next start searches again; messages that were not released are still there
//   the store is lost     the work continues when it is open again
//   the spool is full     the work waits; messages of the devices are still quarantined, up to its limit
//   a device never pauses its messages continue to pass through the shelf, in order, until there is a gap
//   a device is unlisted again meanwhile: its messages are kept again, and stay
//   an expression cannot be evaluated for now: the messages of that device wait, those of others continue
//
// Bounds: 100 messages a slice (kept-slices.ts), eight devices at once, one look a minute at the shelves.

import { pause, type CancelTimer, type EpochMs } from '../../std/clock.ts'
import { codeOf } from '../../std/gateway-error.ts'
import type { ShelfName } from '../../domain/kept-store.ts'
import type { Mapper, Mapping } from '../../mapping/mapping.ts'
import { createUnmappableCounter } from '../intake/unmappable-counter.ts'
import { unknownDevice } from '../remap/kept-message.ts'
import { inSlices } from '../remap/kept-slices.ts'
import { mapperFactory, retryUntilDone, waitForRoom } from '../remap/release-throttle.ts'
import { remapSlice } from '../remap/remap.ts'
import { exchangeSlice, type KeptWorkDeps, type SliceResult } from '../remap/slice-result.ts'
import type { ReleaseOrder } from '../types.ts'
import { quarantinedOn, quarantineShelves, type QuarantinedEntry } from './quarantine-shelves.ts'

export type QuarantineRelease = ReleaseOrder & {
  /** Before the first message: finds what can be released, so that live messages are kept behind it. */
  findReleasable(): Promise<void>
  /** Starts the work; also where something may have changed. */
  start(): void
  /** Before `next` is in force: from here on, messages of devices that it newly admits are kept behind. */
  beginSwap(next: Mapping): void
  /** `next` is in force; or it is not, and the previous mapping stays in force. */
  endSwap(succeeded: boolean): void
  /** Resolves when nothing more can be released for now. */
  idle(): Promise<void>
  counters(): ReleaseCounters
  stop(): Promise<void>
}

export type ReleaseCounters = {
  /** Messages that left the quarantine, and payloads that they became. */
  released: number
  payloads: number
  /** Of the messages: became dead letters, or were kept again for another reason. */
  dead: number
  keptAgain: number
  /** Devices whose messages are being released. */
  devices: number
}

/** A mapping that was put in force, until everything that it newly admits was found. */
type Change = { previous: Mapping; next: Mapping }

const devicesAtOnce = 8
const lookEveryMs = 60_000
/** While nothing changes: what is left waits for the rest of its record. */
const restMs = 100
const eventEveryMs = 1000

export function createQuarantineRelease(
  { spool, mapped, clock, ourTime, emit }: KeptWorkDeps,
  first: Mapping,
): QuarantineRelease {
  const stopping = new AbortController()
  const { signal } = stopping
  const deadBy = createUnmappableCounter({ clock, emit }, { eventEveryMs })
  const counts = { released: 0, payloads: 0, dead: 0, keptAgain: 0 }
  /** Devices that are being released; true where a live message was kept behind since the last barrier. */
  const devices = new Map<string, boolean>()
  let mapping = first
  let opener: { mapping: Mapping; open: () => Mapper } | null = null
  let change: Change | null = null
  let previousChange: Change | null = null
  let working: Promise<void> | null = null
  let wanted = false
  let lookIsDue = false
  /** What arrived by then can be read. */
  let arrivedUntil: EpochMs = 0
  let cancelLook: CancelTimer = () => {}
  const unlisten = spool.listen({ messagesKept: lookLater, storeReopened: start })
  return { isReleasing, addBehind, findReleasable, start, beginSwap, endSwap, idle, counters, stop }

  function isReleasing(device: string): boolean {
    if (devices.has(device)) return true
    return change !== null && change.next.admits(device) && !change.previous.admits(device)
  }

  function addBehind(device: string): void {
    devices.set(device, true)
  }

  function beginSwap(next: Mapping): void {
    previousChange = change
    change = { previous: change?.previous ?? mapping, next }
  }

  function endSwap(succeeded: boolean): void {
    if (succeeded && change !== null) mapping = change.next
    else change = previousChange
    previousChange = null
    start()
  }

  /** The previous mapping may keep a message a moment after the shelves were read; this look finds it. */
  function lookLater(): void {
    if (lookIsDue || signal.aborted) return
    lookIsDue = true
    cancelLook = clock.after(lookEveryMs, () => {
      lookIsDue = false
      start()
    })
  }

  function start(): void {
    if (signal.aborted) return
    wanted = true
    working ??= work()
  }

  /** Ends when nothing is left to do; start() begins it again. */
  async function work(): Promise<void> {
    while (wanted && !signal.aborted) {
      wanted = false
      await retryUntilDone(releaseAll, clock, signal)
    }
    // In the same turn as the last look at `wanted`, so that no start is missed.
    working = null
  }

  async function releaseAll(): Promise<void> {
    const { released, payloads, dead } = counts
    const judged = change
    await barrier()
    await findReleasable()
    if (change === judged) change = null
    const count = devices.size
    while (devices.size > 0 && !signal.aborted) {
      const before = { released: counts.released, devices: devices.size }
      const queue = devices.keys()
      const ends = await Promise.allSettled(Array.from({ length: devicesAtOnce }, () => releaseEach(queue)))
      // All of them have ended when everything is begun again.
      for (const end of ends) if (end.status === 'rejected') throw end.reason
      await endReleases()
      const rests = counts.released === before.released && devices.size === before.devices
      if (rests) await pause(clock, restMs, signal)
    }
    if (counts.released > released)
      emit({
        kind: 'quarantine_released',
        devices: count,
        messages: counts.released - released,
        payloads: counts.payloads - payloads,
        dead: counts.dead - dead,
      })
  }

  async function findReleasable(): Promise<void> {
    for (const shelf of quarantineShelves(spool))
      for await (const { device } of spool.keptDevices(shelf)) {
        if (signal.aborted) return
        if (!devices.has(device) && mapping.admits(device) && (await hasReleasable(device)))
          devices.set(device, false)
      }
  }

  async function hasReleasable(device: string): Promise<boolean> {
    for (const shelf of quarantineShelves(spool))
      for await (const _ of releasableOn(shelf, device)) return true
    return false
  }

  async function* releasableOn(shelf: ShelfName, device: string): AsyncGenerator<QuarantinedEntry> {
    for await (const entry of quarantinedOn({ spool, ourTime }, shelf, device, signal))
      if (entry.message.reason === unknownDevice) yield entry
  }

  /** Several of them share one queue, so that their writes share one fsync. */
  async function releaseEach(queue: Iterator<string>): Promise<void> {
    for (;;) {
      const { done, value: device } = queue.next()
      if (done === true || signal.aborted) return
      if (!mapping.admits(device)) devices.delete(device)
      else await releaseOne(device).catch(ignoreTaken)
    }
  }

  async function releaseOne(device: string): Promise<void> {
    for (const shelf of await shelvesInOrder(device)) {
      const open = await openerNow()
      const isDone = await inSlices({
        entries: releasableOn(shelf, device),
        map: (entries, options) => remapSlice(open, entries, { ...options, arrivedUntil }),
        settle,
        signal,
      })
      // What is on the next shelf is later.
      if (!isDone) return
    }
  }

  /** If the provider of the device has changed meanwhile, its older messages are on another shelf. */
  async function shelvesInOrder(device: string): Promise<ShelfName[]> {
    const heads: { shelf: ShelfName; keptAt: number }[] = []
    for (const shelf of quarantineShelves(spool))
      for await (const { keptAt } of releasableOn(shelf, device)) {
        heads.push({ shelf, keptAt })
        break
      }
    return heads.sort((a, b) => a.keptAt - b.keptAt).map(({ shelf }) => shelf)
  }

  async function openerNow(): Promise<() => Mapper> {
    const present = mapping
    if (opener?.mapping !== present) opener = { mapping: present, open: await mapperFactory(present, spool) }
    return opener.open
  }

  async function settle(slice: SliceResult): Promise<void> {
    const { keptMessages, refused } = slice
    if (!(await waitForRoom(spool, clock, signal))) return
    const { taken, payloads } = await exchangeSlice({ spool, mapped }, slice, ourTime.now())
    counts.released += taken
    counts.payloads += payloads
    counts.dead += refused.length
    counts.keptAgain += keptMessages.length
    for (const one of refused) deadBy.add(one, one.envelope.topic, one.envelope)
  }

  /**
   * Devices of which nothing is left are mapped directly again. Few at a time, so that little arrives
   * meanwhile.
   */
  async function endReleases(): Promise<void> {
    const all = [...devices.keys()]
    for (let from = 0; from < all.length && !signal.aborted; from += devicesAtOnce * 4) {
      const some = all.slice(from, from + devicesAtOnce * 4)
      for (const device of some) devices.set(device, false)
      await barrier()
      await Promise.all(some.map(endRelease))
    }
  }

  async function endRelease(device: string): Promise<void> {
    if (!(await hasReleasable(device)) && devices.get(device) === false) devices.delete(device)
  }

  /** After it, everything that was kept before can be read. */
  async function barrier(): Promise<void> {
    const at = ourTime.now()
    await spool.exchange({ take: [], payloads: [], deadLetters: [], stateChanges: [] })
    arrivedUntil = at
  }

  async function idle(): Promise<void> {
    await working
  }

  function counters(): ReleaseCounters {
    return { ...counts, devices: devices.size }
  }

  async function stop(): Promise<void> {
    stopping.abort()
    cancelLook()
    unlisten()
    await working
  }
}

/** A message of several devices was released with another of them: the next round continues with this one. */
function ignoreTaken(error: unknown): void {
  if (codeOf(error) !== 'SPOOL_ENTRY_GONE') throw error
}
