// handshake-failures.ts: finds listeners on which no TLS connection gets as far as a CONNECT: an expired
// certificate, an authority that the devices do not know, devices that do not speak TLS.
//
//   5 failures within 30 minutes, and no CONNECT since  -> listener_tls_failing, then at most one in 10 s
//   a CONNECT over TLS                                  -> listener_tls_works
//
// Only failures of devices count: not HTTP, and nothing that sends no byte. Port scanners can raise the
// condition where nothing else connects; it ends by itself (quietMs). Memory: one record for each listener
// with at most 50 addresses.

import type { Clock } from '../../../std/clock.ts'
import type { TlsFailure } from '../../../std/tls/tls.ts'
import type { Emit } from '../../../domain/event.ts'
import { refusals } from '../client-faults.ts'

/** What becomes of a connection after its handshake. */
export type TlsUse = {
  /** Its CONNECT came: the client accepts the certificate of the gateway. */
  connectReceived(): void
  /** It ended before. */
  closedUnused(): void
}

export type HandshakeFailures = {
  failed(reason: TlsFailure, address: string | null): void
  /** A client has sent its CONNECT. */
  succeeded(): void
}

const failuresMin = 5
const windowMs = 1_800_000
const reportEveryMs = 10_000
const addressesMax = 50
const shownMax = 5

const notCounted: ReadonlySet<TlsFailure> = new Set(['http_on_tls_port'])

export function createHandshakeFailures(
  { clock, emit }: { clock: Clock; emit: Emit },
  /** Known when the listener is open. */
  urlOf: () => string,
): HandshakeFailures {
  /** Times of the last failures since the last CONNECT, at most `failuresMin`. */
  let times: number[] = []
  let addresses = new Map<string, number>()
  let unreported = 0
  let reportedAtMs: number | null = null
  return { failed, succeeded }

  function failed(reason: TlsFailure, address: string | null): void {
    if (notCounted.has(reason)) return
    const now = clock.monotonic()
    times = [...times, now].slice(-failuresMin)
    unreported += 1
    const name = address ?? 'an unknown address'
    const known = addresses.get(name)
    if (known !== undefined || addresses.size < addressesMax) addresses.set(name, (known ?? 0) + 1)
    const [oldest = now] = times
    if (times.length < failuresMin || now - oldest > windowMs) return
    if (reportedAtMs !== null && now - reportedAtMs < reportEveryMs) return
    const top = [...addresses]
      .sort(([, a], [, b]) => b - a)
      .slice(0, shownMax)
      .map(([name, count]) => `${name} (${count})`)
    emit({
      kind: 'listener_tls_failing',
      listener: urlOf(),
      reason,
      detail: refusals[reason],
      count: unreported,
      top,
    })
    reportedAtMs = now
    unreported = 0
    addresses.clear()
  }

  function succeeded(): void {
    if (times.length === 0) return
    if (reportedAtMs !== null) emit({ kind: 'listener_tls_works', listener: urlOf() })
    times = []
    addresses = new Map()
    unreported = 0
    reportedAtMs = null
  }
}
