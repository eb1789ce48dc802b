// sandbox-options.ts: the options of a sandbox. Limits and required fields are "not shown" in the
// specification, so each is an option; the defaults accept what a careful client sends.

import type { SandboxAccount } from './signature/accounts.ts'
import type { FaultsInput } from './fault-plan.ts'
import { defaultRequirements, type Requirement } from './payload-check.ts'

/**
 * The answer to a batchId that was answered before:
 * `same`      the same breakdown under a new requestId, without a second effect
 * `fresh`     the batch is processed again, as by a service that ignores the batchId
 * `conflict`  409
 */
export type RepeatMode = 'same' | 'fresh' | 'conflict'

export const repeatModes = ['same', 'fresh', 'conflict'] as const satisfies readonly RepeatMode[]

export type SandboxListener = {
  /**
   * Called after payloads were accepted and before the answer leaves. `batchId` is null for a single
   * submission.
   */
  onAccepted?: (batchId: string | null, payloadIds: readonly string[]) => void
  /** Called for each answer of the service; a fault may still change what is sent. */
  onAnswer?: (answered: Answered) => void
}

export type Answered = {
  requestId: string
  method: string
  path: string
  status: number
  /** The reason of a refusal; null where payloads were accepted. */
  reason: string | null
  message: string | null
}

export type SandboxOptions = SandboxListener & {
  /** At least one. Every request must be signed by one of them. */
  accounts: readonly SandboxAccount[]
  /** Prefix of /v2/telemetry. */
  basePath?: string
  /** A larger batch gets 413. */
  payloadsMax?: number
  /** A larger request gets 413; memory never holds more of it. */
  bodyBytesMax?: number
  /** Required payload fields. */
  required?: readonly Requirement[]
  /** The answer to an aggregator without X-Provider-Key or with an unknown one. */
  missingProviderStatus?: number
  repeat?: RepeatMode
  /** Largest difference between x-amz-date and the clock. */
  clockToleranceMs?: number
  /** Number of remembered answers and their bytes; answered-batches.ts says what happens beyond. */
  batchesRememberedMax?: number
  bytesRememberedMax?: number
  /** Payloads kept for GET /sandbox/received; beyond it the oldest are dropped. */
  receivedMax?: number
  receivedBytesMax?: number
  /** payloadIds kept to find duplicates; beyond it new ones are counted as payloadIdsNotKept. */
  payloadIdsMax?: number
  /** Connections; one more is closed at once. */
  connectionsMax?: number
  /** Accepted payloads are appended to this file, one line of JSON each, before the answer leaves. */
  acceptedPath?: string
  /** Forces the file to disk before the answer leaves, so that it survives a power cut. */
  acceptedSync?: boolean
  faults?: FaultsInput
}

export const defaults = {
  basePath: '',
  payloadsMax: 10_000,
  bodyBytesMax: 10 * 1024 ** 2,
  required: defaultRequirements,
  missingProviderStatus: 400,
  repeat: 'same',
  clockToleranceMs: 300_000,
  batchesRememberedMax: 100_000,
  bytesRememberedMax: 128 * 1024 ** 2,
  receivedMax: 10_000,
  receivedBytesMax: 64 * 1024 ** 2,
  payloadIdsMax: 5_000_000,
  connectionsMax: 4096,
} as const
