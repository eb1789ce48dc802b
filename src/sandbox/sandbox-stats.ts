// sandbox-stats.ts: the counters of the service. Each number is increased in one place.

import type { EpochMs } from '../std/clock.ts'

export type SandboxStats = {
  startedAt: EpochMs
  /** Requests outside /sandbox, malformed ones included, and the statuses of their answers. */
  requests: number
  byStatus: Readonly<Record<string, number>>
  /** Bytes of request bodies. */
  bytes: number
  /** Batches and single payloads that were checked; repeats are not included. */
  batches: number
  singles: number
  payloadsAccepted: number
  payloadsFailed: number
  distinctPayloadIds: number
  /** New payloadIds beyond the bound of the table. Above 0 the numbers of ids are lower bounds. */
  payloadIdsNotKept: number
  /** Submissions of a batchId that was answered before, and their payloads. */
  repeats: number
  repeatedPayloads: number
  /** Repeats whose body differs from that of the first submission. */
  repeatsWithOtherBytes: number
  batchesRemembered: number
  batchesForgotten: number
  /** Payloads with a second effect: twice in one batch, or in a repeat that was processed again. */
  duplicatesUnderOneBatch: number
  /** Payloads with a second effect under another batchId, or in a batch and a single submission. */
  duplicatesAcrossBatches: number
  /** Payloads with a second effect in two single submissions, which have no batchId. */
  duplicatesAcrossSingles: number
  refusedSignatures: Readonly<Record<string, number>>
  /** All other refusals, by reason. */
  refusedRequests: Readonly<Record<string, number>>
  faultsInjected: Readonly<Record<string, number>>
  /** Answers of 500 without a fault plan: the accepted file could not be written, or the sandbox failed. */
  internalErrors: number
}

type Counts = {
  requests: number
  bytes: number
  batches: number
  singles: number
  payloadsAccepted: number
  payloadsFailed: number
  repeats: number
  repeatedPayloads: number
  repeatsWithOtherBytes: number
  duplicatesUnderOneBatch: number
  duplicatesAcrossBatches: number
  duplicatesAcrossSingles: number
  internalErrors: number
}

export type SandboxCounters = {
  counts: Counts
  byStatus: CountsByName
  refusedSignatures: CountsByName
  refusedRequests: CountsByName
  faultsInjected: CountsByName
}

/** The keys are reason codes and statuses, so their number is bounded. */
type CountsByName = { add(name: string | number): void; show(): Record<string, number> }

export function createCounters(): SandboxCounters {
  return {
    counts: {
      requests: 0,
      bytes: 0,
      batches: 0,
      singles: 0,
      payloadsAccepted: 0,
      payloadsFailed: 0,
      repeats: 0,
      repeatedPayloads: 0,
      repeatsWithOtherBytes: 0,
      duplicatesUnderOneBatch: 0,
      duplicatesAcrossBatches: 0,
      duplicatesAcrossSingles: 0,
      internalErrors: 0,
    },
    byStatus: createCountsByName(),
    refusedSignatures: createCountsByName(),
    refusedRequests: createCountsByName(),
    faultsInjected: createCountsByName(),
  }
}

function createCountsByName(): CountsByName {
  const counts = new Map<string, number>()
  return {
    add: (name) => counts.set(String(name), (counts.get(String(name)) ?? 0) + 1),
    show: () => Object.fromEntries([...counts].sort(([left], [right]) => (left < right ? -1 : 1))),
  }
}
