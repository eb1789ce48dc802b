import { expect, test } from 'vitest'
import { createSuspectDevices } from '../../../src/mapping/plausibility/suspect-devices.ts'
import { createSwappedPositions } from '../../../src/mapping/filters/swapped-positions.ts'
import { messageOf, openMapperOf, sentIn, truckSource } from '../../support/mapping-world.ts'

const ts = 1_750_000_000_000
const place = { ts, lat: 48.1, lon: 11.5 }

function open(fleet: number, spread = 0.1) {
  const mapper = openMapperOf([truckSource()])
  const give = (device: string, payload: object) =>
    mapper.map(messageOf({ ...place, ...payload }, { topic: `telemetry/v1/${device}` }))
  for (let index = 0; index < fleet; index += 1)
    give(`truck-${index}`, { lat: 48 + index * spread, lon: 11 + index * spread })
  return { mapper, give }
}

test('a device with latitude and longitude swapped is shown, and its position is sent', () => {
  const { mapper, give } = open(6)
  const sent = sentIn(give('swapped', { lat: 11.5, lon: 48.1 }))
  expect(sent.gps).toEqual({ latitude: 11.5, longitude: 48.1 })
  expect(mapper.withheldOf('swapped')).toEqual([
    {
      source: 'trucks',
      field: 'position',
      reason: 'latitude and longitude may be swapped',
      count: 1,
      isSent: true,
      lastValue: 11.5,
    },
  ])
  expect([...mapper.counters().flagged.values()]).toEqual([1])
})

test.each([
  ['a device far away', 6, 0.1, { lat: -33.9, lon: 151.2 }],
  ['one of a small fleet', 3, 0.1, { lat: 11.5, lon: 48.1 }],
  ['one of a fleet that is all over the world', 6, 12, { lat: 11.5, lon: 48.1 }],
  ['one among the others', 6, 0.1, { lat: 48.2, lon: 11.4 }],
])('%s is not', (_what, fleet, spread, payload) => {
  const { mapper, give } = open(fleet, spread)
  give('other', payload)
  expect(mapper.withheldOf('other')).toEqual([])
  expect(mapper.counters().flagged.size).toBe(0)
})

test('devices beyond the bound are judged by the others and counted', () => {
  const fleet = createSwappedPositions(6)
  for (let index = 0; index < 6; index += 1) fleet.isSwapped(`truck-${index}`, 48 + index / 10, 11)
  expect(fleet.counters()).toEqual({ devices: 6, beyond: 0 })
  expect(fleet.isSwapped('further', 11, 48)).toBe(true)
  expect(fleet.isSwapped('truck-0', 48, 11)).toBe(false)
  expect(fleet.counters()).toEqual({ devices: 6, beyond: 1 })
})

test('devices beyond the bound of watched ones are counted', () => {
  const watched = createSuspectDevices(2)
  for (const device of ['a', 'b', 'c', 'c'])
    watched.implausible({ device, records: 1 }, 'trucks|speed|above maximum', 0)
  expect(watched.counters()).toEqual({ devices: 2, swapped: 0, fleet: 0, beyond: 2 })
})
