import { expect, test } from 'vitest'
import { messageOf, openMapperOf, sentIn, truckSource } from '../../support/mapping-world.ts'

const ts = 1_750_000_000_000
const position = { lat: 48.8566, lon: 2.3522, odo: 5 }
const source = truckSource(
  { in_motion: { path: 'ignition' }, signals: [{ type: 'OBD_LIFETIME_ODOMETER', path: 'odo', unit: 'km' }] },
  { fix: { valid: 'lock != "no"' }, remember: { names: ['lock', 'ignition'] } },
)

test('the memory forgets devices that sent once before it forgets others, at its bound', () => {
  const mapper = openMapperOf([source])
  const of = (name: string, seconds: number, payload: object) => ({
    ...messageOf({ ts: ts + seconds * 1000, ...position, ...payload }),
    topic: `telemetry/v1/${name}`,
  })
  mapper.map(of('truck-7', 0, { lock: 'no' }))
  mapper.map(of('truck-7', 1, {}))
  const long = 'x'.repeat(230)
  const count = 60_000
  for (let index = 0; index < count; index += 1) mapper.map(of(`${long}${index}`, 1, { lock: 'no' }))
  const { devices, evictions } = mapper.counters().memory
  expect(devices + evictions).toBe(count + 1)
  expect(evictions).toBeGreaterThan(1)
  expect(sentIn(mapper.map(of('truck-7', 2, {}))).gps).toBeUndefined()
})
