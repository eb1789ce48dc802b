// service-clock.ts: the clock of the service, learned from its answers, and the time that signatures are made
// with.
//
// A Date counts only where it cannot be forged in transit: over TLS, which is always verified, or loopback.
// It has whole seconds, so the offset is exact to about a second; below a minute it is shown and not applied.
// A service refuses signatures that are about five minutes off, so the first answer, even a 403, is enough to
// correct the next.
//
// The offset is void when our wall clock steps against the monotonic one: the time was set, which usually
// corrects it, or the machine slept. The next answer gives a new one.

import type { Clock, EpochMs } from '../../std/clock.ts'
import type { Emit } from '../../domain/event.ts'
import type { ProviderOptions } from '../delivery-options.ts'
import { isLoopback } from '../proxy.ts'

export type ServiceClock = {
  /** The wall clock, corrected where it is known to be wrong. */
  signingAt(): EpochMs
  /** Learns from the Date header of an answer that just arrived, `tookMs` after its request. */
  answered(date: string | null, tookMs: number): void
  /** Service minus ours; null while unknown. */
  offsetMs(): number | null
}

type Deps = { clock: Clock; emit: Emit }

const appliedFromMs = 60_000
/** Below this the clock is reported as right. Lower than the threshold above, against repeated reports. */
const rightBelowMs = 45_000
/** A smaller difference comes from a slewed clock, or from reading the two clocks one after the other. */
const stepMs = 2000
/** The Date was written at an unknown moment of the request: after a longer one the error is too large. */
const tookMaxMs = 60_000

/** Date is written after the request has arrived: of a long request, most is the upload. */
const answerMaxMs = 1000

/** A Date before this code was written, or in the next century, is ignored. */
const earliest: EpochMs = Date.UTC(2025, 0, 1)
const latest: EpochMs = Date.UTC(2100, 0, 1)

export function createServiceClock(
  { clock, emit }: Deps,
  { name, baseUrl, proxy }: Pick<ProviderOptions, 'name' | 'baseUrl' | 'proxy'>,
): ServiceClock {
  const url = new URL(baseUrl)
  // The loopback address behind a configured proxy is that of the proxy's machine.
  const trusted = url.protocol === 'https:' || (isLoopback(url) && proxy.from !== 'config')
  let learned: { offsetMs: number; wallMinusMonotonicMs: number } | null = null
  let reportedOff = false

  return {
    offsetMs() {
      return offsetNow()
    },
    signingAt() {
      const offsetMs = offsetNow() ?? 0
      return clock.now() + (Math.abs(offsetMs) >= appliedFromMs ? offsetMs : 0)
    },
    answered,
  }

  function offsetNow(): number | null {
    if (learned !== null && Math.abs(wallMinusMonotonic() - learned.wallMinusMonotonicMs) >= stepMs)
      learned = null
    return learned?.offsetMs ?? null
  }

  function wallMinusMonotonic(): number {
    return clock.now() - clock.monotonic()
  }

  function answered(date: string | null, tookMs: number): void {
    if (!trusted || date === null || tookMs > tookMaxMs) return
    const served = Date.parse(date)
    if (!(served >= earliest && served < latest)) return
    // The header is cut to the second, so on average it is half a second behind.
    const offsetMs = Math.round(served + 500 - (clock.now() - Math.min(tookMs / 2, answerMaxMs)))
    learned = { offsetMs, wallMinusMonotonicMs: wallMinusMonotonic() }
    const off = Math.abs(offsetMs) >= (reportedOff ? rightBelowMs : appliedFromMs)
    if (off !== reportedOff) emit({ kind: off ? 'clock_off' : 'clock_right', provider: name, offsetMs })
    reportedOff = off
  }
}
