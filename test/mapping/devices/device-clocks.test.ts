import { describe, expect, test } from 'vitest'
import { createDeviceClocks, isUnset } from '../../../src/mapping/devices/device-clocks.ts'

const noon = Date.UTC(2026, 4, 4, 12)
const minute = 60_000
const open = (options = {}) =>
  createDeviceClocks({
    futureMaxMs: 5 * minute,
    pastMaxMs: Infinity,
    samples: 15,
    devicesMax: 1000,
    ...options,
  })

describe('a device’s clock', () => {
  test('is shown by the median error of its last messages', () => {
    const clocks = open({ samples: 5 })
    for (const skew of [100, 100, 3_600_000, 7_200_000, 90]) clocks.observe('truck-7', noon - skew, noon, 0)
    expect(clocks.view('truck-7')).toMatchObject({ skewMs: 100, messages: 5, lastSeen: noon })
    for (const skew of [-2000, -2000, -2000]) clocks.observe('truck-7', noon + 1 - skew, noon + 1, 0)
    expect(clocks.view('truck-7')).toMatchObject({ skewMs: -2000, messages: 8, lastSeen: noon + 1 })
    expect(clocks.view('truck-8')).toBeNull()
    expect([...clocks.views()].map(([device]) => device)).toEqual(['truck-7'])
  })

  test('has its messages since our own time was corrected counted apart', () => {
    const clocks = open()
    const skews = (...all: number[]) => all.forEach((ms) => clocks.observe('truck-7', noon - ms, noon, 0))
    skews(10, 20)
    expect(clocks.view('truck-7')).toMatchObject({ messages: 2, messagesSince: 2, spreadMs: 10 })
    clocks.ownTimeCorrected()
    expect(clocks.view('truck-7')).toMatchObject({ messages: 2, messagesSince: 0 })
    skews(30)
    expect(clocks.view('truck-7')).toMatchObject({ messages: 3, messagesSince: 1, spreadMs: 20 })
  })

  test('is in the future beyond the limit, by our clock as corrected by the service', () => {
    const clocks = open()
    const ahead = (ms: number, offsetMs: number | null) =>
      clocks.observe('truck-7', noon + ms, noon, offsetMs)
    expect(ahead(5 * minute, 0)).toBe('ok')
    expect(ahead(5 * minute + 1, 0)).toBe('future')
    expect(ahead(5 * minute + 1, minute)).toBe('ok')
    expect(ahead(5 * minute, -minute)).toBe('future')
    expect(clocks.counters().future).toBe(2)
  })

  test('is not judged while our own time is unknown, unless the device clock was never set', () => {
    const clocks = open()
    expect(clocks.observe('truck-7', noon + 900 * minute, noon, null)).toBe('ok')
    expect(clocks.observe('truck-7', 12_000, noon, null)).toBe('unset')
    expect(clocks.observe('truck-7', Date.UTC(2019, 0, 1), noon, null)).toBe('ok')
    expect(clocks.counters()).toMatchObject({ future: 0, old: 0 })
  })

  test('can be behind by any time, which is counted', () => {
    const clocks = open()
    expect(clocks.observe('truck-7', Date.UTC(2019, 0, 1), noon, 0)).toBe('ok')
    expect(clocks.counters().old).toBe(1)
  })
})

test.each([
  ['1970-01-01T00:00:00Z', true],
  ['1970-12-31T00:00:00Z', true],
  ['1969-12-31T23:59:59Z', true],
  ['1972-01-01T00:00:00Z', false],
  ['1980-01-06T00:00:10Z', true],
  ['1980-12-30T00:00:00Z', true],
  ['1982-01-01T00:00:00Z', false],
  ['1999-08-22T00:00:00Z', true],
  ['2000-01-01T00:00:40Z', true],
  ['2000-12-31T00:00:00Z', true],
  ['2001-06-01T00:00:00Z', false],
  ['2026-05-04T12:00:00Z', false],
  ['2099-12-31T23:59:59Z', false],
  ['2100-01-01T00:00:00Z', true],
  ['2106-02-07T06:28:15Z', true],
])('%s comes from a clock that was never set: %s', (time, unset) => {
  expect(isUnset(Date.parse(time))).toBe(unset)
})

describe('when many devices have the same clock error', () => {
  const skewed = (skews: readonly number[]) => {
    const clocks = open()
    for (const [n, skew] of skews.entries()) clocks.observe(`truck-${n}`, noon - skew, noon, null)
    return clocks.commonSkew(noon + minute)
  }
  const hour = 60 * minute

  test('our clock is reported', () => {
    expect(skewed([hour, hour + 900, hour - 2000, hour, hour + 30_000, 0, 5])).toEqual({
      skewMs: hour,
      devices: 5,
      judged: 7,
    })
    expect(skewed([-hour, -hour, -hour, -hour, -hour])).toMatchObject({ skewMs: -hour })
  })

  test.each([
    ['four devices are too few', [hour, hour, hour, hour]],
    ['the others are right', [hour, hour, hour, hour, hour, 0, 0, 0, 0]],
    ['each is off by its own', [hour, 2 * hour, 3 * hour, 4 * hour, 5 * hour, 6 * hour]],
    ['it is below the limit', [minute, minute, minute, minute, minute]],
  ])('our clock is not reported if %s', (_, skews) => {
    expect(skewed(skews)).toBeNull()
  })

  test('only devices with messages in the last hour are compared', () => {
    const clocks = open()
    for (let n = 0; n < 8; n += 1) clocks.observe(`truck-${n}`, noon - hour, noon, null)
    expect(clocks.commonSkew(noon + hour)).not.toBeNull()
    expect(clocks.commonSkew(noon + hour + 1)).toBeNull()
  })
})

test('at its bound devices without recent messages are forgotten, and an active one is not', () => {
  const clocks = open({ devicesMax: 10 })
  for (let n = 0; n < 100; n += 1) {
    clocks.observe('busy', noon, noon + 7, 0)
    clocks.observe(`seen-once-${n}`, noon, noon, 0)
  }
  const { devices, evictions } = clocks.counters()
  expect(devices).toBeLessThanOrEqual(10)
  expect(devices + evictions).toBe(101)
  expect(clocks.view('busy')).toMatchObject({ skewMs: 7, messages: 100, lastSeen: noon + 7 })
  expect(clocks.view('seen-once-99')).toMatchObject({ skewMs: 0, messages: 1, lastSeen: noon })
})
