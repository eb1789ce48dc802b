// deferred-messages.ts: maps the messages of sources with a JSONata expression after they were acknowledged.
//
//   intake -> shelf of the source -> read in order -> expression, in its own thread -> map -> one exchange
//
// Promises
//   Nothing is lost and nothing is sent twice: messages leave their shelf in the write that adds their
//   results.
//   The payloads of a source keep the order of its messages; those of a device whose earlier messages are
//   being released from quarantine are kept behind them. No source waits for the disk work of another; all
//   expressions share one thread (expressions.ts).
//   An expression that takes too long, nests too deep or fails costs only its own message: a dead letter with
//   the reason.
//
// What can go wrong, and what then happens
//   the process dies         what was not taken is still there; the next start continues
//   the thread cannot start  the messages wait on the disk, a condition says why, and it is tried again
//   more arrive than leave   the shelf grows up to spool.deferred_max_bytes; then their acks are held
//   the expression is gone   after a reload, a source without one maps the waiting messages like any other
//
// Bounds: 32 messages of a source at a time.

import { pause, type Clock } from '../../std/clock.ts'
import { correctedEnvelope, type OurTime } from '../../domain/arrival.ts'
import type { Emit } from '../../domain/event.ts'
import type { ShelfName } from '../../domain/message.ts'
import type { Mapper, Mapping } from '../../mapping/mapping.ts'
import { createUnmappableCounter } from '../intake/unmappable-counter.ts'
import { messageFrom } from '../remap/kept-message.ts'
import { mapperFactory, retryUntilDone, waitForRoom } from '../remap/release-throttle.ts'
import { mapKept, remapSlice } from '../remap/remap.ts'
import {
  addResult,
  exchangeSlice,
  type SliceTarget,
  newSliceResult,
  type RemapEntry,
  type SliceResult,
} from '../remap/slice-result.ts'
import type { KeptSpool, ReleaseOrder } from '../types.ts'
import type { Expressions } from './expressions.ts'

export type DeferredMessages = {
  start(): void
  /** Another mapping is in force; `mapper` is the one that maps what arrives. */
  swap(mapping: Mapping, mapper: Mapper): void
  counters(): DeferredCounters
  /** Resolves when no shelf has a message left that can be mapped now. */
  idle(): Promise<void>
  stop(): Promise<void>
}

export type DeferredCounters = {
  /** Messages that were evaluated and left their shelf, and what became of them. */
  evaluated: number
  payloads: number
  dead: number
  keptAgain: number
  /** Expressions that took too long. */
  timeouts: number
}

type Deps = Pick<SliceTarget, 'mapped'> & {
  spool: KeptSpool
  clock: Clock
  ourTime: OurTime
  emit: Emit
  expressions: Pick<Expressions, 'evaluate' | 'timeouts'>
  releaseOrder: ReleaseOrder
}

const messagesAtOnce = 32
/** Before another attempt where nothing could be mapped. */
const retryMs = 1000
const eventEveryMs = 1000

export function createDeferredMessages(
  { spool, mapped, clock, ourTime, emit, expressions, releaseOrder }: Deps,
  first: { mapping: Mapping; mapper: Mapper },
): DeferredMessages {
  const stopping = new AbortController()
  const { signal } = stopping
  const deadBy = createUnmappableCounter({ clock, emit }, { eventEveryMs })
  const counts = { evaluated: 0, payloads: 0, dead: 0, keptAgain: 0 }
  let { mapping, mapper } = first
  /** Shelves with a running loop; true where messages were kept since the loop last read the shelf. */
  const working = new Map<ShelfName, boolean>()
  const loops = new Set<Promise<void>>()
  const unlisten = spool.listen({ messagesKept: start, storeReopened: start })
  return { start, swap, counters, idle, stop }

  function start(): void {
    if (signal.aborted) return
    for (const { shelf, messages } of spool.shelves()) {
      if (!shelf.startsWith('deferred:') || messages === 0) continue
      if (working.has(shelf)) working.set(shelf, true)
      else begin(shelf)
    }
  }

  function begin(shelf: ShelfName): void {
    working.set(shelf, true)
    const loop = work(shelf).finally(() => loops.delete(loop))
    loops.add(loop)
  }

  /** Ends when the shelf is empty. */
  async function work(shelf: ShelfName): Promise<void> {
    while (working.get(shelf) === true && !signal.aborted) {
      working.set(shelf, false)
      await retryUntilDone(() => mapShelf(shelf), clock, signal)
    }
    // In the same turn as the last look at it, so that no start is missed.
    working.delete(shelf)
  }

  async function mapShelf(shelf: ShelfName): Promise<void> {
    const source = shelf.slice('deferred:'.length)
    while (!signal.aborted) {
      const entries: RemapEntry[] = []
      for await (const { id, message } of spool.keptMessages(shelf, null, { limit: messagesAtOnce }))
        entries.push({ id, envelope: correctedEnvelope(message.envelope, ourTime) })
      if (entries.length === 0 || !(await waitForRoom(spool, clock, signal))) return
      const evaluates = mapper.expressions.has(source)
      const slice = evaluates ? await evaluateAll(source, entries) : await mapAll(entries)
      if (slice === 'superseded') continue
      if (slice === null || slice.entries === 0) await pause(clock, retryMs, signal)
      else await settle(slice)
    }
  }

  async function evaluateAll(
    source: string,
    entries: readonly RemapEntry[],
  ): Promise<SliceResult | 'superseded'> {
    const now = mapper
    const messages = entries.map(({ envelope }) => messageFrom(envelope))
    const answers = await Promise.all(messages.map((message) => expressions.evaluate(now, source, message)))
    if (mapper !== now) return 'superseded'
    const slice = newSliceResult()
    for (const [index, entry] of entries.entries()) {
      const [message, answer] = [messages[index], answers[index]]
      // Nothing was evaluated, so the messages behind it wait as well.
      if (message === undefined || answer === undefined || answer === 'later') break
      // The config allows no source with an expression that collects parts.
      addResult(slice, mapKept(now, message, answer), entry, releaseOrder)
    }
    return slice
  }

  /** A source whose expression was removed maps like any other. */
  async function mapAll(entries: readonly RemapEntry[]): Promise<SliceResult | null | 'superseded'> {
    const now = mapping
    const open = await mapperFactory(now, spool)
    if (mapping !== now) return 'superseded'
    return remapSlice(open, entries, { more: true, mayGrow: false, releaseOrder })
  }

  async function settle(slice: SliceResult): Promise<void> {
    await exchangeSlice({ spool, mapped }, slice, clock.now())
    counts.evaluated += slice.entries
    counts.payloads += slice.payloads.length
    counts.dead += slice.refused.length
    counts.keptAgain += slice.keptMessages.length
    for (const one of slice.refused) deadBy.add(one, one.envelope.topic, one.envelope)
  }

  function swap(nextMapping: Mapping, nextMapper: Mapper): void {
    mapping = nextMapping
    mapper = nextMapper
    start()
  }

  function counters(): DeferredCounters {
    return { ...counts, timeouts: expressions.timeouts() }
  }

  async function idle(): Promise<void> {
    while (loops.size > 0) await Promise.all(loops)
  }

  async function stop(): Promise<void> {
    stopping.abort()
    unlisten()
    await idle()
  }
}
