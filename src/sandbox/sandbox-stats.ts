// sandbox-stats.ts: the counters of the service. Each number is increased in one place.

import type { EpochMs } from '../std/clock.ts'

export type SandboxStats = ReturnType<typeof newCounts> & {
  startedAt: EpochMs
  /** The statuses of the answers to `requests`. */
  byStatus: Readonly<Record<string, number>>
  distinctPayloadIds: number
  /** New payloadIds beyond the bound of the table. Above 0 the numbers of ids are lower bounds. */
  payloadIdsNotKept: number
  batchesRemembered: number
  batchesForgotten: number
  refusedSignatures: Readonly<Record<string, number>>
  /** All other refusals, by reason. */
  refusedRequests: Readonly<Record<string, number>>
  faultsInjected: Readonly<Record<string, number>>
}

export type SandboxCounters = ReturnType<typeof createCounters>

export function createCounters() {
  return {
    counts: newCounts(),
    byStatus: createCountsByName(),
    refusedSignatures: createCountsByName(),
    refusedRequests: createCountsByName(),
    faultsInjected: createCountsByName(),
  }
}

function newCounts() {
  return {
    /** Requests outside /sandbox, malformed ones included. */
    requests: 0,
    /** Bytes of request bodies. */
    bytes: 0,
    /** Batches and single payloads that were checked; repeats are not included. */
    batches: 0,
    singles: 0,
    payloadsAccepted: 0,
    payloadsFailed: 0,
    /** Submissions of a batchId that was answered before, and their payloads. */
    repeats: 0,
    repeatedPayloads: 0,
    /** Repeats whose body differs from that of the first submission. */
    repeatsWithOtherBytes: 0,
    /** Payloads with a second effect: twice in one batch, or in a repeat that was processed again. */
    duplicatesUnderOneBatch: 0,
    /** Payloads with a second effect under another batchId, or in a batch and a single submission. */
    duplicatesAcrossBatches: 0,
    /** Payloads with a second effect in two single submissions, which have no batchId. */
    duplicatesAcrossSingles: 0,
    /** Answers of 500 without a fault plan: the accepted file could not be written, or the sandbox failed. */
    internalErrors: 0,
  }
}

/** The keys are reason codes and statuses, so their number is bounded. */
type CountsByName = { add(name: string | number): void; show(): Record<string, number> }

function createCountsByName(): CountsByName {
  const counts = new Map<string, number>()
  return {
    add: (name) => counts.set(String(name), (counts.get(String(name)) ?? 0) + 1),
    show: () => Object.fromEntries([...counts].sort(([left], [right]) => (left < right ? -1 : 1))),
  }
}
