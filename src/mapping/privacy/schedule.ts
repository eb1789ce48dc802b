// schedule.ts: working hours, such as "Mon-Fri 06:00-18:00; Sat 08:00-12:00", in a time zone.
//
//   entry     days, blank, hours; entries are separated by ";" and add up
//   days      Mon, Mon-Fri, Mon,Wed,Fri, Fri-Mon; omitted: every day
//   hours     06:00-18:00, several with commas; 22:00-06:00 ends on the next day; 24:00 is the end of a day
//
// The week is a bitmap of its minutes.

import type { EpochMs } from '../../std/clock.ts'
import { Malformed } from '../path/text-cursor.ts'
import { quote } from '../../std/quote.ts'
import { zoneNamed, zoneProblem, type Zone } from '../times/zones.ts'

/** Whether the moment is within the working hours. */
export type Schedule = (moment: EpochMs) => boolean

const days = ['monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday', 'sunday']
const dayMinutes = 1440
const weekMinutes = 7 * dayMinutes
/** Minutes from the start of a week, Monday 00:00, to 1970-01-01 00:00, a Thursday. */
const epochMinute = 3 * dayMinutes

/** Throws Malformed for a text that is not a schedule, or an unknown zone. */
export function compileSchedule(text: string, zone: string): Schedule {
  const open = minutesOf(text)
  const { offsetAt } = zoneWith(zone)
  return (moment) => {
    const minute = Math.floor((moment + offsetAt(moment)) / 60_000) + epochMinute
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

function zoneWith(name: string): Zone {
  const zone = zoneNamed(name)
  if (zone === null) throw new Malformed(zoneProblem(name))
  return zone
}
