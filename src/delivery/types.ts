// types.ts: the types of delivery that other stages use.

import type { EpochMs } from '../std/clock.ts'
import type { ProviderName } from '../domain/ids.ts'

export type EndpointState = 'available' | 'unavailable' | 'unauthorized'

export type ProviderView = {
  name: ProviderName
  endpoint: EndpointState
  since: EpochMs
  lastRequestId: string | null
  lastAcceptedAt: EpochMs | null
  /** Service clock minus ours, from the Date header; null while unknown. */
  clockOffsetMs: number | null
  /** When the next submission may start; null while it may start now. */
  nextAttemptAt: EpochMs | null
  inFlight: number
  /** Delivered payloads per second over the last minute. */
  ratePerS: number
}

export type DeliveryCounters = {
  submissions: number
  /** Keyed by outcome kind, and status or reason where there is one: `answered`, `unavailable_500`, ... */
  outcomes: ReadonlyMap<string, number>
  delivered: number
  retried: number
  dead: number
  bytesSent: number
  senderThreadsLost: number
}
