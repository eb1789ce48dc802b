// take-back.ts: stores what comes back from the queue of the engine where it was parked. The engine delivers
// it in the order in which it was parked; each entry waits here, unacknowledged, until it is old enough. All
// have the same delay, so the first one is always the next.
//
// A payload goes to the end of its live lane, with its bytes and its attempts; a message goes back to its
// shelf, and everything that releases messages applies to it. The dedup window gets the id of the entry, in
// the same write, so an entry that the engine delivers again is known. It is not asked for the payload
// itself: the window knows that from before it was parked.
//
// In an outage, and while the spool takes nothing in, entries wait. Bound: the room of the partition.

import type { Clock } from '../../std/clock.ts'
import { assertNever } from '../../std/assert.ts'
import type { Ack } from '../../spool/spool.ts'
import type { Partition } from '../message-sources/types.ts'
import { readParked, type ParkedEntry } from './parked-entry.ts'
import type { CustodySpool } from './types.ts'

export type TakeBack = {
  add(partition: Partition, body: Buffer, ack: Ack): void
  /** Stores what is due. */
  storeDue(): void
  /** Entries that wait, and those that were stored and are not durable yet. */
  waiting(): number
  isQuiet(): boolean
  /** Those that wait are given back with their partition. */
  forget(partition: Partition): void
  counters(): { takenBack: number; parkedDuplicates: number }
}

type Waiting = { partition: Partition; entry: ParkedEntry | string; body: Buffer; ack: Ack; dueMs: number }

type Deps = {
  spool: Pick<
    CustodySpool,
    'holdReason' | 'congested' | 'append' | 'addDeadLetter' | 'addWindowKey' | 'keepMessage' | 'endMessage'
  >
  clock: Clock
  /** Messages are on the shelves again. */
  releaseAgain: () => void
}

export function createTakeBack(
  { spool, clock, releaseAgain }: Deps,
  { parkForMs }: { parkForMs: number },
): TakeBack {
  let waiting: Waiting[] = []
  let storing = 0
  const counters = { takenBack: 0, parkedDuplicates: 0 }

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
        if (dueMs > now || spool.holdReason !== null || spool.congested) break
        storing += 1
        if (store(entry, body)) kept += 1
        spool.endMessage((fault) => {
          storing -= 1
          ack(fault)
        })
      }
      stored += 1
    }
    if (stored > 0) waiting = waiting.slice(stored)
    if (kept > 0) releaseAgain()
  }

  /** Whether a message was put on a shelf. */
  function store(entry: ParkedEntry | string, body: Buffer): boolean {
    if (typeof entry === 'string') {
      addUnreadable(entry, body)
      return false
    }
    if (spool.addWindowKey(entry.id) === 'duplicate') {
      counters.parkedDuplicates += 1
      return false
    }
    counters.takenBack += 1
    switch (entry.kind) {
      case 'payload':
        spool.append(entry.payload)
        return false
      case 'message':
        spool.keepMessage(entry.message)
        return true
      default:
        return assertNever(entry)
    }
  }

  function addUnreadable(why: string, body: Buffer): void {
    spool.addDeadLetter({
      stage: 'mapping',
      at: clock.now(),
      reason: 'BAD_PARKED_ENTRY',
      detail: `An entry of the queue of parked entries cannot be read: ${why}.`,
      provider: null,
      device: null,
      envelope: {
        topic: 'parked',
        bytes: body.toString('base64'),
        qos: 1,
        retain: false,
        dup: false,
        clientId: '',
        userName: null,
        certificateName: null,
        arrivedAt: clock.now(),
        source: null,
      },
      payload: null,
      payloadId: null,
      batchId: null,
      requestId: null,
      failure: null,
    })
  }

  return {
    add,
    storeDue,
    waiting: () => waiting.length,
    isQuiet: () => storing === 0,
    forget(partition) {
      waiting = waiting.filter((one) => one.partition !== partition)
    },
    counters: () => counters,
  }
}
