// service-clock.ts: the service's clock as far as its answers tell, and the time that signatures are made with.
//
// Only a Date that nobody between can forge counts: over TLS, which we always verify, or over loopback. It has
// whole seconds, so the offset is good to a second or so; below a minute it is shown and not applied. A service refuses
// signatures that are some five minutes off, so the first answer, a 403 even, is enough: the second request is right.
//
// What was learned is void when our wall clock steps against the monotonic one: somebody set the time, which mends it
// more often than not, or the machine slept. The next answer tells.

import type { Clock, EpochMs } from '../../std/clock.ts'
import type { Emit } from '../../domain/event.ts'
import type { ProviderOptions } from '../delivery-options.ts'
import { isLoopback } from '../proxy.ts'

export type ServiceClock = {
  /** The wall clock, corrected where it is known to be wrong. */
  signingAt(): EpochMs
  /** Learns from the Date header of an answer that came just now and took so long. */
  answered(date: string | null, tookMs: number): void
  /** Service minus ours; null while unknown. */
  readonly offsetMs: number | null
}

type Deps = { clock: Clock; emit: Emit }

const appliedFromMs = 60_000
/** Told as mended below this, so that an offset of a minute is not told again and again. */
const mendedBelowMs = 45_000
/** Less is the clock being slewed, or the two being read one after the other. */
const stepMs = 2000
/** When within the answer its Date was written is not known: beyond this it may be off by as much as is applied. */
const tookMaxMs = 60_000

/** A Date before this code was written, or of the next century, says nothing about the time. */
const earliest: EpochMs = Date.UTC(2025, 0, 1)
const latest: EpochMs = Date.UTC(2100, 0, 1)

export function createServiceClock(
  { clock, emit }: Deps,
  { name, baseUrl, proxy }: Pick<ProviderOptions, 'name' | 'baseUrl' | 'proxy'>,
): ServiceClock {
  const { protocol, hostname } = new URL(baseUrl)
  // What a proxy that the config names calls loopback is its own.
  const trusted = protocol === 'https:' || (isLoopback(hostname) && proxy.from !== 'config')
  let learned: { offsetMs: number; wallMinusMonotonicMs: number } | null = null
  let toldOff = false

  return {
    get offsetMs() {
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
    const offsetMs = Math.round(served + 500 - (clock.now() - tookMs / 2))
    learned = { offsetMs, wallMinusMonotonicMs: wallMinusMonotonic() }
    const off = Math.abs(offsetMs) >= (toldOff ? mendedBelowMs : appliedFromMs)
    if (off !== toldOff)
      emit({ kind: off ? 'service_clock_off' : 'service_clock_right', provider: name, offsetMs })
    toldOff = off
  }
}
