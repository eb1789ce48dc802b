// unmapped-devices.ts: devices that send, and whose messages give no payload, while those of others do. A
// device counts where its last message gave none, and at least five did for the same reason. Silent devices
// do not count. The event comes where one more or one less is named, or their number has changed by a tenth.
//
// It is a problem where they are many, or where a message of a device that was mapped before, or that the
// device table lists, is kept: each such device is named, so that one more is news. What the mapping ignores
// is none.
//
// Where no device of the gateway gives a payload, traffic-watch.ts says so, too.

import type { EpochMs } from '../../std/clock.ts'
import type { Emit } from '../../domain/event.ts'
import type { Standing } from '../../device-records/device-records.ts'
import { plural } from '../../std/quantity.ts'

const lossesMin = 5
const manyShare = 0.1
const reasonsShown = 3
const reasonsMax = 200
const namesMax = 200
const staysMs = 600_000

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
  /** Those whose messages the mapping ignores. */
  ignored: 0,
  reasons: new Map<string, number>(),
})

type Deps = { emit: Emit; now: () => EpochMs }

export function createUnmappedDevices({ emit, now: timeNow }: Deps): UnmappedDevices {
  let said = { devices: 0, isMany: false, named: '', reasons: '' }
  let now = newLook()
  /** When each that is a problem was one last: one that sends good messages between bad ones stays. */
  const problemAt = new Map<string, EpochMs>()
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
      if (loss.kind === 'ignored') now.ignored += 1
      else if (isListed || lastMappedAt !== null) note(device)
      const source = loss.source === null ? '' : `${loss.source}: `
      const reason = `${loss.kind === 'dead' ? 'dead letters' : loss.kind}, ${source}${loss.reason}`
      if (now.reasons.has(reason) || now.reasons.size < reasonsMax)
        now.reasons.set(reason, (now.reasons.get(reason) ?? 0) + 1)
    },
    end() {
      const { sending, reasons, ignored } = now
      const names = stillNamed()
      const devices = Math.max(now.devices, names.length)
      const isMany = devices > ignored && devices - ignored >= sending * manyShare
      const text = names.join()
      const isSame =
        Math.abs(devices - said.devices) <= said.devices / 10 && isMany === said.isMany && text === said.named
      if (devices === 0 ? said.devices === 0 : isSame && said.devices > 0) return
      const named = [...reasons].sort((a, b) => b[1] - a[1]).slice(0, reasonsShown)
      const texts = named.map(([reason, count]) => `${plural(count, 'device')}: ${reason}`)
      // Those that send good messages at this moment were not looked at.
      const why = texts.length === 0 ? said.reasons : texts.join('; ')
      said = { devices, isMany, named: text, reasons: why }
      emit({
        kind: 'devices_not_mapped',
        devices,
        sending,
        example: now.example || (names[0] ?? ''),
        reasons: why,
        isMany,
        named: names,
      })
    },
  }

  function note(device: string): void {
    if (problemAt.size < namesMax || problemAt.has(device)) problemAt.set(device, timeNow())
  }

  function stillNamed(): readonly string[] {
    for (const [device, at] of problemAt) if (Math.abs(timeNow() - at) > staysMs) problemAt.delete(device)
    return [...problemAt.keys()]
  }
}
