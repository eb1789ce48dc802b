import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isZoneName, zoneNamed, zoneProblem, type Zone } from '../../../src/mapping/times/zones.ts'

const zoneOf = (name: string): Zone => zoneNamed(name)!
const at = (text: string) => Date.parse(`${text}Z`)
const momentOf = (zone: string, local: string) => new Date(zoneOf(zone).momentAt(at(local))).toISOString()

const zones = [
  'Europe/Berlin',
  'America/New_York',
  'Australia/Lord_Howe',
  'Asia/Kolkata',
  'Africa/Casablanca',
  'Asia/Gaza',
  'Pacific/Apia',
  'America/St_Johns',
  'Europe/London',
  'Etc/GMT-3',
]

/** As Intl shows it, by a way of its own. */
function shownIn(zone: string, moment: number): number {
  const text = formatIn(zone).format(moment)
  return at(text.replace(' ', 'T')) + (moment % 1000)
}

const formats = new Map<string, Intl.DateTimeFormat>()

function formatIn(timeZone: string): Intl.DateTimeFormat {
  const known = formats.get(timeZone)
  const format = known ?? new Intl.DateTimeFormat('sv', { timeZone, dateStyle: 'short', timeStyle: 'medium' })
  formats.set(timeZone, format)
  return format
}

describe('a local time', () => {
  test.each([
    ['Europe/Berlin', '2024-05-13T05:46:12.280', '2024-05-13T03:46:12.280Z'],
    ['Europe/Berlin', '2024-01-13T05:46:12', '2024-01-13T04:46:12.000Z'],
    ['Europe/Berlin', '1975-07-01T12:00:00', '1975-07-01T11:00:00.000Z'],
    ['Europe/Berlin', '2100-07-01T12:00:00', '2100-07-01T10:00:00.000Z'],
    ['America/New_York', '2024-07-04T12:00:00', '2024-07-04T16:00:00.000Z'],
    ['Asia/Kolkata', '2024-07-04T12:00:00', '2024-07-04T06:30:00.000Z'],
    ['Australia/Lord_Howe', '2024-07-04T12:00:00', '2024-07-04T01:30:00.000Z'],
    ['Australia/Lord_Howe', '2024-01-04T12:00:00', '2024-01-04T01:00:00.000Z'],
    // In Ramadan the clocks of Morocco go back.
    ['Africa/Casablanca', '2024-03-01T12:00:00', '2024-03-01T11:00:00.000Z'],
    ['Africa/Casablanca', '2024-03-20T12:00:00', '2024-03-20T12:00:00.000Z'],
    ['Etc/GMT-3', '2024-07-04T12:00:00', '2024-07-04T09:00:00.000Z'],
  ])('in %s of %s is %s', (zone, local, moment) => {
    expect(momentOf(zone, local)).toBe(moment)
    expect(zoneOf(zone).changeAt(at(local))).toBeNull()
  })

  test.each([
    ['Europe/Berlin', '2024-10-27T02:00:00', '2024-10-27T00:00:00.000Z'],
    ['Europe/Berlin', '2024-10-27T02:30:00', '2024-10-27T00:30:00.000Z'],
    ['Europe/Berlin', '2024-10-27T02:59:59.999', '2024-10-27T00:59:59.999Z'],
    ['America/New_York', '2024-11-03T01:30:00', '2024-11-03T05:30:00.000Z'],
    ['Australia/Lord_Howe', '2024-04-07T01:45:00', '2024-04-06T14:45:00.000Z'],
    ['Africa/Casablanca', '2024-03-10T02:30:00', '2024-03-10T01:30:00.000Z'],
  ])('in %s that is repeated, %s, is the first moment: %s', (zone, local, moment) => {
    expect(momentOf(zone, local)).toBe(moment)
    expect(zoneOf(zone).changeAt(at(local))).toBe('repeated')
  })

  test.each([
    ['Europe/Berlin', '2024-03-31T02:00:00', '2024-03-31T01:00:00.000Z'],
    ['Europe/Berlin', '2024-03-31T02:30:00', '2024-03-31T01:30:00.000Z'],
    ['America/New_York', '2024-03-10T02:30:00', '2024-03-10T07:30:00.000Z'],
    ['Australia/Lord_Howe', '2024-10-06T02:15:00', '2024-10-05T15:45:00.000Z'],
    ['Africa/Casablanca', '2024-04-14T02:30:00', '2024-04-14T02:30:00.000Z'],
    // Late in the evening, which is the next day in UTC.
    ['America/Nuuk', '2024-03-30T23:30:00', '2024-03-31T01:30:00.000Z'],
    // A whole day was skipped at the date line.
    ['Pacific/Apia', '2011-12-30T10:00:00', '2011-12-30T20:00:00.000Z'],
  ])('in %s that is skipped, %s, is moved forward: %s', (zone, local, moment) => {
    expect(momentOf(zone, local)).toBe(moment)
    expect(zoneOf(zone).changeAt(at(local))).toBe('skipped')
  })

  test.each([
    ['2024-10-27T01:59:59.999', '2024-10-26T23:59:59.999Z'],
    ['2024-10-27T03:00:00', '2024-10-27T02:00:00.000Z'],
    ['2024-03-31T01:59:59.999', '2024-03-31T00:59:59.999Z'],
    ['2024-03-31T03:00:00', '2024-03-31T01:00:00.000Z'],
  ])('in Berlin at the edge of a change, %s, is %s', (local, moment) => {
    expect(momentOf('Europe/Berlin', local)).toBe(moment)
    expect(zoneOf('Europe/Berlin').changeAt(at(local))).toBeNull()
  })

  test('outside of gaps is the local time of its moment, from 1970 to 2100', () => {
    const time = fc.integer({ min: Date.UTC(1970, 0, 2), max: Date.UTC(2100, 11, 31) })
    fc.assert(
      fc.property(fc.constantFrom(...zones), time, (name, local) => {
        const zone = zoneOf(name)
        const moment = zone.momentAt(local)
        const back = moment + zone.offsetAt(moment)
        expect(shownIn(name, moment)).toBe(back)
        // The last day of the range may be that of a change.
        expect(zone.changeAt(local) === 'skipped' ? back > local : back === local).toBe(true)
      }),
      { numRuns: 3000 },
    )
  })

  test('within two days of each change of a zone follows the rule', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...zones.slice(0, 5)),
        fc.integer({ min: 1970, max: 2099 }),
        fc.nat(365),
        (name, year, days) => {
          const zone = zoneOf(name)
          const change = nextChange(name, Date.UTC(year, 0, 1 + days))
          fc.pre(change !== null)
          const { at: moment, before, after } = change
          const earlier = Math.min(before, after)
          const later = Math.max(before, after)
          // The local times of the change are those between the two offsets.
          for (const local of [moment + earlier, moment + later - 1])
            expect(zone.changeAt(local)).toBe(before < after ? 'skipped' : 'repeated')
          for (const local of [moment + earlier - 1, moment + later]) expect(zone.changeAt(local)).toBeNull()
          // Either way the offset from before the change counts.
          expect(zone.momentAt(moment + earlier)).toBe(moment + earlier - before)
          expect(zone.momentAt(moment + later)).toBe(moment + later - after)
        },
      ),
      { numRuns: 200 },
    )
  })
})

const hourMs = 3_600_000

/** The first change within 400 days, found by steps through what Intl shows. */
function nextChange(name: string, start: number): { at: number; before: number; after: number } | null {
  const offsetAt = (moment: number) => shownIn(name, moment) - moment
  const before = offsetAt(start)
  for (let day = 1; day <= 60; day += 1) {
    const end = start + day * 24 * hourMs
    const after = offsetAt(end)
    if (after === before) continue
    let [low, high] = [end - 24 * hourMs, end]
    while (high - low > 1000) {
      const middle = Math.floor((low + high) / 2000) * 1000
      if (offsetAt(middle) === before) low = middle
      else high = middle
    }
    return { at: high, before, after }
  }
  return null
}

describe('the name of a zone', () => {
  test.each(['Europe/Berlin', 'Asia/Kolkata', 'Europe/Kyiv', 'utc', 'UTC', 'Etc/GMT-3', 'US/Eastern'])(
    '%s is known',
    (name) => expect(isZoneName(name)).toBe(true),
  )

  test.each([
    ['Europe/Berln', 'Europe/Berlin'],
    ['Berlin', 'Europe/Berlin'],
    ['new york', 'America/New_York'],
    ['America/New York', 'America/New_York'],
    ['Kolkata', 'Asia/Kolkata'],
  ])('%s is refused, and %s is proposed', (name, meant) => {
    expect(isZoneName(name)).toBe(false)
    expect(zoneProblem(name)).toContain(`Did you mean "${meant}"?`)
  })

  // Intl takes them for America/Los_Angeles, Asia/Calcutta and so on.
  test.each(['PST', 'IST', 'CET', 'BST', '+01:00', 'local', ''])('%j is refused', (name) => {
    expect(isZoneName(name)).toBe(false)
    expect(zoneProblem(name)).toContain('must be a time zone such as Europe/Paris, found')
  })
})
