import { expect, test } from 'vitest'
import { markOf } from '../../../src/mapping/read/map-result.ts'
import { appliedOf, messageOf, openMapperOf } from '../../support/mapping-world.ts'

const time = { path: 'ts', format: 'ms' }
const start = Date.now() - 60_000

test('what was sent of one message is no reason to leave it out of another one that is collected', () => {
  const map = { latitude: { path: 'lat' }, longitude: { path: 'lon' } }
  const mapper = openMapperOf([
    { name: 'whole', topic: 'whole/{device}', map: { time, ...map } },
    {
      name: 'parts',
      topic: 'parts/{device}/{metric}',
      encoding: 'scalar',
      coalesce: { name: '{metric}', window: '10s' },
      map,
    },
  ])
  const part = (metric: string, value: string) => {
    const message = { ...messageOf(value), topic: `parts/truck-1/${metric}`, bytes: Buffer.from(value) }
    appliedOf(mapper.map(message, false))
  }
  part('lat', '52.5')
  part('lon', '13.4')
  const record = { ts: start, lat: 47, lon: 1 }
  const whole = { ...messageOf(record), topic: 'whole/truck-2' }
  mapper.map({ ...whole, records: [markOf(0, record, { sent: ['position'], lost: [] })] }, false)
  const closed = mapper.tick(Number.POSITIVE_INFINITY)
  expect(closed?.payloads.map(({ json }) => (JSON.parse(json) as { gps?: object }).gps)).toEqual([
    { latitude: 52.5, longitude: 13.4 },
  ])
})
