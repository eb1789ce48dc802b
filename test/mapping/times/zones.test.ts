import { describe, expect, test } from 'vitest'
import { isZoneName, zoneNamed, zoneProblem, type Zone } from '../../../src/mapping/times/zones.ts'

const zoneOf = (name: string): Zone => zoneNamed(name)!
const at = (text: string) => Date.parse(`${text}Z`)
const momentOf = (zone: string, local: string) => new Date(zoneOf(zone).momentAt(at(local))).toISOString()

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
})

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
