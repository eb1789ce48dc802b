import { expect, test } from 'vitest'
import { messageOf, openMapperOf, sentIn, truckSource, type Sent } from '../../support/mapping-world.ts'

const base = { ts: 1_763_690_000_000 }

function sentOf(message: Record<string, unknown>): Sent {
  return sentIn(openMapperOf([truckSource(coordinates)]).map(messageOf({ ...base, ...message })))
}

const coordinates = {
  latitude: { path: 'lat', unit: 'ddmm', hemisphere: { path: 'ns' } },
  longitude: { path: 'lon', unit: 'dms', hemisphere: { path: 'ew' } },
}

test.each<[string, Record<string, unknown>, string]>([
  [
    'a letter and N',
    { lat: '5231.0S', ns: 'N' },
    'The latitude "5231.0S" and its hemisphere "N" contradict each other.',
  ],
  [
    'a letter and S',
    { lat: 'N5231.0', ns: 'south' },
    'The latitude "N5231.0" and its hemisphere "south" contradict each other.',
  ],
  [
    'a minus and N',
    { lat: -5231, ns: 'N' },
    'The latitude -5231 and its hemisphere "N" contradict each other.',
  ],
  [
    'a letter and E',
    { lon: '13 24 W', ew: 'E' },
    'The longitude "13 24 W" and its hemisphere "E" contradict each other.',
  ],
  [
    'a letter and W',
    { lon: 'E 13 24', ew: 'W' },
    'The longitude "E 13 24" and its hemisphere "W" contradict each other.',
  ],
  ['another letter', { ns: 'X' }, 'The hemisphere of the latitude "5231.0" must be N or S, found "X".'],
  ['no letter', { ew: undefined }, 'The hemisphere of the longitude "13 24" must be E or W, found nothing.'],
])('a position with %s is in no hemisphere, and is not sent', (_name, message, why) => {
  const usual = { lat: '5231.0', ns: 'N', lon: '13 24', ew: 'E' }
  const mapper = openMapperOf([truckSource({ ...coordinates, signals: [{ type: 'T', path: 'n' }] })])
  const refused = mapper.map(messageOf({ ...base, ...usual, ...message }))
  expect(refused).toMatchObject({ kind: 'unmappable', reason: 'BAD_VALUE', detail: why })
  // Its signals are sent.
  const sent = sentIn(mapper.map(messageOf({ ...base, ...usual, ...message, n: 5 })))
  expect(sent.gps).toBeUndefined()
  expect(sent.signals).toMatchObject([{ value: '5' }])
  expect([...mapper.counters().omitted]).toEqual([['trucks|gps|BAD_VALUE', 1]])
})

test('a letter in the text and the same one beside it are one hemisphere', () => {
  const sent = sentOf({ lat: '5231.0S', ns: 'S', lon: 'W 13 24', ew: 'West' })
  expect(sent.gps).toMatchObject({ latitude: -52.516666667, longitude: -13.4 })
  expect(sentOf({ lat: -5231, ns: 'S', lon: 0, ew: 'W' }).gps).toMatchObject({ longitude: 0 })
})
