// Local times in every zone of the runtime: a moment is written as Intl shows it, and read again. A repeated time
// is the first of its moments, and a skipped one is moved by what is skipped (docs/mapping.md).

import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { compileTimeReading } from '../../../src/mapping/times/fix-time.ts'
import { compileTime, type TimeFormat } from '../../../src/mapping/times/times.ts'
import { zoneOf, type Zone } from '../../../src/mapping/times/zones.ts'
import { placed } from '../../support/placed.ts'

const hourMs = 3_600_000
const zones = Intl.supportedValuesOf('timeZone').filter((name) => name.includes('/'))
const formats = new Map<string, Intl.DateTimeFormat>()

/** `2024-05-13 05:46:12` */
function shownIn(timeZone: string, moment: number): string {
  const known = formats.get(timeZone)
  const format = known ?? new Intl.DateTimeFormat('sv', { timeZone, dateStyle: 'short', timeStyle: 'medium' })
  formats.set(timeZone, format)
  return format.format(moment)
}

const localOf = (shown: string) => Date.parse(`${shown.replace(' ', 'T')}Z`)
const offsetAt = (zone: string, moment: number) => localOf(shownIn(zone, moment)) - moment

type Written = { format: TimeFormat; time: unknown; date?: string }

/** One local time in each way that has no zone. */
function waysToWrite(shown: string): Written[] {
  const [day = '', clock = ''] = shown.split(' ')
  const [year = '', month = '', date = ''] = day.split('-')
  const [hours = '', ...smaller] = clock.split(':')
  const half = `${((Number(hours) + 11) % 12) + 1}:${smaller.join(':')} ${Number(hours) < 12 ? 'AM' : 'PM'}`
  const word = new Date(`${day}T00:00Z`).toLocaleString('en-US', { month: 'short', timeZone: 'UTC' })
  const digits = clock.replaceAll(':', '')
  return [
    { format: 'iso', time: `${day}T${clock}` },
    { format: 'datetime', time: shown },
    { format: 'compact', time: `${year}${month}${date}${digits}` },
    { format: 'words', time: `${date} ${word} ${year} ${clock}` },
    { format: 'dmy', time: `${date}.${month}.${year} ${clock}` },
    { format: 'mdy', time: `${Number(month)}/${Number(date)}/${year}, ${half}` },
    { format: 'ymd', time: `${year}/${month}/${date} ${clock}` },
    { format: 'dmy', time: `${clock} ${date}-${month}-${year}` },
    { format: 'dmy', time: Number(digits), date: `${date}/${month}/${year}` },
    { format: 'iso', time: clock, date: day },
  ]
}

function readAll(shown: string, zone: Zone): number[] {
  return waysToWrite(shown).map(({ format, ...record }) => {
    const path = { path: 'time', format, ...(record.date !== undefined && { date: { path: 'date' } }) }
    return compileTime(format, compileTimeReading(path))(placed(record), zone)
  })
}

const moments = fc.integer({ min: Date.UTC(1971, 0, 1) / 1000, max: Date.UTC(2099, 11, 31) / 1000 })

describe('a local time of any zone', () => {
  test('is read in each format as the first moment that Intl shows so', () => {
    fc.assert(
      fc.property(fc.constantFrom(...zones), moments, (name, seconds) => {
        const moment = seconds * 1000
        const shown = shownIn(name, moment)
        expect(new Set(readAll(shown, zoneOf(name)!))).toEqual(new Set([firstShownAs(shown, name, moment)]))
      }),
      { numRuns: 300 },
    )
  })

  test('is read by the same rule within three hours of a change of the clock', () => {
    let changes = 0
    fc.assert(
      fc.property(
        fc.constantFrom(...zones),
        moments,
        fc.integer({ min: -180, max: 180 }),
        (name, seconds, minutes) => {
          const change = changeAfter(name, seconds * 1000)
          if (change === null) return
          changes += 1
          const { at, before, after } = change
          const moment = at + minutes * 60_000
          const shown = shownIn(name, moment)
          const zone = zoneOf(name)!
          expect(new Set(readAll(shown, zone))).toEqual(new Set([firstShownAs(shown, name, moment)]))
          if (after <= before) return
          // What is skipped: the local times from the change to the end of the gap.
          const skipped = at + before + Math.floor(((after - before) * (minutes + 180)) / 361_000) * 1000
          const text = new Date(skipped).toISOString().slice(0, 19).replace('T', ' ')
          const read = new Set(readAll(text, zone))
          expect(read).toEqual(new Set([skipped - before]))
          expect(localOf(shownIn(name, skipped - before))).toBe(skipped + after - before)
        },
      ),
      { numRuns: 200 },
    )
    expect(changes).toBeGreaterThan(20)
  })
})

/** Of the moments around it that Intl shows in the same way. */
function firstShownAs(shown: string, zone: string, moment: number): number {
  const local = localOf(shown)
  const candidates = [-30, 0, 30].map((hours) => local - offsetAt(zone, moment + hours * hourMs))
  return Math.min(...candidates.filter((one) => shownIn(zone, one) === shown))
}

/** The first change within 250 days, found in steps of a day through what Intl shows. */
function changeAfter(zone: string, start: number): { at: number; before: number; after: number } | null {
  const before = offsetAt(zone, start)
  for (let day = 1; day <= 250; day += 1) {
    let [low, high] = [start + (day - 1) * 24 * hourMs, start + day * 24 * hourMs]
    const after = offsetAt(zone, high)
    if (after === before) continue
    while (high - low > 1000) {
      const middle = Math.floor((low + high) / 2000) * 1000
      if (offsetAt(zone, middle) === before) low = middle
      else high = middle
    }
    return { at: high, before, after }
  }
  return null
}
