// What decoders of LoRaWAN networks say of a position, in the words of many makers. The rows are in
// positions.cases.yaml: beside what is a position is what looks like one and is none, or is not of the time of its message.

import { array, assert, constantFrom, double, property, record } from 'fast-check'
import { describe, expect, test } from 'vitest'
import { findPositions, isNoFix, type FoundPosition } from '../../../src/mapping/positions/positions.ts'
import { rowsBeside } from '../../support/case-rows.ts'

type Named = Record<string, unknown>
const rows = rowsBeside(import.meta.filename) as {
  found: Named
  none: Named
  no_fix: Named
  marks: object[]
  no_marks: object[]
  times_beside: object[]
  times_in: object[]
  ages: [seconds: number, said: object][]
}

const at = { latitude: 51.312745, longitude: 9.47971 }
const nine = Date.UTC(2025, 11, 30, 9)
const seconds = nine / 1000

function found(decoded: unknown): readonly FoundPosition[] {
  return findPositions(decoded) ?? []
}

/** `no fix`, or latitude, longitude, and the time or age where the decoder says it. */
function shortOf(position: FoundPosition | undefined): unknown {
  if (!position) return 'none'
  const { latitude, longitude, time, ageMs } = position
  if (isNoFix(position)) return 'no fix'
  const when = Number.isNaN(time) ? (Number.isNaN(ageMs) ? [] : [`${ageMs} ms ago`]) : [time]
  return [Number(latitude), Number(longitude), ...when]
}

const here = [at.latitude, at.longitude]

describe('a position is found', () => {
  test.each(Object.entries(rows.found))('%s', (_how, decoded) => {
    expect(found(decoded).map(shortOf)).toEqual([here])
  })

  test.each(Object.entries(rows.none))('and not in %s', (_what, decoded) => {
    expect(findPositions(decoded)).toBeUndefined()
  })

  test('with only one of its numbers it is half of one', () => {
    expect(found({ latitude: 51.3 })).toMatchObject([{ latitude: 51.3, longitude: undefined, isValid: true }])
  })

  test('on the equator and on the meridian of Greenwich', () => {
    expect(found({ latitude: 0.0004, longitude: 9.4 }).map(shortOf)).toEqual([[0.0004, 9.4]])
    expect(found({ latitude: 51.4, longitude: -0.0004 }).map(shortOf)).toEqual([[51.4, -0.0004]])
  })
})

describe('a failed fix is seen', () => {
  test.each(rows.marks)('by %j', (mark) => {
    expect(shortOf(found({ ...at, ...mark })[0])).toBe('no fix')
    expect(shortOf(found({ position: at, ...mark })[0])).toBe('no fix')
  })

  test.each(Object.entries(rows.no_fix))('in a position %s', (_what, decoded) => {
    expect(found(decoded).map(shortOf)).toEqual(['no fix'])
  })

  test.each(rows.no_marks)('and not by %j', (mark) => {
    expect(shortOf(found({ ...at, ...mark })[0])).toEqual(here)
  })
})

describe('the time of a fix is read', () => {
  test.each(rows.times_beside)('from %j', (said) => {
    expect(shortOf(found({ ...at, ...said })[0])).toEqual([...here, nine])
    expect(shortOf(found({ position: at, ...said })[0])).toEqual([...here, nine])
  })

  test.each(rows.times_in)('in %j', (decoded) => {
    expect(found(decoded).map(shortOf)).toEqual([[...here, nine]])
  })

  test.each(rows.ages)('as its age of %d s, from %j', (age, said) => {
    expect(shortOf(found({ ...at, ...said })[0])).toEqual([...here, `${age * 1000} ms ago`])
  })
})

describe('stored positions', () => {
  const three = [3, 2, 1].map((hours) => ({ ...at, timestamp: seconds - hours * 3600 }))
  const times = [3, 2, 1].map((hours) => nine - hours * 3_600_000)

  test.each([
    ['in a list', { history: three }],
    ['in a list beside the current one', { ...at, history: three }],
    [
      'with numbers',
      Object.fromEntries(
        three.flatMap(({ latitude, longitude, timestamp }, index) => [
          [`latitude${index + 1}`, latitude],
          [`longitude${index + 1}`, longitude],
          [`time${index + 1}`, timestamp],
        ]),
      ),
    ],
    [
      'as lists of named values',
      {
        valid: true,
        messages: three.map(({ latitude, longitude, timestamp }) => [
          { type: 'Longitude', measurementValue: String(longitude), timestamp: timestamp * 1000 },
          { type: 'Latitude', measurementValue: String(latitude), timestamp: timestamp * 1000 },
          { type: 'Battery', measurementValue: '80', timestamp: timestamp * 1000 },
        ]),
      },
    ],
    ['as objects side by side', Object.fromEntries(three.map((each, index) => [`p${index}`, each]))],
  ])('%s are found, each with its time', (_how, decoded) => {
    const stored = found(decoded).filter(({ time }) => !Number.isNaN(time))
    expect(stored.map(shortOf)).toEqual(times.map((time) => [...here, time]))
  })

  test('take nothing from what is beside their list', () => {
    const [current, ...stored] = found({ ...at, sats: 0, age: 60, history: three })
    expect(shortOf(current)).toBe('no fix')
    expect(stored.map(shortOf)).toEqual(times.map((time) => [...here, time]))
    expect(stored.map(({ part }) => part)).toEqual(three)
  })

  test('that are bad do not spoil the others', () => {
    const stored = found({ history: [{ ...three[0], latitude: 910 }, three[1], { ...three[2], fix: false }] })
    expect(stored.map(shortOf)).toEqual(['no fix', [...here, times[1]], 'no fix'])
  })

  test('are sent where the current position is out of range, or half of one', () => {
    const stored = times.map((time) => [...here, time])
    const outside = found({ latitude: 214.7, longitude: 214.7, history: three })
    expect(outside.map(shortOf)).toEqual(['no fix', ...stored])
    expect(found({ latitude: 51.3, history: three }).map(shortOf)).toEqual(stored)
  })

  test('without a time are not sent, except for the only one', () => {
    expect(found({ points: [at, { ...at, latitude: 52 }] }).map(shortOf)).toEqual(['no fix'])
    expect(found({ points: [{ button: 1 }, at] }).map(shortOf)).toEqual([here])
  })
})

test('a mark of a missing fix beside a position, or around it, is never lost', () => {
  const mark = constantFrom<Record<string, unknown>>(
    { fix: false },
    { status: 'V' },
    { sats: 0 },
    { SatCnt: 0 },
    { gps_status: 'no fix' },
    { freshGPS: false },
    { info: { gps: 'No fix' } },
    { message: 'GPS_TIMEOUT' },
  )
  const place = record({
    latitude: double({ min: -90, max: 90, noNaN: true }),
    longitude: double({ min: -180, max: 180, noNaN: true }),
  })
  const wraps = array(constantFrom('gps', 'position', 'data', 'payload'), { maxLength: 3 })
  assert(
    property(place, mark, wraps, (position, said, keys) => {
      const decoded = keys.reduce<object>((inner, key) => ({ [key]: inner }), { ...position, ...said })
      expect((findPositions(decoded) ?? []).every(isNoFix)).toBe(true)
    }),
    { numRuns: 300 },
  )
})

test('each key that was read is named, also of the parts of a time', () => {
  const read: string[] = []
  findPositions(
    {
      ...at,
      year: 2025,
      month: 12,
      day: 30,
      hour: 9,
      minute: 0,
      second: 0,
      tz: 'UTC',
      info: { gps: 'No fix' },
      battery: 80,
    },
    (_holder, key) => read.push(key),
  )
  expect([...new Set(read)].sort()).toEqual(
    ['day', 'gps', 'hour', 'latitude', 'longitude', 'minute', 'month', 'second', 'tz', 'year'].sort(),
  )
})

test.each(['type', 'sats', 'hdop', 'age', 'time', 'fix', 'latitude'])(
  'an object without a usable toString as %s breaks nothing',
  (key) => {
    const odd = { toString: 3, valueOf: 1 }
    for (const one of [{ [key]: odd }, { [key]: { used: odd } }, { [key]: [odd] }])
      expect(() => findPositions({ latitude: 51, longitude: 9, position: one, ...one })).not.toThrow()
  },
)
