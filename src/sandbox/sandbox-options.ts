// sandbox-options.ts: what a sandbox can be told when it is made. Limits and required fields are "not shown" in the
// specification, so each is a setting; the defaults let through what a careful client sends.

import type { SandboxAccount } from './signature/accounts.ts'
import type { FaultsInput } from './fault-plan.ts'
import { defaultRequirements, type Requirement } from './payload-check.ts'

/**
 * What a batchId that was answered before gets:
 * `same`      the same breakdown under a new requestId, and no second effect
 * `fresh`     it is taken again, as by a service that does not look at it
 * `conflict`  409
 */
export type RepeatMode = 'same' | 'fresh' | 'conflict'

export const repeatModes = ['same', 'fresh', 'conflict'] as const satisfies readonly RepeatMode[]

export type SandboxListener = {
  /** Payloads were taken, their answer has not left yet. `batchId` is null for a single submission. */
  onAccepted?: (batchId: string | null, payloadIds: readonly string[]) => void
  /** An answer was made for a request to the service (it may still be spoilt by a fault). */
  onAnswer?: (answered: Answered) => void
}

export type Answered = {
  requestId: string
  method: string
  path: string
  status: number
  /** Of a refusal; null where something was taken. */
  reason: string | null
  message: string | null
}

export type SandboxOptions = SandboxListener & {
  /** At least one; every request must be signed by one of them. */
  accounts: readonly SandboxAccount[]
  /** Stands before /v2/telemetry. */
  basePath?: string
  /** Beyond it a batch gets 413. */
  payloadsMax?: number
  /** Beyond it a request gets 413; no more than that is ever held in memory. */
  bodyBytesMax?: number
  /** The payload fields without which a payload fails. */
  required?: readonly Requirement[]
  /** What an aggregator gets without X-Provider-Key, or with one that is unknown. */
  missingProviderStatus?: number
  repeat?: RepeatMode
  /** How far x-amz-date may be from the clock. */
  clockToleranceMs?: number
  /** Batches whose answer is remembered, and the bytes of those answers; beyond, see answered-batches.ts. */
  batchesRememberedMax?: number
  bytesRememberedMax?: number
  /** The last payloads for GET /sandbox/received; the oldest go first. */
  receivedMax?: number
  receivedBytesMax?: number
  /** payloadIds in which duplicates are found; more are counted as payloadIdsNotKept. */
  payloadIdsMax?: number
  /** Beyond it a connection is closed at once. */
  connectionsMax?: number
  /** Accepted payloads are appended to this file, a line of JSON each, before the answer leaves. */
  acceptedPath?: string
  /** And are forced to the disk, so that they outlive a power cut too. */
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
