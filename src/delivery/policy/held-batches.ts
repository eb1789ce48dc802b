// held-batches.ts: the sealed batches of one provider that wait because of their own answers. They take no
// place among the batches in hand, so any number of them delays nothing else.
//
// At most one of them is in a submission, and beside other work they get a tenth of the time of one place:
// thousands that become ready at once (an outage ends, a restart, SIGHUP) are retried one after the other,
// and time-outs of 30 s cost the others little even with one place. Each failed try of a batch doubles its
// wait.
//
// Bound: the disk. A held batch costs the memory of its claim and of one entry here.

import type { Clock, EpochMs } from '../../std/clock.ts'
import type { HeldReason } from '../../domain/held.ts'
import type { InFlightBatch } from './types.ts'

/** The batches of one reason. */
export type HeldGroup = {
  batches: number
  payloads: number
  oldestAt: EpochMs
  /** The one that was held last. */
  latest: InFlightBatch
}

export type HeldBatches = {
  size(): number
  /** They had their share of the time: nothing of them goes while other work is due. */
  resting(): boolean
  /** The one that may be submitted now: the first that became ready. Null while another one is running. */
  nextReady(): InFlightBatch | null
  /** The one that is ready first, whether now or later, and was not excluded. */
  first(): InFlightBatch | null
  /** Monotonic; null where none waits or one is running. */
  dueAt(): number | null
  /** In no order. */
  all(): Iterable<InFlightBatch>
  /** Null where no batch is held for the reason. */
  group(reason: HeldReason): HeldGroup | null
}

export type HeldBatchesStore = HeldBatches & {
  has(batch: InFlightBatch): boolean
  /** The batch waits until its `readyAtMs`; call it again when that changes. */
  put(batch: InFlightBatch, reason: HeldReason): void
  remove(batch: InFlightBatch): void
  began(batch: InFlightBatch): void
  ended(batch: InFlightBatch): void
}

/** Times its own duration that a submission is followed by none, while other work is due. */
const restFactor = 9

/** An entry of the heap; it is void when the batch is gone, is running, or has another `readyAtMs`. */
type Entry = { batch: InFlightBatch; atMs: number }

export function createHeldBatches({ clock }: { clock: Clock }): HeldBatchesStore {
  const reasons = new Map<InFlightBatch, HeldReason>()
  /** In the order in which they were held, so the first is the oldest. */
  const byReason = new Map<HeldReason, Set<InFlightBatch>>()
  const payloads = new Map<HeldReason, number>()
  const latest = new Map<HeldReason, InFlightBatch>()
  let heap: Entry[] = []
  /** In a submission, or in the hands of an operator's command. */
  const running = new Set<InFlightBatch>()
  let beganAtMs = clock.monotonic()
  let restsUntilMs = beganAtMs

  return {
    size() {
      return reasons.size
    },
    resting() {
      return clock.monotonic() < restsUntilMs
    },
    nextReady() {
      if (running.size > 0) return null
      const batch = first()
      return batch !== null && batch.readyAtMs <= clock.monotonic() ? batch : null
    },
    first,
    dueAt: () => (running.size === 0 ? (first()?.readyAtMs ?? null) : null),
    all: () => reasons.keys(),
    group(reason) {
      const [oldest] = byReason.get(reason) ?? []
      if (oldest === undefined) return null
      const last = latest.get(reason) ?? oldest
      return {
        batches: byReason.get(reason)?.size ?? 0,
        payloads: payloads.get(reason) ?? 0,
        oldestAt: oldest.held?.since ?? clock.now(),
        latest: reasons.get(last) === reason ? last : oldest,
      }
    },
    has: (batch) => reasons.has(batch),
    put,
    remove,
    began(batch) {
      if (!reasons.has(batch)) return
      running.add(batch)
      beganAtMs = clock.monotonic()
    },
    ended,
  }

  function ended(batch: InFlightBatch): void {
    if (!running.delete(batch)) return
    const nowMs = clock.monotonic()
    restsUntilMs = nowMs + restFactor * (nowMs - beganAtMs)
  }

  function put(batch: InFlightBatch, reason: HeldReason): void {
    const before = reasons.get(batch)
    latest.set(reason, batch)
    if (before !== reason) {
      if (before !== undefined) leaveReason(batch, before)
      reasons.set(batch, reason)
      const members = byReason.get(reason) ?? new Set()
      byReason.set(reason, members.add(batch))
      payloads.set(reason, (payloads.get(reason) ?? 0) + batch.batch.payloads)
    }
    if (heap.length > 64 && heap.length > 2 * reasons.size) heap = heap.filter(isCurrent).toSorted(byTime)
    push({ batch, atMs: batch.readyAtMs })
  }

  function remove(batch: InFlightBatch): void {
    const reason = reasons.get(batch)
    if (reason === undefined) return
    reasons.delete(batch)
    leaveReason(batch, reason)
    ended(batch)
  }

  function leaveReason(batch: InFlightBatch, reason: HeldReason): void {
    byReason.get(reason)?.delete(batch)
    payloads.set(reason, (payloads.get(reason) ?? 0) - batch.batch.payloads)
  }

  function isCurrent({ batch, atMs }: Entry): boolean {
    return reasons.has(batch) && batch.readyAtMs === atMs && !batch.running
  }

  function first(): InFlightBatch | null {
    for (let top = heap[0]; top !== undefined; top = heap[0]) {
      if (isCurrent(top)) return top.batch
      pop()
    }
    return null
  }

  function push(entry: Entry): void {
    heap.push(entry)
    let at = heap.length - 1
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (heap[parent]!.atMs <= entry.atMs) break
      heap[at] = heap[parent]!
      at = parent
    }
    heap[at] = entry
  }

  function pop(): void {
    const last = heap.pop()
    if (last === undefined || heap.length === 0) return
    let at = 0
    for (;;) {
      let child = 2 * at + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && heap[child + 1]!.atMs < heap[child]!.atMs) child += 1
      if (heap[child]!.atMs >= last.atMs) break
      heap[at] = heap[child]!
      at = child
    }
    heap[at] = last
  }
}

function byTime(one: Entry, other: Entry): number {
  return one.atMs - other.atMs
}
