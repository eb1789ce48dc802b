// handshake-failures.ts: finds listeners on which no TLS connection gets as far as a CONNECT: an expired
// certificate, an authority that the devices do not know, devices that do not speak TLS.
//
//   5 failures within 30 minutes, and no CONNECT since      the state TLS_HANDSHAKES_FAIL holds
//   a CONNECT over TLS, another certificate in force, or    it is over
//     no failure for 30 minutes
//
// Only failures of devices count: not HTTP, and nothing that sends no byte. Port scanners can raise the
// condition where nothing else connects. Memory: one record for each listener with at most 50 addresses.

import type { Clock } from '../../../std/clock.ts'
import type { TlsFailure } from '../../../std/tls/tls.ts'
import type { State, StateSource } from '../../../domain/condition-state.ts'
import { refusals } from '../client-faults.ts'

/** What becomes of a connection after its handshake. */
export type TlsUse = {
  /** Its CONNECT came: the client accepts the certificate of the gateway. */
  connectReceived(): void
  /** It ended before. */
  closedUnused(): void
}

export type HandshakeFailures = StateSource & {
  failed(reason: TlsFailure, address: string | null): void
  /** A client has sent its CONNECT, or another certificate is in force. */
  startAgain(): void
}

const failuresMin = 5
const windowMs = 1_800_000
const addressesMax = 50
const shownMax = 5

const notCounted: ReadonlySet<TlsFailure> = new Set(['http_on_tls_port'])

export function createHandshakeFailures(
  clock: Clock,
  /** Known when the listener is open. */
  urlOf: () => string,
): HandshakeFailures {
  /** Times of the last failures since the last CONNECT, at most `failuresMin`. */
  let times: number[] = []
  let addresses = new Map<string, number>()
  /** Failures since the last CONNECT, and the last of them. */
  let count = 0
  let last: TlsFailure | null = null
  let isFailing = false
  return { failed, startAgain, states }

  function failed(reason: TlsFailure, address: string | null): void {
    if (notCounted.has(reason)) return
    const now = clock.monotonic()
    if (isOver(now)) startAgain()
    times = [...times, now].slice(-failuresMin)
    last = reason
    count += 1
    const name = address ?? 'an unknown address'
    const known = addresses.get(name)
    if (known !== undefined || addresses.size < addressesMax) addresses.set(name, (known ?? 0) + 1)
    const [oldest = now] = times
    if (times.length === failuresMin && now - oldest <= windowMs) isFailing = true
  }

  function startAgain(): void {
    if (last === null) return
    times = []
    addresses = new Map()
    count = 0
    last = null
    isFailing = false
  }

  function* states(): Generator<State> {
    if (!isFailing || last === null || isOver(clock.monotonic())) return
    const top = [...addresses]
      .sort(([, a], [, b]) => b - a)
      .slice(0, shownMax)
      .map(([name, failures]) => `${name} (${failures})`)
    yield { code: 'TLS_HANDSHAKES_FAIL', listener: urlOf(), detail: refusals[last], count, top }
  }

  function isOver(now: number): boolean {
    return now - (times.at(-1) ?? now) >= windowMs
  }
}
