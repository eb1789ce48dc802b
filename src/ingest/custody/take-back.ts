// take-back.ts: stores what comes back from the queue of the engine where it was parked. The engine delivers
// it in the order in which it was parked; each entry waits here, unacknowledged, until it is old enough. All
// have the same delay, so the first one is always the next.
//
// A payload goes to the end of its live lane, with its bytes and its attempts; a message goes back to its
// shelf, and everything that releases messages applies to it. The dedup window gets the id of the entry, in
// the same write, so an entry that the engine delivers again is known. It is not asked for the payload
// itself: the window knows that from before it was parked.
//
// An entry that cannot be read, of another version or of another program, becomes a dead letter with all its
// bytes (BAD_PARKED_ENTRY); a payload of a provider that is not in the config one that can be requeued when
// it is (PROVIDER_NOT_IN_CONFIG). Both are counted and reported, and those behind them come.
//
// In an outage, and while the spool takes nothing in, entries wait. Bound: the room of the partition.

import type { Clock } from '../../std/clock.ts'
import { assertNever } from '../../std/assert.ts'
import { quote } from '../../std/quote.ts'
import type { DeadLetter } from '../../domain/dead-letter.ts'
import type { Emit } from '../../domain/event.ts'
import type { ProviderName } from '../../domain/ids.ts'
import { envelopeOf, noSender } from '../../domain/message.ts'
import type { MappedPayload } from '../../domain/payload.ts'
import type { Ack } from '../../spool/spool.ts'
import type { Partition } from '../message-sources/types.ts'
import { readParked, type ParkedEntry } from './parked-entry.ts'
import type { CustodyDelivery, CustodySpool } from './types.ts'

export type TakeBack = {
  add(partition: Partition, body: Buffer, ack: Ack): void
  /** Stores what is due. */
  storeDue(): void
  /** Entries that wait for their time. */
  waiting(): number
  counters(): { takenBack: number; parkedDuplicates: number; refusedEntries: number }
}

type Waiting = { partition: Partition; entry: ParkedEntry | string; body: Buffer; ack: Ack; dueMs: number }

/** Of the last one, and how many. */
type Refusal = { reason: 'BAD_PARKED_ENTRY' | 'PROVIDER_NOT_IN_CONFIG'; why: string; entries: number }

type Deps = {
  spool: Pick<
    CustodySpool,
    'holdReason' | 'congested' | 'append' | 'addDeadLetter' | 'addWindowKey' | 'keepMessage' | 'endMessage'
  >
  clock: Clock
  emit: Emit
  delivery: Pick<CustodyDelivery, 'providers'>
  /** Messages are on the shelves again. */
  releaseAgain: () => void
}

export function createTakeBack(
  { spool, clock, emit, delivery, releaseAgain }: Deps,
  { parkForMs }: { parkForMs: number },
): TakeBack {
  let waiting: Waiting[] = []
  const counters = { takenBack: 0, parkedDuplicates: 0, refusedEntries: 0 }
  let refusal: Refusal | null = null

  function add(partition: Partition, bytes: Buffer, ack: Ack): void {
    // A copy: the source uses its bytes again.
    const body = Buffer.from(bytes)
    const entry = readParked(body)
    const parkedAgoMs = typeof entry === 'string' ? parkForMs : Math.max(0, clock.now() - entry.parkedAt)
    const dueMs = clock.monotonic() + Math.max(0, parkForMs - parkedAgoMs)
    waiting.push({ partition, entry, body, ack, dueMs })
  }

  function storeDue(): void {
    const now = clock.monotonic()
    let stored = 0
    let kept = 0
    for (const { partition, entry, body, ack, dueMs } of waiting) {
      if (partition.assigned) {
        if (dueMs > now || spool.holdReason() !== null || spool.congested()) break
        if (store(entry, body)) kept += 1
        spool.endMessage(ack)
      }
      stored += 1
    }
    if (stored > 0) waiting = waiting.slice(stored)
    if (kept > 0) releaseAgain()
    if (refusal !== null) emit({ kind: 'custody_entries_refused', ...refusal })
    refusal = null
  }

  /** Whether a message was put on a shelf. */
  function store(entry: ParkedEntry | string, body: Buffer): boolean {
    if (typeof entry === 'string') {
      refuse('BAD_PARKED_ENTRY', `An entry of the queue of parked entries cannot be read: ${entry}.`)
      spool.addDeadLetter(unreadable(body))
      return false
    }
    if (spool.addWindowKey(entry.id) === 'duplicate') {
      counters.parkedDuplicates += 1
      return false
    }
    counters.takenBack += 1
    switch (entry.kind) {
      case 'payload':
        if (isKnown(entry.payload.provider)) spool.append(entry.payload)
        else {
          refuse(
            'PROVIDER_NOT_IN_CONFIG',
            `Its provider ${quote(entry.payload.provider, 64)} is not in the config.`,
          )
          spool.addDeadLetter(withoutProvider(entry.payload))
        }
        return false
      case 'message':
        spool.keepMessage(entry.message)
        return true
      default:
        return assertNever(entry)
    }
  }

  function isKnown(provider: ProviderName): boolean {
    return delivery.providers().some(({ name }) => name === provider)
  }

  function refuse(reason: Refusal['reason'], why: string): void {
    counters.refusedEntries += 1
    refusal = { reason, why, entries: (refusal?.entries ?? 0) + 1 }
  }

  function newDeadLetter(changes: Partial<DeadLetter>): DeadLetter {
    const { reason, why } = refusal!
    return {
      stage: 'mapping',
      at: clock.now(),
      reason,
      detail: why,
      provider: null,
      device: null,
      envelope: null,
      payload: null,
      payloadId: null,
      batchId: null,
      requestId: null,
      failure: null,
      ...changes,
    }
  }

  /** The entry as a message of the topic `parked`, with all its bytes. */
  function unreadable(body: Buffer): DeadLetter {
    const now = clock.now()
    const message = { topic: 'parked', bytes: body, qos: 1, retain: false, dup: false } as const
    return newDeadLetter({ envelope: envelopeOf({ ...message, sender: noSender, arrivedAt: now }, null) })
  }

  function withoutProvider({ provider, payloadId, json }: MappedPayload): DeadLetter {
    const payload: unknown = JSON.parse(json)
    return newDeadLetter({ stage: 'delivery', provider, payload, payloadId })
  }

  return {
    add,
    storeDue,
    waiting: () => waiting.length,
    counters: () => counters,
  }
}
