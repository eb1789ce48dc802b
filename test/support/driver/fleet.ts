// fleet.ts: devices (device.ts) that publish as many messages as they are granted together, whatever becomes of the
// gateway meanwhile. What they sent, and what of it was acknowledged, is what the oracle knows.

import { eventually } from '../eventually.ts'
import { Device, type DevicePlan, type Feed } from './device.ts'

export type Ack = { device: Device; n: number; tookMs: number }
export type Sent = { plan: DevicePlan; n: number; isAcked: boolean }

export class Fleet {
  readonly devices: readonly Device[]
  /** Called after each acknowledgement. */
  onAck: ((ack: Ack) => void) | null = null
  #granted = 0
  #taken = 0
  #fed = Promise.withResolvers<void>()
  #quiet = Promise.withResolvers<void>()

  constructor(plans: readonly DevicePlan[]) {
    const feed: Feed = {
      take: () => {
        if (this.#taken >= this.#granted) return false
        this.#taken += 1
        return true
      },
      fed: () => this.#fed.promise,
      acked: (device, n, tookMs) => {
        this.onAck?.({ device, n, tookMs })
        this.#look()
      },
    }
    this.devices = plans.map((plan) => new Device(plan, feed))
  }

  get published(): number {
    return this.#sum(({ published }) => published)
  }

  get acked(): number {
    return this.#sum(({ acked }) => acked)
  }

  get resent(): number {
    return this.#sum(({ resent }) => resent)
  }

  /** Ends of connections that the gateway had accepted. */
  get ended(): number {
    return this.#sum(({ ended }) => ended)
  }

  get wrong(): string[] {
    return this.devices.flatMap(({ wrong }) => wrong)
  }

  /** Lets the devices publish `more` messages in total; Infinity: until `hold`. */
  grant(more: number): void {
    this.#granted += more
    this.#fed.resolve()
    this.#fed = Promise.withResolvers()
  }

  /** Nothing new is published; resolves when what was published is acknowledged. */
  hold(): Promise<void> {
    this.#granted = this.#taken
    return this.quiet()
  }

  /** Resolves when everything that was granted is acknowledged. */
  quiet(): Promise<void> {
    this.#quiet = Promise.withResolvers()
    this.#look()
    return this.#quiet.promise
  }

  /** Resolves when `count` further messages are acknowledged. */
  more(count: number): Promise<void> {
    const from = this.acked
    return eventually(() => this.acked >= from + count)
  }

  /** Resolves when all devices have ended because `goesOn` no longer holds. */
  async serve(
    urlOf: (plan: DevicePlan, turn: number, index: number) => string,
    goesOn: () => boolean,
  ): Promise<void> {
    await Promise.all(
      this.devices.map((device, index) => device.serve((turn) => urlOf(device.plan, turn, index), goesOn)),
    )
  }

  /** Ends all connections. */
  disconnect(): void {
    for (const device of this.devices) device.disconnect()
  }

  *messages(): Iterable<Sent> {
    for (const { plan, published, unacked } of this.devices.map((device) => ({
      plan: device.plan,
      published: device.published,
      unacked: device.unacked(),
    })))
      for (let n = 1; n <= published; n += 1) yield { plan, n, isAcked: !unacked.has(n) }
  }

  #sum(of: (device: Device) => number): number {
    return this.devices.reduce((sum, device) => sum + of(device), 0)
  }

  #look(): void {
    if (this.acked >= this.#granted) this.#quiet.resolve()
  }
}
