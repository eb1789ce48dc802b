// week.ts: a small depot over seven days: three devices that send every ten minutes, nights without power, outages of
// hours. What a short run cannot show: what grows, what expires, what is done once a day.

import { isUntimed } from './world/contents.ts'
import type { DevicePlan } from './world/fleet.ts'
import type { Plan } from './plan.ts'

const minuteMs = 60_000
const hourMs = 60 * minuteMs
const dayMs = 24 * hourMs
const devices = 3
/** What one page of dead letters shows is looked at: so few of them. */
const small = { everyMs: 10 * minuteMs, burst: 1, window: 1, poison: 0.01, isDoomed: false }

export function weekOf(plan: Plan): Plan {
  return {
    ...plan,
    devices: plan.devices.slice(0, devices).map((device) => ({ ...timed(device), ...small })),
    safetyMs: 7 * dayMs,
    lookEveryMs: 10 * minuteMs,
    everyMs: {
      kill: 2 * dayMs,
      powerCut: 2 * dayMs,
      stop: 3 * dayMs,
      dropDevice: 6 * hourMs,
      network: 8 * hourMs,
      service: 4 * hourMs,
      disk: 2 * dayMs,
      operator: dayMs,
      away: 0,
      clock: 0,
      keys: plan.delivery.keysInFile ? 2 * dayMs : 0,
      flip: 0,
    },
  }
}

/** Messages without a time are known by their positions, which come again in a week. */
function timed(device: DevicePlan): DevicePlan {
  return isUntimed(device.kind) ? { ...device, kind: 'plain' } : device
}
