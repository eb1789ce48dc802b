// control-rate.ts: how many control packets one client may send. A client needs few: SUBSCRIBE after CONNECT,
// PINGREQ once per keepalive. One PUBREL for each QoS 2 message is part of the message and not counted here.

import type { Clock } from '../../../std/clock.ts'

export type ControlRate = {
  /** Further PUBREL packets that are not counted. */
  expectReleases(count: number): void
  /** False where the client has sent too many. */
  take(control: number, releases: number): boolean
}

type ControlRateOptions = { controlPacketsPerSecondMax: number }

/** The rate is an average over this time: a client that subscribes to many topics does so at once. */
const averagedMs = 5000
/** Unreleased messages that a session may have (client-session.ts). */
const releasesMax = 10_000

export function createControlRate(clock: Clock, options: ControlRateOptions): ControlRate {
  return new Rate(clock, options)
}

class Rate implements ControlRate {
  private readonly clock: Clock
  private readonly options: ControlRateOptions
  private left: number
  private filledAtMs = 0
  private releasesExpected = 0

  constructor(clock: Clock, options: ControlRateOptions) {
    this.clock = clock
    this.options = options
    this.left = burstOf(options)
  }

  expectReleases(count: number): void {
    this.releasesExpected = Math.min(releasesMax, this.releasesExpected + count)
  }

  take(control: number, releases: number): boolean {
    const expected = Math.min(releases, this.releasesExpected)
    this.releasesExpected -= expected
    const count = control + releases - expected
    if (count === 0) return true
    const now = this.clock.monotonic()
    const refill = ((now - this.filledAtMs) * this.options.controlPacketsPerSecondMax) / 1000
    this.left = Math.min(burstOf(this.options), this.left + refill) - count
    this.filledAtMs = now
    return this.left >= 0
  }
}

function burstOf({ controlPacketsPerSecondMax }: ControlRateOptions): number {
  return (controlPacketsPerSecondMax * averagedMs) / 1000
}
