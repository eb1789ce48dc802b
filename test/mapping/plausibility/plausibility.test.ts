// What plausibility.mapping.yaml cannot say.

import { expect, test } from 'vitest'
import { messageOf, openMapperOf, payloadIn, truckSource } from '../../support/mapping-world.ts'

const reading = { ts: 1_759_999_990_000, lat: 48.8566, lon: 2.3522 }

test('the memory of one device is bounded, and all values are counted in all', () => {
  const names = Array.from({ length: 40 }, (_, index) => `fuel_level_${index}`)
  const fields = Object.fromEntries(names.map((name) => [name, { path: name, type: 'number' }]))
  const mapper = openMapperOf([truckSource({ fields })])
  mapper.map(messageOf({ ...reading, ...Object.fromEntries(names.map((name) => [name, 101])) }))
  expect(mapper.withheldOf('truck-7')).toHaveLength(32)
  expect(mapper.withheldOf('truck-8')).toEqual([])
  expect(mapper.counters().omitted.size).toBe(40)
})

test('a value that is left out has no part in the payloadId', () => {
  const signals = [{ type: 'OBD_LIFETIME_ODOMETER', path: 'odo', unit: 'km' }]
  const mapper = openMapperOf([truckSource({ speed: { path: 'v', unit: 'km/h' }, signals })])
  const idOf = (fields: object) => payloadIn(mapper.map(messageOf({ ...reading, ...fields }))).payloadId
  expect(idOf({ v: 999_999, odo: '81000000000' })).toBe(idOf({}))
})
