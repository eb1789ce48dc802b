// repeating-devices.ts: devices that send, and bring nothing new: each of their last messages is a duplicate.
// Silent devices do not count. The event comes where the number has changed by a tenth, or the first or last
// one came or went.
//
// Where every device of the gateway repeats, traffic-watch.ts says so, too.

import type { Emit } from '../../domain/event.ts'
import type { Standing } from '../../device-records/device-records.ts'

const manyShare = 0.1

export type RepeatingDevices = {
  /** Begins a look over all devices. */
  begin(): void
  add(standing: Standing): void
  /** All were added. */
  end(): void
}

export function createRepeatingDevices({ emit }: { emit: Emit }): RepeatingDevices {
  let said = { devices: 0, isMany: false }
  let now = { devices: 0, sending: 0, example: '' }
  return {
    begin() {
      now = { devices: 0, sending: 0, example: '' }
    },
    add({ device, isSilent, isRepeating }) {
      if (isSilent) return
      now.sending += 1
      if (!isRepeating) return
      now.devices += 1
      now.example ||= device
    },
    end() {
      const { devices, sending, example } = now
      const isMany = devices >= sending * manyShare
      const isSame = Math.abs(devices - said.devices) <= said.devices / 10 && isMany === said.isMany
      if (devices === 0 ? said.devices === 0 : isSame && said.devices > 0) return
      said = { devices, isMany }
      emit({ kind: 'devices_repeating', devices, sending, example, isMany })
    },
  }
}
