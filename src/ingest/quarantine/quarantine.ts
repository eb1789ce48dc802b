// quarantine.ts: messages that were quarantined because nobody knew their device are mapped once it is known.
//
//   a new mapping -> begin: live messages of devices that it newly admits are put behind those that are kept
//                 -> look:  which devices of the shelves does it admit? those are released, all others are not
//                 -> each device, in order of arrival: read, map (remap-slice.ts), one exchange, until nothing is left
//                 -> barrier, read once more, nothing came since: the device's live messages go the straight way
//
// Promises
//   Nothing is lost and nothing comes twice: a run is taken off its shelf in the write that adds what it became.
//   The payloads of a device come in the order in which its messages arrived, those that arrive meanwhile included:
//   whatever they would become, they stand behind (release-order.ts). Values that make one payload together stay together.
//   What cannot be mapped becomes a dead letter in the same write. What is kept for its clock stays where it is:
//   only a person can judge it.
//
// What can go wrong, and what then happens
//   the process dies     the next start looks again; what was not taken is still there
//   the store is lost    the work goes on when it is open again
//   the spool is full    the work waits; the devices' messages go on being quarantined, within the limit of that
//   a device never rests  its messages go on taking the way over the shelf, in order, until there is a gap
//   a device is unlisted again meanwhile: its messages are kept anew, and stay
//   an expression cannot be evaluated for now: the device's messages wait, those of others go on
//
// Bounds: a run is 100 messages (kept-slices.ts), eight devices at a time, one look a minute at the shelves.

import { pause, type CancelTimer, type Clock, type EpochMs } from '../../std/clock.ts'
import type { Emit } from '../../domain/event.ts'
import type { ShelfName } from '../../domain/message.ts'
import type { Mapper, Mapping } from '../../mapping/mapping.ts'
import type { KeptEntry, Spool } from '../../spool/spool.ts'
import type { ReleaseOrder } from '../types.ts'
import { evaluated, type Expressions } from '../expressions/expressions.ts'
import { remapSlice, type Remapped, type RemapEntry } from '../remap/remap.ts'
import { unknownDevice } from '../remap/kept-message.ts'
import { storeLostFault, mapperFactory, waitForRoom, retryUntilDone } from '../remap/release-throttle.ts'
import { settleSlice, inSlices } from '../remap/kept-slices.ts'
import { createReasonCounter } from '../intake/reason-counter.ts'

export type ReleaseSpool = Pick<
  Spool,
  | 'holdReason'
  | 'congested'
  | 'deadLettersFull'
  | 'shelves'
  | 'keptDevices'
  | 'keptMessages'
  | 'exchange'
  | 'stateEntries'
  | 'listen'
>

export type QuarantineRelease = ReleaseOrder & {
  /** Before the first message: finds what can go, so that live messages come behind it. */
  findReleasable(): Promise<void>
  /** Begins the work; also where something may have changed. */
  start(): void
  /** Before `next` is put in force: from here on the messages of devices that it newly admits go behind. */
  beginSwap(next: Mapping): void
  /** `next` is in force; or it is not, and the one before stays. */
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
  /** Of the messages: became dead letters, or were kept anew for another reason. */
  dead: number
  keptAgain: number
  /** Devices whose messages are on their way out. */
  devices: number
}

type Deps = { spool: ReleaseSpool; clock: Clock; emit: Emit; expressions: Pick<Expressions, 'evaluate'> }

/** A mapping that is put in force, until all that it newly admits was found. */
type Change = { previous: Mapping; next: Mapping }

const devicesAtOnce = 8
const lookEveryMs = 60_000
/** When nothing moves: what is there waits for the rest of its record, or for its expression. */
const restMs = 100
const eventEveryMs = 1000

export function createQuarantineRelease(
  { spool, clock, emit, expressions }: Deps,
  first: Mapping,
): QuarantineRelease {
  const stopping = new AbortController()
  const { signal } = stopping
  const deadBy = createReasonCounter(clock, { eventEveryMs })
  const counts = { released: 0, payloads: 0, dead: 0, keptAgain: 0 }
  /** Devices on their way out; true where a live message was put behind since the last barrier. */
  const devices = new Map<string, boolean>()
  let mapping = first
  let opener: { mapping: Mapping; open: () => Mapper } | null = null
  let change: Change | null = null
  let before: Change | null = null
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
    before = change
    change = { previous: change?.previous ?? mapping, next }
  }

  function endSwap(succeeded: boolean): void {
    if (succeeded && change !== null) mapping = change.next
    else change = before
    before = null
    start()
  }

  /** What the mapping before kept a moment too late to be found is found a little later. */
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
    // In the same breath as the last look at `wanted`, or a start could fall between.
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
      // Nobody may be at a device when all is begun again.
      for (const end of ends) if (end.status === 'rejected') throw end.reason
      await letGo()
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
    for (const shelf of quarantines())
      for await (const { device } of spool.keptDevices(shelf)) {
        if (signal.aborted) return
        if (!devices.has(device) && mapping.admits(device) && (await hasReleasable(device)))
          devices.set(device, false)
      }
  }

  function quarantines(): ShelfName[] {
    // A lost store shows no shelves, which must not look like empty ones.
    if (spool.holdReason === 'store_lost') throw storeLostFault()
    return spool
      .shelves()
      .filter(({ shelf, messages }) => shelf.startsWith('quarantine:') && messages > 0)
      .map(({ shelf }) => shelf)
  }

  async function hasReleasable(device: string): Promise<boolean> {
    for (const shelf of quarantines()) for await (const _ of releasableOn(shelf, device)) return true
    return false
  }

  async function* releasableOn(shelf: ShelfName, device: string): AsyncGenerator<RemapEntry & KeptEntry> {
    for await (const entry of spool.keptMessages(shelf, device, { limit: Infinity })) {
      if (signal.aborted) return
      const { message } = entry
      if (message.reason === unknownDevice) yield { ...entry, envelope: message.envelope }
    }
  }

  /** Several at once go through one queue: the disk is waited for together. */
  async function releaseEach(queue: Iterator<string>): Promise<void> {
    for (;;) {
      const { done, value: device } = queue.next()
      if (done === true || signal.aborted) return
      if (mapping.admits(device)) await releaseOne(device)
      else devices.delete(device)
    }
  }

  async function releaseOne(device: string): Promise<void> {
    for (const shelf of await inOrder(device)) {
      const open = await openerNow()
      const stalled = new AbortController()
      const isDone = await inSlices({
        entries: releasableOn(shelf, device),
        async map(run, options) {
          const values = await evaluated(expressions, open(), run)
          if (values !== null) return remapSlice(open, run, { ...options, arrivedUntil, evaluated: values })
          stalled.abort()
          return null
        },
        settle,
        signal: AbortSignal.any([signal, stalled.signal]),
      })
      // What stands on the next shelf is later.
      if (!isDone) return
    }
  }

  /** Its provider may have changed meanwhile: then the older messages stand on another shelf. */
  async function inOrder(device: string): Promise<ShelfName[]> {
    const heads: { shelf: ShelfName; keptAt: number }[] = []
    for (const shelf of quarantines())
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

  async function settle(again: Remapped): Promise<void> {
    const { payloads, keep, refused } = again
    if (!(await waitForRoom(spool, clock, signal))) return
    counts.released += await settleSlice(spool, again, clock.now())
    counts.payloads += payloads.length
    counts.dead += refused.length
    counts.keptAgain += keep.length
    for (const { source, reason, detail, envelope } of refused)
      if (deadBy.add(source, reason))
        emit({ kind: 'message_unmappable', source, topic: envelope.topic, reason, detail })
  }

  /** Devices of which nothing is left go the straight way again. Few at a time, so that little comes meanwhile. */
  async function letGo(): Promise<void> {
    const all = [...devices.keys()]
    for (let from = 0; from < all.length && !signal.aborted; from += devicesAtOnce * 4) {
      const some = all.slice(from, from + devicesAtOnce * 4)
      for (const device of some) devices.set(device, false)
      await barrier()
      await Promise.all(some.map(letGoOf))
    }
  }

  /** Behind it everything can be read that was kept before. */
  async function barrier(): Promise<void> {
    const at = clock.now()
    await spool.exchange({ take: [], payloads: [], deadLetters: [], stateChanges: [] })
    arrivedUntil = at
  }

  async function letGoOf(device: string): Promise<void> {
    if (!(await hasReleasable(device)) && devices.get(device) === false) devices.delete(device)
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
