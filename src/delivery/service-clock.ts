// service-clock.ts: the service's clock as far as its answers tell, and the time that signatures are made with.
//
// Only a Date that nobody between can forge counts: over TLS, which we always verify, or over loopback. It has
// whole seconds, so the offset is good to a second or so; below a minute it is shown and not applied.

import { isIPv4 } from 'node:net'
import type { Clock, EpochMs } from '../std/clock.ts'

export type ServiceClock = {
  /** The wall clock, corrected where it is known to be wrong. */
  signingAt(): EpochMs
  /** Learns from the Date header of an answer. */
  answered(date: string | null, sentAt: EpochMs): void
  /** Service minus ours; null while unknown. */
  readonly offsetMs: number | null
}

const appliedFromMs = 60_000

/** A Date before this code was written, or of the next century, says nothing about the time. */
const earliest: EpochMs = Date.UTC(2025, 0, 1)
const latest: EpochMs = Date.UTC(2100, 0, 1)

export function createServiceClock(
  { clock }: { clock: Clock },
  { baseUrl }: { baseUrl: string },
): ServiceClock {
  const trusted = isTrusted(new URL(baseUrl))
  let offsetMs: number | null = null

  return {
    get offsetMs() {
      return offsetMs
    },
    signingAt() {
      const now = clock.now()
      return offsetMs !== null && Math.abs(offsetMs) >= appliedFromMs ? now + offsetMs : now
    },
    answered(date, sentAt) {
      if (!trusted || date === null) return
      const served = Date.parse(date)
      if (!(served >= earliest && served < latest)) return
      const now = clock.now()
      // A step of our own clock between the two would make the middle meaningless.
      if (now < sentAt) return
      // The header is cut to the second, so on average it is half a second behind.
      offsetMs = Math.round(served + 500 - (sentAt + now) / 2)
    },
  }
}

function isTrusted({ protocol, hostname }: URL): boolean {
  return (
    protocol === 'https:' ||
    hostname === 'localhost' ||
    hostname === '[::1]' ||
    (isIPv4(hostname) && hostname.startsWith('127.'))
  )
}
