// repeating-devices.ts: devices that send, and bring nothing new: each of their last messages is a duplicate.
// Silent devices do not count. Where every device of the gateway repeats, traffic-watch.ts says so, too.

import type { State } from '../../domain/condition-state.ts'
import type { Standing } from '../../device-records/device-records.ts'

const manyShare = 0.1

/** For one look over all devices. */
export function createRepeatingDevices() {
  let [devices, sending, example] = [0, 0, '']
  return {
    add({ device, isSilent, isRepeating }: Standing): void {
      if (isSilent) return
      sending += 1
      if (!isRepeating) return
      devices += 1
      example ||= device
    },
    states(): State[] {
      const isMany = devices >= sending * manyShare
      return devices === 0 ? [] : [{ code: 'DEVICES_REPEATING', devices, sending, example, isMany }]
    },
  }
}
