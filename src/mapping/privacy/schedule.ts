// schedule.ts: working hours, such as "Mon-Fri 06:00-18:00; Sat 08:00-12:00", in a time zone.
//
//   entry     days, blank, hours; entries are separated by ";" and add up
//   days      Mon, Mon-Fri, Mon,Wed,Fri, Fri-Mon; omitted: every day
//   hours     06:00-18:00, several with commas; 22:00-06:00 ends on the next day; 24:00 is the end of a day
//
// The week is a bitmap of its minutes. Intl gives the zone's offset once per quarter of an hour: offsets
// change only at such a moment. The last 512 offsets are cached, since a backlog has mixed times; then the
// cache is cleared.

import type { EpochMs } from '../../std/clock.ts'
import { Malformed } from '../path/text-cursor.ts'
import { quote } from '../../std/quote.ts'

/** Whether the moment is within the working hours. */
export type Schedule = (moment: EpochMs) => boolean

const days = ['monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday', 'sunday']
const dayMinutes = 1440
const weekMinutes = 7 * dayMinutes
const quarterMs = 15 * 60_000
/** Minutes from the start of a week, Monday 00:00, to 1970-01-01 00:00, a Thursday. */
const epochMinute = 3 * dayMinutes
const quartersMax = 512

/** Throws Malformed for a text that is not a schedule, or an unknown zone. */
export function compileSchedule(text: string, zone: string): Schedule {
  const open = minutesOf(text)
  const offsetAt = compileZone(zone)
  return (moment) => {
    const minute = Math.floor(moment / 60_000) + offsetAt(moment) + epochMinute
    return open[((minute % weekMinutes) + weekMinutes) % weekMinutes] === 1
  }
}

function minutesOf(text: string): Uint8Array {
  const open = new Uint8Array(weekMinutes)
  for (const entry of text.split(';')) {
    const words = entry.trim().split(/\s+/)
    const hours = words.pop() ?? ''
    if (words.length > 1 || hours === '') return malformed(entry, text)
    const which = words[0] === undefined ? days.map((_, day) => day) : daysOf(words[0], text)
    for (const range of hours.split(',')) {
      const [start, end, ...more] = range.split('-').map((time) => minuteOf(time, text))
      if (start === undefined || end === undefined || more.length > 0 || start === dayMinutes)
        return malformed(range, text)
      const length = end > start ? end - start : end - start + dayMinutes
      for (const day of which)
        for (let minute = 0; minute < length; minute += 1)
          open[(day * dayMinutes + start + minute) % weekMinutes] = 1
    }
  }
  return open
}

function daysOf(word: string, text: string): number[] {
  const found: number[] = []
  for (const range of word.split(',')) {
    const [first, last = first, ...more] = range.split('-').map((name) => dayOf(name, text))
    if (first === undefined || last === undefined || more.length > 0) return malformed(range, text)
    for (let day = first; ; day = (day + 1) % 7) {
      found.push(day)
      if (day === last) break
    }
  }
  return found
}

function dayOf(name: string, text: string): number {
  const word = name.toLowerCase()
  const day = days.findIndex((full) => word === full || word === full.slice(0, 3))
  return day === -1 ? malformed(name, text) : day
}

function minuteOf(time: string, text: string): number {
  const match = /^(\d{1,2}):(\d{2})$/.exec(time)
  const minute = Number(match?.[1]) * 60 + Number(match?.[2])
  return minute <= dayMinutes && Number(match?.[2]) < 60 ? minute : malformed(time, text)
}

function malformed(part: string, text: string): never {
  throw new Malformed(
    `has ${quote(part.trim(), 40)} in ${quote(text, 120)}. ` +
      'Write it as "Mon-Fri 06:00-18:00; Sat 08:00-12:00"',
  )
}

/** Minutes to add to UTC. */
function compileZone(zone: string): (moment: EpochMs) => number {
  const format = zoneFormat(zone)
  const known = new Map<number, number>()
  let lastQuarter = Number.NaN
  let lastOffset = 0
  return (moment) => {
    const quarter = Math.floor(moment / quarterMs)
    if (quarter === lastQuarter) return lastOffset
    let offset = known.get(quarter)
    if (offset === undefined) {
      if (known.size >= quartersMax) known.clear()
      offset = offsetIn(format, quarter * quarterMs)
      known.set(quarter, offset)
    }
    lastQuarter = quarter
    lastOffset = offset
    return offset
  }
}

function zoneFormat(zone: string): Intl.DateTimeFormat {
  try {
    return new Intl.DateTimeFormat('en', {
      timeZone: zone,
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      era: 'short',
    })
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    throw new Malformed(`is ${quote(zone, 60)}, which is not a time zone such as Europe/Paris`)
  }
}

/** The limit of Intl (some 270,000 years). Beyond it the offset is 0. */
const momentMax = 8_640_000_000_000_000

function offsetIn(format: Intl.DateTimeFormat, moment: EpochMs): number {
  if (!(Math.abs(moment) <= momentMax)) return 0
  const parts = new Map<string, string>()
  for (const { type, value } of format.formatToParts(moment)) parts.set(type, value)
  const part = (type: string) => Number(parts.get(type))
  const year = parts.get('era')?.startsWith('B') ? 1 - part('year') : part('year')
  const shown = Date.UTC(year, part('month') - 1, part('day'), part('hour'), part('minute'))
  const offset = Math.round((shown - moment) / 60_000)
  // Date.UTC maps the years 0 to 99 to 1900 to 1999, which gives a wrong offset.
  return Number.isFinite(offset) && Math.abs(offset) <= dayMinutes ? offset : 0
}
