// reconnect-delay.ts: how long a connection of a bridge waits before the next try: from `reconnectFirstMs`,
// doubled up to `reconnectMaxMs`, with jitter.
//
// A broker that restarts refuses connections for seconds (ECONNREFUSED). A member of a share group must be
// back soon then: a Mosquitto 2.0 forgets the group, and drops what is published before the first member has
// returned. Such a try costs two packets. So for some minutes a refused connection waits at most
// `refusedMaxMs`.

import type { Clock } from '../../std/clock.ts'

export type ReconnectDelay = {
  /** For the next try. `isRefused`: nothing listened there. */
  next(isRefused: boolean): number
  /** A connection ended that was open for `openMs`. If that was long enough, the delays start again. */
  ended(openMs: number): void
  reset(): void
}

const stableMs = 10_000
const refusedMaxMs = 1000
const soonForMs = 5 * 60_000

export function createReconnectDelay(
  { clock, random }: { clock: Clock; random: () => number },
  { reconnectFirstMs: firstMs, reconnectMaxMs: maxMs }: { reconnectFirstMs: number; reconnectMaxMs: number },
): ReconnectDelay {
  let failures = 0
  let refusedSinceMs: number | null = null

  function next(isRefused: boolean): number {
    if (!isRefused) refusedSinceMs = null
    else refusedSinceMs ??= clock.monotonic()
    const isSoon = refusedSinceMs !== null && clock.monotonic() - refusedSinceMs < soonForMs
    const most = isSoon ? Math.min(refusedMaxMs, firstMs, maxMs) : Math.min(maxMs, firstMs * 2 ** failures)
    if (!isSoon) failures += 1
    return Math.round(most * (0.5 + random() / 2))
  }

  function reset(): void {
    failures = 0
    refusedSinceMs = null
  }

  return {
    next,
    ended(openMs) {
      if (openMs >= stableMs) reset()
    },
    reset,
  }
}
