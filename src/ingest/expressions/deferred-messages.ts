// deferred-messages.ts: messages of sources with a JSONata expression are mapped here, after they were acknowledged.
//
//   intake -> shelf of the source -> read in order -> expression, in a thread of its own -> map -> one exchange
//
// Promises
//   Nothing is lost and nothing comes twice: messages leave their shelf in the write that adds what they became.
//   The payloads of a source come in the order of its messages; those of a device whose earlier messages are being
//   released from quarantine go behind those. A source waits for no other one's messages on the disk; all expressions
//   share one thread (expressions.ts).
//   An expression that takes too long, goes too deep or fails costs its own message: a dead letter with the reason.
//
// What can go wrong, and what then happens
//   the process dies        what was not taken is still there, and goes on at the next start
//   the thread cannot start the messages wait on the disk, a condition says why, and it is tried again
//   they come faster        the shelf grows up to spool.deferred_max_bytes; there their acks are held
//   the expression is gone  after a reload, a source without one maps what waits as any other message
//
// Bounds: 32 messages of a source at a time.

import { pause, type Clock } from '../../std/clock.ts'
import type { Emit } from '../../domain/event.ts'
import type { DeadLetter } from '../../domain/dead-letter.ts'
import type { KeptMessage, ShelfName } from '../../domain/message.ts'
import type { MappedPayload } from '../../domain/payload.ts'
import type { MapResult, Mapper, Mapping } from '../../mapping/mapping.ts'
import type { KeptEntry, Spool } from '../../spool/spool.ts'
import { deviceBefore } from '../remap/release-order.ts'
import { mapKept, type Expressions } from './expressions.ts'
import type { ReleaseOrder } from '../types.ts'
import { remapSlice } from '../remap/remap.ts'
import { keptBehind, keptMessageFor, deadLetterFor, messageFrom } from '../remap/kept-message.ts'
import { mapperFactory, waitForRoom, retryUntilDone } from '../remap/release-throttle.ts'
import { createReasonCounter } from '../intake/reason-counter.ts'

export type DeferredSpool = Pick<
  Spool,
  | 'holdReason'
  | 'congested'
  | 'deadLettersFull'
  | 'shelves'
  | 'keptMessages'
  | 'exchange'
  | 'stateEntries'
  | 'listen'
>

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

type Deps = {
  spool: DeferredSpool
  clock: Clock
  emit: Emit
  expressions: Pick<Expressions, 'evaluate' | 'timeouts'>
  releaseOrder: ReleaseOrder
}

/** What became of the messages of one exchange. */
type Became = { payloads: MappedPayload[]; deadLetters: DeadLetter[]; keptMessages: KeptMessage[] }

const messagesAtOnce = 32
const laterMs = 1000
const eventEveryMs = 1000

export function createDeferredMessages(
  { spool, clock, emit, expressions, releaseOrder }: Deps,
  first: { mapping: Mapping; mapper: Mapper },
): DeferredMessages {
  const stopping = new AbortController()
  const { signal } = stopping
  const deadBy = createReasonCounter(clock, { eventEveryMs })
  const counts = { evaluated: 0, payloads: 0, dead: 0, keptAgain: 0 }
  let { mapping, mapper } = first
  /** Of shelves that are worked on; false where nothing came since its loop looked the last time. */
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
      await retryUntilDone(() => workOff(shelf), clock, signal)
    }
    // In the same breath as the last look at it, or a wake could fall between.
    working.delete(shelf)
  }

  async function workOff(shelf: ShelfName): Promise<void> {
    const source = shelf.slice('deferred:'.length)
    while (!signal.aborted) {
      const entries: KeptEntry[] = []
      for await (const entry of spool.keptMessages(shelf, null, { limit: messagesAtOnce }))
        entries.push(entry)
      if (entries.length === 0 || !(await waitForRoom(spool, clock, signal))) return
      const done = mapper.expressions.has(source) ? await evaluateAll(source, entries) : await mapAll(entries)
      if (done === 0) await pause(clock, laterMs, signal)
    }
  }

  /** How many were taken, from the first on; null where another mapping came into force meanwhile. */
  async function evaluateAll(source: string, entries: readonly KeptEntry[]): Promise<number | null> {
    const now = mapper
    const messages = entries.map(({ message }) => messageFrom(message.envelope))
    const answers = await Promise.all(messages.map((message) => expressions.evaluate(now, source, message)))
    if (mapper !== now) return null
    const became: Became = { payloads: [], deadLetters: [], keptMessages: [] }
    let done = 0
    for (const [index, { message }] of entries.entries()) {
      const [own, answer] = [messages[index], answers[index]]
      // Nothing was evaluated, so those behind it wait as well.
      if (own === undefined || answer === undefined || answer === 'later') break
      become(mapKept(now, own, answer), message, became)
      done += 1
    }
    await give(entries.slice(0, done), became)
    return done
  }

  /** A source whose expression was taken away maps as any other. */
  async function mapAll(entries: readonly KeptEntry[]): Promise<number | null> {
    const now = mapping
    const open = await mapperFactory(now, spool)
    if (mapping !== now) return null
    const run = entries.map(({ id, message }) => ({ id, envelope: message.envelope }))
    const again = remapSlice(open, run, { more: true, mayGrow: false, releaseOrder })
    if (again === null) return 0
    const at = clock.now()
    const letters = again.refused.map((one) => deadLetterFor(one, one.envelope, at))
    await give(entries.slice(0, again.entries), {
      payloads: again.payloads,
      deadLetters: letters,
      keptMessages: again.keep,
    })
    return again.entries
  }

  function become(result: MapResult, { envelope }: KeptMessage, became: Became): void {
    const before = deviceBefore(result, releaseOrder)
    if (before !== null) {
      releaseOrder.addBehind(before.device)
      became.keptMessages.push(keptBehind(before, envelope))
      return
    }
    switch (result.kind) {
      case 'payloads':
        became.payloads.push(...result.payloads)
        return
      case 'quarantined':
      case 'deferred':
        became.keptMessages.push(keptMessageFor(result, envelope))
        return
      case 'unmappable': {
        became.deadLetters.push(deadLetterFor(result, envelope, clock.now()))
        const { source, reason, detail } = result
        if (deadBy.add(source, reason))
          emit({ kind: 'message_unmappable', source, topic: envelope.topic, reason, detail })
        return
      }
      // The config allows no source with an expression that collects parts.
      case 'part':
      case 'ignored':
      default:
        return
    }
  }

  async function give(entries: readonly KeptEntry[], became: Became): Promise<void> {
    if (entries.length === 0) return
    await spool.exchange({ take: entries.map(({ id }) => id), ...became, stateChanges: [] })
    counts.evaluated += entries.length
    counts.payloads += became.payloads.length
    counts.dead += became.deadLetters.length
    counts.keptAgain += became.keptMessages.length
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
