// sender-worker.ts: a thread for what is sent: hashing, signing, HTTP, reading the answer. One for all
// providers, started with the first submission. All decisions are made in the main thread.
//
//   batch content --> [slot: shared memory] --> hash, sign, POST, read the answer --> Outcome, ledger entries
//
// At full load these steps cost a quarter of the whole pipeline; the main thread, which maps and spools, must
// not wait for them. A slot (body-slots.ts) belongs to the thread until the thread returns it: with the
// answer, or later, when the connection that still holds its bytes is closed.
//
// What can go wrong: the thread is lost (out of memory, a defect). Its attempts end as `interrupted`, which
// holds their batches for one retry, and the next submission starts another thread. A batch that was in
// flight at two losses in a row may be the cause: it is then sent in a thread of its own, one such batch at a
// time, until it is answered. So it interrupts no other batch.
//
// Bounds: two threads; `suspectsMax` batches are known as possible causes, then the oldest one is forgotten.

import PQueue from 'p-queue'
import type { Emit } from '../../domain/event.ts'
import type { BatchId } from '../../domain/ids.ts'
import { createBodySlots } from './body-slots.ts'
import { createThreadLink } from './thread-link.ts'
import type { Attempt, AttemptResult, Transport, TransportOptions } from './transport.ts'

export type SenderWorker = {
  open(options: TransportOptions): Transport
  /** Threads that were lost since the start. */
  threadsLost(): number
  /** Ends the threads. */
  close(): Promise<void>
}

/** Losses in a row with the same batch in flight, after which it is sent apart from the others. */
const lossesToSuspect = 2
const suspectsMax = 1000
const hourMs = 3_600_000

const notSent: Omit<AttemptResult, 'outcome'> = { date: null, written: false, bytesSent: 0, entries: null }

/** `ledger`: each answer comes with the entries of the payloads. */
export function createSenderWorker(
  { emit = () => {} }: { emit?: Emit } = {},
  { ledger = false }: { ledger?: boolean } = {},
): SenderWorker {
  const transports = new Map<number, TransportOptions>()
  const deps = { slots: createBodySlots(), transports }
  const shared = createThreadLink({ ...deps, lost: sharedLost }, { name: 'sender', ledger })
  const apart = createThreadLink({ ...deps, lost }, { name: 'sender-apart', ledger })
  const apartQueue = new PQueue({ concurrency: 1 })
  /** Losses in a row at which each batch was in flight. */
  const losses = new Map<BatchId, number>()
  /** Monotonic times of the losses of the last hour. */
  let lostAtMs: number[] = []
  let lastTransport = 0
  let threadsLost = 0

  return {
    open,
    threadsLost() {
      return threadsLost
    },
    async close() {
      await Promise.all([shared.end(), apart.end()])
    },
  }

  function open(first: TransportOptions): Transport {
    let present = opened(first)
    /** Running submissions by transport. Bound: those that were replaced have one each. */
    const running = new Map([[present, 0]])
    return {
      async submit(attempt) {
        const used = present
        running.set(used, (running.get(used) ?? 0) + 1)
        try {
          return await submit(used, attempt)
        } finally {
          running.set(used, (running.get(used) ?? 0) - 1)
          closeIfReplaced(used)
        }
      },
      renew(options) {
        const former = present
        present = opened(options)
        running.set(present, 0)
        closeIfReplaced(former)
      },
      async close() {
        await Promise.all([...running.keys()].map(closed))
      },
    }

    function closeIfReplaced(transport: number): void {
      if (transport === present || running.get(transport) !== 0) return
      running.delete(transport)
      void closed(transport) // It never rejects.
    }
  }

  function opened(options: TransportOptions): number {
    const transport = (lastTransport += 1)
    transports.set(transport, options)
    shared.opened(transport)
    return transport
  }

  async function closed(transport: number): Promise<void> {
    transports.delete(transport)
    await Promise.all([shared.closed(transport), apart.closed(transport)])
  }

  async function submit(transport: number, attempt: Attempt): Promise<AttemptResult> {
    const { batchId, stop } = attempt
    if (stop.aborted) return { ...notSent, outcome: { kind: 'aborted' } }
    const before = threadsLost
    const suspected = (losses.get(batchId) ?? 0) >= lossesToSuspect
    const result = suspected ? await submitApart(transport, attempt) : await shared.submit(transport, attempt)
    if (result === 'aborted') return { ...notSent, outcome: { kind: 'aborted' } }
    if (result === null) {
      // close() ended the thread.
      if (threadsLost === before) return { ...notSent, outcome: { kind: 'aborted' }, written: true }
      const message = 'the sender thread was lost before the answer came'
      const outcome = { kind: 'interrupted' as const, losses: losses.get(batchId) ?? 1, message }
      return { ...notSent, outcome, written: true }
    }
    losses.delete(batchId)
    if (result.outcome.kind === 'body_changed') emit({ kind: 'body_changed', batchId })
    return result
  }

  /** Alone in a thread, which ends with the attempt. */
  async function submitApart(transport: number, attempt: Attempt): Promise<AttemptResult | 'aborted' | null> {
    return apartQueue.add(async () => {
      if (attempt.stop.aborted) return 'aborted'
      try {
        return await apart.submit(transport, attempt)
      } finally {
        await apart.end()
      }
    })
  }

  function sharedLost(why: string, batchIds: readonly BatchId[]): void {
    // In a row: a batch that was not in flight this time begins anew, unless it is under suspicion already.
    for (const [batchId, count] of losses)
      if (count < lossesToSuspect && !batchIds.includes(batchId)) losses.delete(batchId)
    lost(why, batchIds)
  }

  function lost(why: string, batchIds: readonly BatchId[]): void {
    for (const batchId of batchIds) {
      const count = (losses.get(batchId) ?? 0) + 1
      losses.delete(batchId)
      losses.set(batchId, count)
    }
    for (const batchId of losses.keys()) if (losses.size > suspectsMax) losses.delete(batchId)
    threadsLost += 1
    const nowMs = performance.now()
    lostAtMs = [...lostAtMs.filter((atMs) => atMs > nowMs - hourMs).slice(-99), nowMs]
    emit({ kind: 'sender_thread_lost', why, batches: batchIds.length, losses: lostAtMs.length })
  }
}
