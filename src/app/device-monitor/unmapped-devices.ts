// unmapped-devices.ts: devices that send, and whose messages give no payload, while those of others do. A
// device counts where its last message gave none, and at least five did for the same reason. Silent devices
// do not count. The event comes where one more or one less is named, or their number has changed by a tenth.
//
// It is a problem where they are many, or where a message of a device that was mapped before, or that the
// device table lists, is kept: each such device is named, so that one more is news. What the mapping ignores
// is none.
//
// Where no device of the gateway gives a payload, traffic-watch.ts says so, too.

import type { Emit } from '../../domain/event.ts'
import type { Standing } from '../../device-records/device-records.ts'
import { plural } from '../../std/quantity.ts'

const lossesMin = 5
const manyShare = 0.1
const reasonsShown = 3
const reasonsMax = 200
const namesMax = 200

export type UnmappedDevices = {
  /** Begins a look over all devices. */
  begin(): void
  add(standing: Standing): void
  /** All were added. */
  end(): void
}

const newLook = () => ({
  devices: 0,
  sending: 0,
  example: '',
  /** Those that are a problem. */
  named: [] as string[],
  reasons: new Map<string, number>(),
})

export function createUnmappedDevices({ emit }: { emit: Emit }): UnmappedDevices {
  let said = { devices: 0, isMany: false, named: '' }
  let now = newLook()
  return {
    begin() {
      now = newLook()
    },
    add({ device, isSilent, isListed, lastMappedAt, loss }) {
      if (isSilent) return
      now.sending += 1
      if (loss === null || loss.count < lossesMin) return
      now.devices += 1
      now.example ||= device
      const isProblem = loss.kind !== 'ignored' && (isListed || lastMappedAt !== null)
      if (isProblem && now.named.length < namesMax) now.named.push(device)
      const source = loss.source === null ? '' : `${loss.source}: `
      const reason = `${loss.kind === 'dead' ? 'dead letters' : loss.kind}, ${source}${loss.reason}`
      if (now.reasons.has(reason) || now.reasons.size < reasonsMax)
        now.reasons.set(reason, (now.reasons.get(reason) ?? 0) + 1)
    },
    end() {
      const { devices, sending, example, reasons, named: names } = now
      const isMany = devices >= sending * manyShare
      const text = names.join()
      const isSame =
        Math.abs(devices - said.devices) <= said.devices / 10 && isMany === said.isMany && text === said.named
      if (devices === 0 ? said.devices === 0 : isSame && said.devices > 0) return
      said = { devices, isMany, named: text }
      const named = [...reasons].sort((a, b) => b[1] - a[1]).slice(0, reasonsShown)
      const texts = named.map(([reason, count]) => `${plural(count, 'device')}: ${reason}`)
      emit({
        kind: 'devices_not_mapped',
        devices,
        sending,
        example,
        reasons: texts.join('; '),
        isMany,
        named: names,
      })
    },
  }
}
