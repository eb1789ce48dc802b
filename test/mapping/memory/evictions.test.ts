import { expect, test } from 'vitest'
import type { DeviceEntry } from '../../../src/mapping/devices/devices.ts'
import { createMemory } from '../../../src/mapping/memory/memory.ts'
import { createRandom } from '../../support/random.ts'

const devicesMax = 8

/** With that many remembered values and counters. */
const sourceOf = (name: string, values = 0, counters = 2) => ({
  name,
  remember: values === 0 ? null : { names: Array.from({ length: values }, (_, index) => String(index)) },
  counters: Array.from({ length: counters }),
  previous: null,
})

const sources = [sourceOf('s', 0, 0)]

/** With names of two characters. */
const bytesMax = devicesMax * (128 + 2 * 'memory "s" dd'.length)

const entryOf = (device: string) =>
  ({ device, provider: 'default', assetId: device, memory: null }) as DeviceEntry

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
  const memory = createMemory(sources, bytesMax)
  const model = openModel()
  let evictions = 0
  for (let index = 0; index < 5000; index += 1) {
    const device = String(10 + random.below(random.pick([6, 12, 40])))
    const own = memory.of('s', entryOf(device))
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
  const memory = createMemory(sources, bytesMax)
  for (let index = 0; index < 1000; index += 1) {
    memory.of('s', entryOf(String((index % 90) + 10)))
    memory.takeWrites()
  }
  expect(memory.counters()).toMatchObject({ devices: devicesMax, evictions: 1000 - devicesMax })
})

test('devices with long names, and with many remembered values, count for more', () => {
  for (const [source, name, least, most] of [
    [sourceOf('s'), 'v'.repeat(250), 2, 2],
    [sourceOf('s', 10), 'v', 2, 2],
  ] as const) {
    const memory = createMemory([source], 1600)
    for (let index = 0; index < 100; index += 1) {
      memory.of('s', entryOf(`${name}${index}`))
      memory.takeWrites()
    }
    expect(memory.counters().devices).toBeGreaterThanOrEqual(least)
    expect(memory.counters().devices).toBeLessThanOrEqual(most)
  }
})

test('there is room for a fleet of 100,000, also after a restart', () => {
  const trucks = [sourceOf('trucks')]
  const memory = createMemory(trucks)
  for (let index = 0; index < 100_000; index += 1) memory.of('trucks', entryOf(`truck-${index}`))
  expect(memory.takeWrites()).toBeNull()
  const again = createMemory(trucks)
  again.restore(memory.entries())
  expect(again.takeWrites()).toBeNull()
  expect(again.counters()).toEqual({ devices: 100_000, evictions: 0, damaged: 0 })
})
