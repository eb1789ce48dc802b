import { describe, expect, test } from 'vitest'
import { messageOf, openMapperOf, truckSource } from '../../support/mapping-world.ts'

const now = Date.UTC(2026, 7, 1)

/** Our time is known: a clock that is ahead would be judged. */
function refusal(ts: unknown, time: Record<string, unknown>) {
  const world = { clockOffsetMs: 0, clocks: { on_future: 'quarantine' } }
  const mapper = openMapperOf([truckSource({ time: { path: 'ts', ...time } })], world)
  const result = mapper.map(messageOf({ ts, lat: 48.1, lon: 2.2 }, { arrivedAt: now }))
  return { result, mapper }
}

describe('a time in another unit', () => {
  test.each([
    [now, 's', 'ms'],
    [now / 1000, 'ms', 's'],
    [now * 1000, 's', 'us'],
    [now * 1000, 'ms', 'us'],
    [String(now), 's', 'ms'],
    [`${now}000000`, 'ms', 'ns'],
    [now / 1000, 'us', 's'],
    [now / 1000, 'iso', 's'],
  ])('%j in the format %s is named as %s, and accuses no clock', (ts, format, other) => {
    const { result, mapper } = refusal(ts, { format })
    expect(result).toMatchObject({
      kind: 'unmappable',
      reason: 'BAD_TIME',
      detail: expect.stringContaining(
        `In the format "${other}" it is 2026-08-01T00:00:00.000Z: set \`format: ${other}\`.`,
      ),
    })
    expect([...mapper.deviceClocks()]).toEqual([])
  })

  // Of a clock that was never set, or counts from its start, the unit is right.
  test.each([
    [0, 'ms'],
    [71_300, 'ms'],
    [71_300, 's'],
    [Date.UTC(2080, 0), 'ms'],
  ])('%j in the format %s is none', (ts, format) => {
    expect(refusal(ts, { format }).result).not.toMatchObject({ reason: 'BAD_TIME' })
  })
})

describe('a text that stands for no time', () => {
  test.each([
    ['0001-01-01T00:00:00Z', 'iso'],
    ['0001-01-01T00:00:00', 'iso'],
    ['1900-01-01T00:00:00Z', 'iso'],
    ['1970-01-01T00:00:00+02:00', 'iso'],
    ['0000-00-00 00:00:00', 'datetime'],
    ['30.12.1899 00:00:00', 'dmy'],
    ['1/1/0001 12:00:00 AM', 'mdy'],
    ['1601-01-01T00:00:00Z', 'iso'],
  ])('%s in the format %s', (ts, format) => {
    const time = { format, zone: 'utc' }
    expect(refusal(ts, time).result).toMatchObject({
      reason: 'NO_TIME',
      detail: `The time "${ts}" stands for no time.`,
    })
    expect(refusal(ts, { ...time, missing: 'arrival' }).result.kind).toBe('payloads')
  })

  test.each(['2026-13-01T00:00:00Z', 'noon', '19.08.2026', '2026-1290.01T09:00:00Z', '1.9.19701'])(
    '%s does not',
    (ts) => {
      expect(refusal(ts, { format: 'iso', zone: 'utc' }).result).toMatchObject({ reason: 'BAD_TIME' })
    },
  )
})

test.each([
  [51.5, 4_232_200_000, '1e-7deg', 'It is 51.5, -6.27673, read without its sign'],
  [4_232_200_000, 12.5e7, '1e-7deg', 'It is -6.27673, 12.5, read without its sign'],
  [51.5, 423.22, 'deg', 'It is 51.5, -6.27673, read without its sign'],
  [
    40,
    329.4967,
    'deg',
    'of 0 to 360 are read by `expr: lon > 180 ? lon - 360 : lon`. Otherwise it is 40, -100.00003',
  ],
  [48, 190, 'deg', 'is out of range. Longitudes of 0 to 360 are read by `expr'],
  [51.5, 4288.690567, 'deg', 'It is 51.5, -6.27673, read without its sign'],
  [4807.038, 1131, 'deg', 'use `unit: ddmm`'],
])('a position of %j, %j in %s says what it is', (lat, lon, unit, words) => {
  const own = (value: number) => ({ unit: value > 1e6 ? unit : 'deg' })
  const map = { latitude: { path: 'lat', ...own(lat) }, longitude: { path: 'lon', ...own(lon) } }
  const result = openMapperOf([truckSource(map)]).map(messageOf({ ts: now, lat, lon }))
  expect(result).toMatchObject({ reason: 'OUT_OF_RANGE', detail: expect.stringContaining(words) })
})
