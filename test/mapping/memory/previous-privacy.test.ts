// A value of private hours is not sent later, as a value of the record before or in a difference to it.

import { expect, test } from 'vitest'
import { messageOf, openMapperOf, sentIn, truckSource, verdictOf } from '../../support/mapping-world.ts'

const monday = Date.UTC(2026, 4, 4, 10)
const sunday = Date.UTC(2026, 4, 3, 10)
const minutes = 60_000

const source = truckSource({
  signals: [{ type: 'DISTANCE', expr: 'odo - previous.odo' }],
  fields: {
    driver: { type: 'text', expr: 'previous.driver' },
    since: { type: 'number', expr: 'previous.time' },
  },
})

function openMapper(outside: 'drop' | 'coarse') {
  return openMapperOf([source], {
    table: 'device,asset_id,privacy\ntruck-7,A,office\n',
    privacy: { profiles: { office: { hours: 'Mon-Fri 06:00-18:00', outside } } },
  })
}

const at = (ts: number, odo: number, driver: string) => messageOf({ ts, lat: 48.1, lon: 11.5, odo, driver })

/** The difference, the driver and the time before. */
function told(result: Parameters<typeof sentIn>[0]) {
  const { signals = [], ...rest } = sentIn(result)
  const { driver, since } = rest as { driver?: string; since?: number }
  return [signals[0]?.value, driver, since]
}

test('a record in working hours sees nothing of the private one before it', () => {
  const mapper = openMapper('drop')
  expect(verdictOf(mapper.map(at(sunday, 100, 'Ada')))).toBe('privacy')
  expect(verdictOf(mapper.map(at(sunday + minutes, 190, 'Ada')))).toBe('privacy')
  expect(told(mapper.map(at(monday, 200, 'Bo')))).toEqual([undefined, undefined, undefined])
  expect(told(mapper.map(at(monday + minutes, 203, 'Bo')))).toEqual(['3', 'Bo', monday])
})

test('a private record that is sent without its details sees no other private one', () => {
  const mapper = openMapper('coarse')
  mapper.map(at(sunday, 100, 'Ada'))
  expect(told(mapper.map(at(sunday + minutes, 190, 'Ada')))).toEqual([undefined, undefined, undefined])
  expect(told(mapper.map(at(monday, 200, 'Bo')))).toEqual([undefined, undefined, undefined])
})

test('a profile counts for values that were kept in mind before the device had it', () => {
  const before = openMapperOf([source], { table: 'device,asset_id\ntruck-7,A\n' })
  before.map(at(sunday, 100, 'Ada'))
  const mapper = openMapper('drop')
  mapper.restore([...before.entries()])
  expect(told(mapper.map(at(monday, 200, 'Bo')))).toEqual([undefined, undefined, undefined])
})

test('all hours are working hours without `hours`', () => {
  const mapper = openMapperOf([source], {
    table: 'device,asset_id,privacy\ntruck-7,A,office\n',
    privacy: { profiles: { office: { hide: ['speed'] } } },
  })
  mapper.map(at(sunday, 100, 'Ada'))
  expect(told(mapper.map(at(monday, 200, 'Bo')))).toEqual(['100', undefined, undefined])
})
