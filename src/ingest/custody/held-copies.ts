// held-copies.ts: copies batches that are held, and that cannot be parked, to the engine. The service may
// have processed them, so they stay here under their batchId until an answer or a person resolves them. That
// can take for ever: a payload that is refused becomes a dead letter only when something else is accepted,
// and with a full window nothing comes any more that could be. So no message waits for them: the copy is for
// the case that the disk is lost, as that of a dead letter.
//
// What was copied is known in memory alone. After a restart the batches are copied again where messages wait
// for them; the import of copies knows what it has, by payloadId.
//
// Bound: batches of the spool, which are held in it.

import type { Clock } from '../../std/clock.ts'
import type { BatchId } from '../../domain/ids.ts'
import type { Batch } from '../../spool/spool.ts'
import type { EngineQueues } from './engine-queues.ts'
import type { CustodyDeps, CustodySpool } from './types.ts'

export type HeldCopies = {
  /** Batches that have been held for `olderThanMs`. Rejects where the engine does not confirm. */
  copy(olderThanMs: number): Promise<void>
  isCopied(batchId: BatchId): boolean
  /** Payloads that were copied, since the start. */
  copied(): number
}

type Deps = {
  spool: Pick<CustodySpool, 'batches' | 'load'>
  queues: Pick<EngineQueues, 'store'>
  lineOf: CustodyDeps['heldLineOf']
  clock: Clock
  signal: AbortSignal
}

export function createHeldCopies({ spool, queues, lineOf, clock, signal }: Deps): HeldCopies {
  let known = new Set<BatchId>()
  let copied = 0
  return { copy, isCopied: (batchId) => known.has(batchId), copied: () => copied }

  async function copy(olderThanMs: number): Promise<void> {
    const batches = spool.batches()
    known = new Set(batches.flatMap(({ batchId }) => (known.has(batchId) ? batchId : [])))
    for (const batch of batches) {
      signal.throwIfAborted()
      const { held, batchId } = batch
      // A time in the future: the clock was set back since.
      if (held === null || known.has(batchId) || Math.abs(clock.now() - held.since) < olderThanMs) continue
      await copyBatch(batch)
    }
  }

  async function copyBatch(batch: Batch): Promise<void> {
    const { batchId, provider, held } = batch
    const loaded = await spool.load(batch)
    // What is left of a damaged one has other batchIds: the next round finds them.
    if (loaded.kind === 'replaced' || held === null) return
    const { content } = loaded
    const attempts = content.attempts()
    const { reason, requestId } = held
    const headers = { kind: 'held_payload', id: batchId, reason, provider }
    const entries = attempts.map((count, index) => {
      const json = content.payload(index).toString()
      const about = { provider, attempts: count, json, suspect: null }
      return { headers, body: Buffer.from(lineOf({ ...about, batch: { batchId, reason, requestId } })) }
    })
    await queues.store('dead', entries, signal)
    known.add(batchId)
    copied += entries.length
  }
}
