// What local-times.mapping.yaml cannot say of local times.

import { expect, test } from 'vitest'
import {
  appliedOf,
  messageOf,
  openMapperOf,
  sentIn,
  truckSource,
  verdictOf,
} from '../../support/mapping-world.ts'

const place = { lat: 52.5, lon: 13.4 }

test('a local time that occurs twice has one payloadId, whenever it comes', () => {
  const mapper = openMapperOf([
    truckSource({ time: { path: 'ts', format: 'datetime', zone: 'Europe/Berlin' } }),
  ])
  const message = { ...place, ts: '2024-10-27 02:30:00' }
  const [first, again] = [Date.UTC(2024, 9, 27, 0, 31), Date.UTC(2024, 9, 27, 1, 31)].map((arrivedAt) =>
    sentIn(mapper.map(messageOf(message, { arrivedAt }))),
  )
  expect(first?.signalTimestamp).toBe(Date.UTC(2024, 9, 27, 0, 30))
  expect(again).toEqual(first)
})

test('the zone of a device is that of collected values, too', () => {
  const ts = '13.05.2024 07:46:12'
  const mapper = openMapperOf(
    [
      {
        name: 'single',
        topic: 'v/{device}/{name}',
        coalesce: { name: '{name}', value: 'v', time: { path: 't', format: 'dmy', zone: 'device' } },
        map: { latitude: { path: 'lat' }, longitude: { path: 'lon' } },
      },
    ],
    { table: 'device,zone\ntruck-7,Europe/Berlin\n' },
  )
  for (const [name, value] of Object.entries(place)) {
    const message = messageOf({ v: value, t: ts }, { topic: `v/truck-7/${name}` })
    appliedOf(mapper.map(message))
  }
  const closed = mapper.tick(Number.POSITIVE_INFINITY)
  expect(closed?.payloads.map(({ deviceTime }) => deviceTime)).toEqual([Date.UTC(2024, 4, 13, 5, 46, 12)])
  expect(verdictOf(mapper.map(messageOf({ v: 1, t: ts }, { topic: 'v/stranger/lat' })))).toBe('NO_ZONE')
})
