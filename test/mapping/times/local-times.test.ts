// Zones, dates and orders of a date through the whole mapper, as data: the time of a source, a message, and
// the time that is sent.

import { describe, expect, test } from 'vitest'
import { compileSources } from '../../../src/mapping/compile/compile.ts'
import {
  configOf,
  messageOf,
  openMapperOf,
  sentIn,
  truckSource,
  verdictOf,
  type World,
} from '../../support/mapping-world.ts'

const place = { lat: 52.5, lon: 13.4 }
const moment = Date.UTC(2024, 4, 13, 5, 46, 12)

function resultOf(time: object, message: object, world: World = {}, fix?: object) {
  const mapper = openMapperOf([truckSource({ time }, fix === undefined ? {} : { fix })], world)
  return mapper.map(messageOf({ ...place, ...message }))
}

const timeOf = (...given: Parameters<typeof resultOf>) => sentIn(resultOf(...given)).signalTimestamp

describe('a local time', () => {
  test.each<[string, object, object]>([
    ['of the source', { format: 'iso', zone: 'Europe/Berlin' }, { ts: '2024-05-13T07:46:12' }],
    ['with a zone in the text', { format: 'iso', zone: 'Europe/Berlin' }, { ts: '2024-05-13T05:46:12Z' }],
    ['of India', { format: 'datetime', zone: 'Asia/Kolkata' }, { ts: '2024-05-13 11:16:12' }],
    ['as digits', { format: 'compact', zone: 'America/New_York' }, { ts: 20_240_513_014_612 }],
    ['in words', { format: 'words', zone: 'Europe/Berlin' }, { ts: '13-May-2024 07:46:12' }],
    ['with the day first', { format: 'dmy', zone: 'Europe/Berlin' }, { ts: '13.05.2024 07:46:12' }],
    ['with the month first', { format: 'mdy', zone: 'America/Chicago' }, { ts: '5/13/2024, 12:46:12 AM' }],
    ['by the second format', { format: ['s', 'ymd'], zone: 'utc' }, { ts: '24/05/13 05:46:12' }],
  ])('%s is sent as a moment', (_name, time, message) => {
    expect(timeOf({ path: 'ts', ...time }, message)).toBe(moment)
  })

  test('without a zone in the config is one of UTC, for the formats that always were', () => {
    expect(timeOf({ path: 'ts', format: 'datetime' }, { ts: '2024-05-13 05:46:12' })).toBe(moment)
    expect(timeOf({ path: 'ts', format: 'compact' }, { ts: '20240513054612' })).toBe(moment)
  })

  test('that occurs twice has one payloadId, whenever it comes', () => {
    const time = { path: 'ts', format: 'datetime', zone: 'Europe/Berlin' }
    const mapper = openMapperOf([truckSource({ time })])
    const message = { ...place, ts: '2024-10-27 02:30:00' }
    const [first, again] = [Date.UTC(2024, 9, 27, 0, 31), Date.UTC(2024, 9, 27, 1, 31)].map((arrivedAt) =>
      sentIn(mapper.map(messageOf(message, { arrivedAt }))),
    )
    expect(first?.signalTimestamp).toBe(Date.UTC(2024, 9, 27, 0, 30))
    expect(again).toEqual(first)
  })
})

describe('the zone of a device', () => {
  const time = { path: 'ts', format: 'dmy', zone: 'device' }
  const ts = '13.05.2024 07:46:12'
  const table = 'device,zone\ntruck-7,Europe/Berlin\n'

  test('is that of its row, else that of the defaults', () => {
    expect(timeOf(time, { ts }, { table })).toBe(moment)
    expect(timeOf(time, { ts }, { table, defaults: { zone: 'Asia/Kolkata' } })).toBe(moment)
    expect(timeOf(time, { ts }, { defaults: { zone: 'Asia/Kolkata' } })).toBe(moment - 3.5 * 3_600_000)
    expect(timeOf(time, { ts }, { defaults: { zone: 'utc' } })).toBe(moment + 2 * 3_600_000)
  })

  test('that is missing makes a dead letter that says what to do, unless the arrival time may be sent', () => {
    expect(resultOf(time, { ts })).toMatchObject({
      reason: 'NO_ZONE',
      detail: expect.stringContaining('fill the column "zone" of the device table, or set `defaults.zone`'),
    })
    expect(timeOf({ ...time, missing: 'arrival' }, { ts })).toBe(messageOf({}).arrivedAt)
    expect(timeOf(time, { ts: '13.05.2024 07:46:12+02:00' })).toBe(moment)
    expect(verdictOf(resultOf(time, { ts: '32.05.2024 07:46:12' }))).toBe('BAD_TIME')
    expect(verdictOf(resultOf({ ...time, missing: 'arrival' }, { ts: '32.05.2024 07:46' }))).toBe('BAD_TIME')
  })

  test('is that of the time of its position, and of collected values', () => {
    const fix = { time: { path: 'fix', format: 'dmy', zone: 'device' }, old: 'keep' }
    const sent = sentIn(resultOf(time, { ts: '13.05.2024 08:46:12', fix: ts }, { table }, fix))
    expect(sent.signalTimestamp).toBe(moment)
    const single = { topic: 'v/{device}/{name}', time: { path: 't', format: 'dmy', zone: 'device' } }
    const collected = openMapperOf(
      [
        {
          name: 'single',
          topic: single.topic,
          coalesce: { name: '{name}', value: 'v', time: single.time },
          map: { latitude: { path: 'lat' }, longitude: { path: 'lon' } },
        },
      ],
      { table },
    )
    for (const [name, value] of Object.entries(place)) {
      const message = messageOf({ v: value, t: ts }, { topic: `v/truck-7/${name}` })
      expect(collected.map(message).kind).toBe('part')
      collected.apply()
    }
    const closed = collected.tick(Number.POSITIVE_INFINITY)
    expect(closed?.payloads.map(({ deviceTime }) => deviceTime)).toEqual([moment])
    expect(verdictOf(collected.map(messageOf({ v: 1, t: ts }, { topic: 'v/stranger/lat' })))).toBe('NO_ZONE')
  })
})

describe('a date beside the time of day', () => {
  const both = { path: 'time', date: { path: 'date' } }

  test.each<[string, object, object]>([
    ['NMEA', { format: 'dmy', zone: 'utc' }, { date: '130524', time: '054612.00' }],
    ['NMEA as numbers', { format: 'dmy', zone: 'utc' }, { date: 130_524, time: 54_612 }],
    ['digits', { format: 'datetime' }, { date: '20240513', time: '054612' }],
    ['digits as numbers', { format: 'datetime' }, { date: 20_240_513, time: 54_612.9999 }],
    ['ISO 8601', { format: 'datetime' }, { date: '2024-05-13', time: '05:46:12' }],
    ['local time', { format: 'iso', zone: 'Europe/Berlin' }, { date: '2024-05-13', time: '07:46:12' }],
    ['day first', { format: 'dmy', zone: 'utc' }, { date: '13.05.2024', time: '05:46:12' }],
    ['month first', { format: 'mdy', zone: 'utc' }, { date: '05/13/24', time: '05:46:12 AM' }],
    ['words', { format: 'words', zone: 'utc' }, { date: '13 May 2024', time: '05:46:12' }],
  ])('as in %s is read', (_name, time, message) => {
    expect(timeOf({ ...both, ...time }, message)).toBeGreaterThanOrEqual(moment)
    expect(timeOf({ ...both, ...time }, message)).toBeLessThan(moment + 1000)
  })

  test('just after midnight, as numbers without their zeros', () => {
    const time = { ...both, format: 'dmy', zone: 'utc' }
    expect(timeOf(time, { date: 10_524, time: 5.5 })).toBe(Date.UTC(2024, 4, 1, 0, 0, 5, 500))
    expect(timeOf(time, { date: 1_052_024, time: 0 })).toBe(Date.UTC(2024, 4, 1))
  })

  test.each<[string, object]>([
    ['NO_TIME', { date: '130524' }],
    ['NO_TIME', { date: '', time: '054612' }],
    ['NO_TIME', { date: '000000', time: '054612' }],
    ['BAD_TIME', { date: '130524', time: '54612' }],
    ['BAD_TIME', { date: '320524', time: '054612' }],
    ['BAD_TIME', { date: true, time: '054612' }],
    ['BAD_TIME', { date: '130524', time: {} }],
    ['BAD_TIME', { date: 130_524, time: -5 }],
  ])('is %s for %j', (reason, message) => {
    const time = { ...both, format: 'dmy', zone: 'utc', absent: ['000000'] }
    expect(verdictOf(resultOf(time, message))).toBe(reason)
  })

  test('is that of a position, too', () => {
    const time = { path: 'time', date: { path: 'date' }, format: 'dmy', zone: 'utc' }
    const sent = sentIn(
      resultOf(
        { path: 'ts', format: 'ms' },
        { ts: moment + 3_600_000, date: '130524', time: '054612' },
        {},
        { time, old: 'keep' },
      ),
    )
    expect(sent.signalTimestamp).toBe(moment)
  })
})

describe('a config', () => {
  const problemsOf = (time: object) =>
    compileSources(configOf([truckSource({ time: { path: 'ts', ...time } })])).problems.map(
      ({ message }) => message,
    )

  test.each([
    [{ format: 'dmy' }, 'needs `zone`: utc, a time zone such as Europe/Paris, or device'],
    [{ format: ['iso', 'mdy'] }, 'has the format mdy, which needs `zone`'],
    [{ format: 's', zone: 'Europe/Berlin' }, 'has a zone, which the format s does not read'],
    [{ format: 'ms', date: { path: 'd' } }, 'has a date beside the format ms'],
    [{ format: 'compact', date: { path: 'd' } }, 'use one of iso, datetime, words, dmy, mdy, ymd'],
    [{ format: 'arrival', path: undefined, date: { path: 'd' } }, 'which the format arrival does not read'],
  ])('with the time %j is refused', (time, message) => {
    expect(problemsOf(time)).toEqual([expect.stringContaining(message)])
  })

  test.each([
    [
      'Europe/Berln',
      'must be a time zone such as Europe/Paris, found "Europe/Berln". Did you mean "Europe/Berlin"?',
    ],
    ['CET', 'must be a time zone such as Europe/Paris, found "CET"'],
  ])('with the zone %s is refused everywhere', (zone, message) => {
    const time = { path: 'ts', format: 'iso', zone }
    const coalesce = { name: '{device}', time }
    for (const source of [
      truckSource({ time }),
      truckSource({}, { fix: { time } }),
      truckSource({}, { coalesce }),
    ])
      expect(() => configOf([source])).toThrow(message.replaceAll('"', String.raw`\"`))
    expect(() => configOf([truckSource()], { defaults: { zone } })).toThrow(
      message.replaceAll('"', String.raw`\"`),
    )
    expect(() => configOf([truckSource()], { defaults: { zone: 'device' } })).toThrow('must be a time zone')
  })
})
