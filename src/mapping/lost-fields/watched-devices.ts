// watched-devices.ts: the devices of a source by name, in bounded memory.

import type { EpochMs } from '../../std/clock.ts'
import { had, type DeviceFields } from './device-fields.ts'
import { numbersOf, type StoredNumbers } from './stored-source.ts'

export type DeviceBounds = {
  devicesMax: number
  /** A record of a device beyond those. */
  beyond: () => void
}

/** Where all places are taken, a device that was silent for this long loses its place to a new one. */
const silentMs = 86_400_000
/** The devices that were heard last. */
const storedMax = 256

export class WatchedDevices {
  readonly #bounds: DeviceBounds
  readonly #create: () => DeviceFields
  readonly #devices = new Map<string, DeviceFields>()

  constructor(bounds: DeviceBounds, create: () => DeviceFields) {
    this.#bounds = bounds
    this.#create = create
  }

  get(name: string): DeviceFields | undefined {
    return this.#devices.get(name)
  }

  all(): Iterable<DeviceFields> {
    return this.#devices.values()
  }

  /** Null where there is no room for another one. */
  of(name: string, now: EpochMs): DeviceFields | null {
    const known = this.#devices.get(name)
    if (known !== undefined) return known
    if (this.#devices.size >= this.#bounds.devicesMax && !this.#makeRoom(now)) {
      this.#bounds.beyond()
      return null
    }
    const device = this.#create()
    this.#devices.set(name, device)
    return device
  }

  /** Devices that had the field, counted to `most`. */
  countHad(index: number, most = Infinity, heardAfter = 0): number {
    let count = 0
    for (const device of this.#devices.values()) {
      if (count === most) break
      if (device.heardAt > heardAfter && had(device, index)) count += 1
    }
    return count
  }

  stored(most = storedMax): (readonly [device: string, numbers: StoredNumbers])[] {
    const last = [...this.#devices].sort(([, a], [, b]) => b.heardAt - a.heardAt).slice(0, most)
    return last.map(([name, device]) => [name, numbersOf(device)])
  }

  /**
   * Removes the first device if it was silent for a day. Otherwise it moves to the end and stays, so that
   * invented names cannot replace devices that send.
   */
  #makeRoom(now: EpochMs): boolean {
    const [first] = this.#devices
    if (first === undefined) return false
    const [name, device] = first
    this.#devices.delete(name)
    const isSilent = Math.abs(now - device.heardAt) > silentMs
    if (!isSilent) this.#devices.set(name, device)
    return isSilent
  }
}
