import { expect, test } from 'vitest'
import type { DeviceEntry } from '../../../src/mapping/devices/devices.ts'
import { createMemory } from '../../../src/mapping/memory/memory.ts'
import { createRandom } from '../../support/random.ts'

const devicesMax = 8

/** The same by a list: the first device is forgotten, unless it was used since it was there. */
function openModel() {
  let devices: { name: string; used: boolean }[] = []
  return {
    clear: () => void (devices = []),
    use(name: string): string[] {
      const known = devices.find((one) => one.name === name)
      if (known) known.used = true
      else devices.push({ name, used: false })
      const forgotten: string[] = []
      while (devices.length > devicesMax) {
        const first = devices.shift()!
        if (first.used) devices.push({ ...first, used: false })
        else forgotten.push(first.name)
      }
      return forgotten
    },
  }
}

test('of more devices than are kept, the longest unused ones are forgotten, in their order', () => {
  const random = createRandom(4)
  const memory = createMemory(['s'], devicesMax)
  const model = openModel()
  let evictions = 0
  for (let index = 0; index < 5000; index += 1) {
    const device = `d${random.below(random.pick([6, 12, 40]))}`
    const own = memory.of('s', { device, provider: 'default', assetId: device, memory: null } as DeviceEntry)
    memory.changed(own!)
    const forgotten = model.use(device)
    const deleted = memory.takeWrites()!.filter(({ value }) => value === null)
    expect(deleted.map(({ key }) => key.split(' ').at(-1))).toEqual(forgotten)
    evictions += forgotten.length
    expect(memory.counters().devices).toBeLessThanOrEqual(devicesMax)
    if (!random.chance(0.002)) continue
    memory.restore([])
    model.clear()
  }
  expect(memory.counters().evictions).toBe(evictions)
  expect(evictions).toBeGreaterThan(500)
})

test('devices that change nothing are forgotten, too', () => {
  const memory = createMemory(['s'], devicesMax)
  for (let index = 0; index < 1000; index += 1) {
    const device = `d${index}`
    memory.of('s', { device, provider: 'default', assetId: device, memory: null } as DeviceEntry)
    memory.takeWrites()
  }
  expect(memory.counters()).toMatchObject({ devices: devicesMax, evictions: 1000 - devicesMax })
})
