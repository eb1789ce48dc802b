// provider-view.ts: a provider as it is seen from outside.

import type { EpochMs } from '../std/clock.ts'
import type { ProviderName } from '../domain/ids.ts'
import type { EndpointState } from './policy/endpoint.ts'

export type ProviderView = {
  name: ProviderName
  endpoint: EndpointState
  since: EpochMs
  lastRequestId: string | null
  lastSuccessAt: EpochMs | null
  /** Service clock minus ours, from the Date header; null while unknown. */
  clockOffsetMs: number | null
  /** When the next submission may start; null while it may start now. */
  nextAttemptAt: EpochMs | null
  inFlight: number
  /** Delivered payloads per second over the last minute. */
  ratePerS: number
}
