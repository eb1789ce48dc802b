import { describe, expect, test } from 'vitest'
import * as fc from 'fast-check'
import { compilePrivacy, roundDecimal, type PrivacyProfile } from '../../../src/mapping/privacy/privacy.ts'
import { compileSchedule } from '../../../src/mapping/privacy/schedule.ts'

const odometer = '","type":"OBD_LIFETIME_ODOMETER","value":"12.5","valueUnit":"KILOMETERS"}'
const trip = '","type":"TRIP","value":"12.5","valueUnit":"KILOMETERS"}'
const hours = '","type":"OBD_TOTAL_ENGINE_TIME","value":"7","valueUnit":"HOURS","assetPart":"ENGINE"}'
const fuel = '","type":"FUEL","value":"60","valueUnit":"PERCENT"}'

const gps =
  ',"gps":{"latitude":48.13743,"longitude":-11.57549,"speed":54.2,"speedUnits":"KILOMETERS_PER_HOUR",' +
  '"heading":95,"inMotion":true,"altitude":520}'
const parts = { gps, signals: [odometer, trip, hours, fuel], fields: ',"driver":"7"' }

const profile: PrivacyProfile = { round: null, hide: [], hours: null, outside: 'drop' }
const monday = Date.UTC(2026, 4, 4, 10)
const sunday = Date.UTC(2026, 4, 3, 10)

function sent(rest: Partial<PrivacyProfile>, moment = monday) {
  return compilePrivacy({ ...profile, ...rest })(parts, moment)
}

describe('a profile', () => {
  test('that withholds nothing does not change a payload', () => {
    expect(sent({})).toBe(parts)
  })

  test('rounds coordinates as decimals and withholds extra fields', () => {
    expect(sent({ round: 2 })).toEqual({
      gps:
        ',"gps":{"latitude":48.14,"longitude":-11.58,"speed":54.2,"speedUnits":"KILOMETERS_PER_HOUR",' +
        '"heading":95,"inMotion":true}',
      signals: parts.signals,
      fields: '',
    })
  })

  test.each(['GPS_LATITUDE', 'gnss.lng', 'LAST_LOCATION', 'GEOHASH'])(
    'that rounds withholds the signal %s, which would be exact',
    (type) => {
      const signal = `","type":"${type}","value":"48.13743"}`
      const withhold = compilePrivacy({ ...profile, round: 2 })
      expect(withhold({ gps, signals: [signal, fuel], fields: '' }, monday)?.signals).toEqual([fuel])
    },
  )

  test.each([
    ['speed', [odometer, trip, hours, fuel]],
    ['odometer', [hours, fuel]],
    ['hours', [odometer, trip, fuel]],
  ] as const)('hides the %s', (withheld, signals) => {
    const left = sent({ hide: [withheld] })
    expect(left?.signals).toEqual(signals)
    expect(left?.gps.includes('speed')).toBe(withheld !== 'speed')
    expect(left?.gps).toContain('"latitude":48.13743')
  })

  test('sends nothing when all values are withheld', () => {
    const withhold = compilePrivacy({ ...profile, hide: ['hours'] })
    expect(withhold({ gps: '', signals: [hours], fields: '' }, monday)).toBeNull()
  })

  test('sends nothing, or the position with one decimal, outside of working hours', () => {
    const working = { hours: compileSchedule('Mon-Fri 06:00-18:00', 'UTC') }
    expect(sent(working)).toBe(parts)
    expect(sent(working, sunday)).toBeNull()
    expect(sent({ ...working, outside: 'coarse' }, sunday)).toEqual({
      gps: ',"gps":{"latitude":48.1,"longitude":-11.6}',
      signals: [],
      fields: '',
    })
    expect(sent({ ...working, outside: 'coarse', round: 0 }, sunday)?.gps).toBe(
      ',"gps":{"latitude":48,"longitude":-12}',
    )
  })
})

describe('rounding', () => {
  test.each([
    [1.005, 2, 1.01],
    [-1.005, 2, -1.01],
    [48.85, 1, 48.9],
    [2.5, 0, 3],
    [-0.04, 1, 0],
    [1e-7, 3, 0],
    [-5.1e-7, 6, -0.000_001],
    [4.9e-7, 6, 0],
    [179.999_999, 3, 180],
    [8.345, 2, 8.35],
    [48.8566, 6, 48.8566],
  ])('%d to %d places is %d', (value, places, rounded) => {
    expect(Object.is(roundDecimal(value, places), rounded)).toBe(true)
  })

  test('differs by at most half a step, and is stable when repeated', () => {
    fc.assert(
      fc.property(fc.double({ min: -180, max: 180, noNaN: true }), fc.nat(6), (value, places) => {
        const rounded = roundDecimal(value, places)
        expect(Math.abs(rounded - value)).toBeLessThanOrEqual(0.5 / 10 ** places + 1e-12)
        expect(roundDecimal(rounded, places)).toBe(rounded)
        expect((String(rounded).split('.')[1] ?? '').length).toBeLessThanOrEqual(places)
      }),
    )
  })
})

describe('working hours', () => {
  const at = (text: string, zone: string, time: string) => compileSchedule(text, zone)(Date.parse(time))

  test.each([
    ['2026-05-04T05:59:59Z', false],
    ['2026-05-04T06:00:00Z', true],
    ['2026-05-04T17:59:59Z', true],
    ['2026-05-04T18:00:00Z', false],
    ['2026-05-09T09:00:00Z', true],
    ['2026-05-09T12:00:00Z', false],
    ['2026-05-10T09:00:00Z', false],
  ])('at %s it is work: %s', (time, working) => {
    expect(at('Mon-Fri 06:00-18:00; Sat 08:00-12:00', 'UTC', time)).toBe(working)
  })

  test.each([
    ['Europe/Paris', '2026-01-05T05:00:00Z', true],
    ['Europe/Paris', '2026-01-05T04:59:00Z', false],
    ['Europe/Paris', '2026-07-06T04:00:00Z', true],
    ['Asia/Kathmandu', '2026-01-05T00:15:00Z', true],
    ['Asia/Kathmandu', '2026-01-05T00:14:00Z', false],
    ['America/New_York', '2026-03-08T10:00:00Z', true],
    ['America/New_York', '2026-03-07T10:00:00Z', false],
    ['America/New_York', '2026-03-07T11:00:00Z', true],
  ])('06:00 in %s is known at %s: %s', (zone, time, working) => {
    expect(at('06:00-18:00', zone, time)).toBe(working)
  })

  test('of a night shift end on the next day, also across the end of the week', () => {
    expect(at('Sun 22:00-06:00', 'UTC', '2026-05-04T05:59:00Z')).toBe(true)
    expect(at('Sun 22:00-06:00', 'UTC', '2026-05-04T06:00:00Z')).toBe(false)
    expect(at('Fri-Mon 22:00-24:00', 'UTC', '2026-05-03T23:59:00Z')).toBe(true)
    expect(at('Mon,Wed 08:00-10:00,14:00-15:00', 'UTC', '2026-05-06T14:30:00Z')).toBe(true)
  })

  test('include both occurrences of an hour that the zone has twice', () => {
    const schedule = compileSchedule('Sun 02:00-03:00', 'Europe/Berlin')
    const open: string[] = []
    for (let moment = Date.UTC(2026, 9, 24, 22); moment < Date.UTC(2026, 9, 25, 6); moment += 900_000)
      if (schedule(moment)) open.push(new Date(moment).toISOString().slice(11, 16))
    expect(open).toEqual(['00:00', '00:15', '00:30', '00:45', '01:00', '01:15', '01:30', '01:45'])
  })

  test.each([
    ['Mon-Fri', 'Europe/Paris'],
    ['Mox 06:00-18:00', 'Europe/Paris'],
    ['Mon 6-18', 'Europe/Paris'],
    ['Mon 06:00-25:00', 'Europe/Paris'],
    ['Mon 06:00-18:00 07:00-08:00', 'Europe/Paris'],
    ['', 'Europe/Paris'],
    ['06:00-18:00', 'Europe/Atlantis'],
  ])('“%s” in %s is refused', (text, zone) => {
    expect(() => compileSchedule(text, zone)).toThrow(/has "|must be a time zone/)
  })

  test('agree with the local time of the zone at every moment', () => {
    const zones = ['Europe/Paris', 'Australia/Lord_Howe', 'America/St_Johns', 'Pacific/Chatham', 'UTC']
    fc.assert(
      fc.property(
        fc.constantFrom(...zones),
        fc.integer({ min: Date.UTC(1990, 0, 1), max: Date.UTC(2040, 0, 1) }),
        (zone, moment) => {
          const shown = new Intl.DateTimeFormat('en-GB', {
            timeZone: zone,
            weekday: 'short',
            hour: '2-digit',
            minute: '2-digit',
            hourCycle: 'h23',
          }).format(moment)
          const [day = '', time = ''] = shown.split(' ')
          const [hour, minute] = time.split(':').map(Number)
          const working = !['Sat', 'Sun'].includes(day) && (hour ?? 0) * 60 + (minute ?? 0) >= 370
          expect(compileSchedule('Mon-Fri 06:10-24:00', zone)(moment)).toBe(working)
        },
      ),
      { numRuns: 300 },
    )
  })
})
