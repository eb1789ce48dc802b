// control-rate.ts: how many control packets one client may send. A client needs few: SUBSCRIBE after CONNECT,
// PINGREQ once per keepalive. One PUBREL for each QoS 2 message is part of the message and not counted here.

import type { Clock } from '../../../std/clock.ts'

export type ControlRate = {
  /** Further PUBREL packets that are not counted. */
  expectReleases(count: number): void
  /** False where the client has sent too many. */
  take(control: number, releases: number): boolean
}

/** The rate is an average over this time: a client that subscribes to many topics does so at once. */
const averagedMs = 5000
/** Unreleased messages that a session may have (client-session.ts). */
const releasesMax = 10_000

export function createControlRate(
  clock: Clock,
  { controlPacketsPerSecondMax }: { controlPacketsPerSecondMax: number },
): ControlRate {
  const burst = (controlPacketsPerSecondMax * averagedMs) / 1000
  let left = burst
  let filledAtMs = 0
  let releasesExpected = 0

  function expectReleases(count: number): void {
    releasesExpected = Math.min(releasesMax, releasesExpected + count)
  }

  function take(control: number, releases: number): boolean {
    const expected = Math.min(releases, releasesExpected)
    releasesExpected -= expected
    const count = control + releases - expected
    if (count === 0) return true
    const now = clock.monotonic()
    left = Math.min(burst, left + ((now - filledAtMs) * controlPacketsPerSecondMax) / 1000)
    filledAtMs = now
    left -= count
    return left >= 0
  }

  return { expectReleases, take }
}
