// sandbox-stats.ts: what the service counts. Each number has one place where it goes up.

import type { EpochMs } from '../std/clock.ts'

export type SandboxStats = {
  startedAt: EpochMs
  /** Requests to anything but /sandbox, malformed ones included, and the statuses of their answers. */
  requests: number
  byStatus: Readonly<Record<string, number>>
  /** Bytes of bodies that were read. */
  bytes: number
  /** Batches and single payloads that were looked into; repeats are not among them. */
  batches: number
  singles: number
  payloadsAccepted: number
  payloadsFailed: number
  distinctPayloadIds: number
  /** New payloadIds beyond the bound of the table: where above 0, the numbers of ids are lower bounds. */
  payloadIdsNotKept: number
  /** Submissions of a batchId that was answered before, and the payloads in those. */
  repeats: number
  repeatedPayloads: number
  /** Repeats whose body is not, byte for byte, that of the first submission. */
  repeatsWithOtherBytes: number
  batchesRemembered: number
  batchesForgotten: number
  /** Payloads that took effect a second time: twice in one batch, or in a repeat that was taken afresh. */
  duplicatesUnderOneBatch: number
  /** The same under two batchIds, or in a batch and a single submission. */
  duplicatesAcrossBatches: number
  /** The same in two single submissions, which have no batchId that could prevent it. */
  duplicatesAcrossSingles: number
  refusedSignatures: Readonly<Record<string, number>>
  /** All other refusals, by their reason. */
  refusedRequests: Readonly<Record<string, number>>
  faultsInjected: Readonly<Record<string, number>>
  /** Answers of 500 that nobody asked for: the accepted file could not be written, or a mistake of ours. */
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

export type Tally = {
  counts: Counts
  byStatus: CountsByName
  refusedSignatures: CountsByName
  refusedRequests: CountsByName
  faultsInjected: CountsByName
}

/** The names are words of ours and statuses, so there are not many. */
type CountsByName = { add(name: string | number): void; show(): Record<string, number> }

export function createTally(): Tally {
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
