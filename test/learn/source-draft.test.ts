import { describe, expect, test } from 'vitest'
import { draftOf } from '../../src/learn/source-draft.ts'
import type { TopicShape } from '../../src/learn/topic-shapes.ts'
import { unreadReason } from '../../src/learn/unread-reason.ts'
import { messageOf } from '../support/mapping-world.ts'

function shapeOf(value: unknown): TopicShape {
  const message = messageOf(value)
  return { samples: [message], last: message } as unknown as TopicShape
}

describe('a position is found', () => {
  test.each<[value: object, latitude: string, longitude: string]>([
    [{ latitudeDegree: 48.1, longitudeDegree: 2.2 }, 'latitudeDegree', 'longitudeDegree'],
    [{ gnss_lat: 48.1, gnss_lon: 2.2 }, 'gnss_lat', 'gnss_lon'],
    [{ currentLatitude: 48.1, currentLongitude: 2.2 }, 'currentLatitude', 'currentLongitude'],
    [{ 'latitude(deg)': 48.1, 'longitude(deg)': 2.2 }, '"latitude(deg)"', '"longitude(deg)"'],
    [{ homeLat: 1, curLat: 48.1, gpsLng: 3, curLng: 2.2 }, 'curLat', 'curLng'],
    [
      { type: 'Feature', geometry: { type: 'Point', coordinates: [2.2, 48.1] } },
      'geometry.coordinates[1]',
      'geometry.coordinates[0]',
    ],
  ])('in %j', (value, latitude, longitude) => {
    const source = draftOf(shapeOf(value), 'a/{device}', true)?.source as { map: object } | undefined
    expect(source?.map).toMatchObject({ latitude: { path: latitude }, longitude: { path: longitude } })
  })

  test('in degrees and minutes, with the unit that reads them', () => {
    const draft = draftOf(shapeOf({ lat: 5808.3338, lon: 1131.5 }), 'a/{device}', true)
    expect(draft?.source).toMatchObject({ map: { latitude: { path: 'lat', unit: 'ddmm' } } })
    expect(draft?.notes.join(' ')).toContain('degrees and minutes')
  })
})

test.each<[value: object, reason: RegExp]>([
  [{ lat: 48.1, homeLongitude: 2.2 }, /No key looks like a position/],
  [
    [
      { bn: 'urn:dev:1:', n: 'lat', v: 48.1 },
      { n: 'lon', v: 2.2 },
    ],
    /lists of SenML.*`coalesce/,
  ],
])('why nothing is proposed for %j', (value, reason) => {
  expect(draftOf(shapeOf(value), 'a/{device}', true)).toBeNull()
  expect(unreadReason(shapeOf(value))).toMatch(reason)
})
