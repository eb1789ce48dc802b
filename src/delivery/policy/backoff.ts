// backoff.ts: the length of each wait after a failure, for a batch and for the endpoint. Pure: the random
// source is passed in. The delays of payloads that the service listed as `failed` are in retry-delays.ts.

import type { BackoffOptions } from '../delivery-options.ts'
import type { Wait } from './types.ts'

/** Full jitter: a time from zero to `minMs`, doubled for each failure after the first, at most `maxMs`. */
export function fullJitter(
  random: () => number,
  failures: number,
  bounds: { minMs: number; maxMs: number },
): number {
  // Above 2^30 the product always exceeds `maxMs` and only loses precision.
  const doublings = Math.min(Math.max(failures - 1, 0), 30)
  return random() * Math.min(bounds.maxMs, bounds.minMs * 2 ** doublings)
}

/** The probe interval, varied so that gateways that failed together do not all retry at the same moment. */
export function probeInterval(random: () => number, { probeEveryMs, probeJitter }: BackoffOptions): number {
  return probeEveryMs * (1 + probeJitter * (2 * random() - 1))
}

/** A held batch asks for a person: each try that changed nothing doubles the wait, to `heldMaxMs`. */
function doubledProbeInterval(random: () => number, failures: number, backoff: BackoffOptions): number {
  const doublings = Math.min(Math.max(failures - 1, 0), 20)
  return Math.min(backoff.heldMaxMs, probeInterval(random, backoff) * 2 ** doublings)
}

/** `failures`: of this batch in a row; `retryAfterMs`: what the service asked for. */
export function batchWait(
  random: () => number,
  wait: Wait,
  { failures, retryAfterMs }: { failures: number; retryAfterMs: number },
  backoff: BackoffOptions,
): number {
  if (wait === 'none') return 0
  if (wait === 'slow') return doubledProbeInterval(random, failures, backoff)
  if (wait !== 'backoff' && wait !== 'stuck') return probeInterval(random, backoff)
  const maxMs = wait === 'stuck' ? backoff.stuckMaxMs : backoff.maxMs
  return Math.max(retryAfterMs, fullJitter(random, failures, { minMs: backoff.minMs, maxMs }))
}

/** No credentials were found, for the `failures`th time in a row. */
export function credentialsWait(
  failures: number,
  { credentialsMinMs, credentialsMaxMs }: BackoffOptions,
): number {
  return Math.min(credentialsMaxMs, credentialsMinMs * 2 ** Math.min(failures - 1, 20))
}
