// time-argument.ts: times as a person types them: `14:03` (today), `2026-11-21T14:03`, `2h` (ago), or
// milliseconds.
// Without a zone a time is local to this process.

import type { EpochMs } from './clock.ts'
import { parseDuration } from './quantity.ts'

export type ParsedTime = { kind: 'time'; at: EpochMs } | { kind: 'invalid'; why: string }

const noSuchTime: ParsedTime = { kind: 'invalid', why: 'There is no such day or time.' }
const unknownForm: ParsedTime = {
  kind: 'invalid',
  why: 'Write a time as 14:03 (today), 2026-11-21T14:03, 2026-11-21T14:03:20Z, 2h (ago), or in milliseconds since 1970.',
}

const clockPattern = /^(\d{1,2}):(\d{2})(?::(\d{2})(?:\.(\d{1,3}))?)?$/
const datePattern =
  /^(\d{4})-(\d{2})-(\d{2})(?:[T ](\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,3}))?)?(Z|[+-]\d{2}:\d{2})?)?$/

/** `now` is what a duration is subtracted from, and says which day is today. */
export function parseTimeArgument(text: string, now: EpochMs): ParsedTime {
  const trimmed = text.trim()
  if (/^\d+$/.test(trimmed)) return milliseconds(trimmed)
  const agoMs = parseDuration(trimmed)
  if (agoMs !== undefined) return { kind: 'time', at: Math.max(0, Math.floor(now - agoMs)) }
  const clock = clockPattern.exec(trimmed)
  if (clock !== null) {
    const today = new Date(now)
    const [, hour, minute, second, fraction] = clock
    const day = [today.getFullYear(), today.getMonth() + 1, today.getDate()] as const
    return localTime(day, [hour, minute, second, fraction])
  }
  const date = datePattern.exec(trimmed)
  if (date === null) return unknownForm
  const [, year, month, dayOfMonth, hour, minute, second, fraction, zone] = date
  const day = [Number(year), Number(month), Number(dayOfMonth)] as const
  if (zone === undefined) return localTime(day, [hour, minute, second, fraction])
  // Checked in UTC, because Date accepts 31 February.
  const inUtc = timeOf(day, [hour, minute, second, fraction], (...parts) => Date.UTC(...parts))
  if (inUtc === null || new Date(inUtc).getUTCDate() !== day[2]) return noSuchTime
  return { kind: 'time', at: inUtc - zoneMs(zone) }
}

/** A date, or a date and time; null for any other text. */
export function parseDateArgument(text: string): EpochMs | null {
  const parsed = datePattern.test(text) ? parseTimeArgument(text, 0) : unknownForm
  return parsed.kind === 'time' ? parsed.at : null
}

/** The end of a time that a person gives as its length, or as a date. Null where it is missing, or past. */
export function endOfTime(
  now: EpochMs,
  { lasts, until }: { lasts?: string | undefined; until?: string | undefined },
): EpochMs | null {
  const lastsMs = lasts === undefined ? undefined : parseDuration(lasts)
  const end = until === undefined ? null : parseTimeArgument(until, now)
  const at = lastsMs !== undefined ? now + lastsMs : end?.kind === 'time' ? end.at : null
  return at !== null && at > now ? at : null
}

function milliseconds(digits: string): ParsedTime {
  if (digits.length >= 12 && digits.length <= 15) return { kind: 'time', at: Number(digits) }
  const why =
    digits.length === 10
      ? 'This may be seconds; milliseconds have 13 digits.'
      : 'Milliseconds have 13 digits.'
  return { kind: 'invalid', why }
}

type Day = readonly [year: number, month: number, dayOfMonth: number]
type ClockTexts = readonly (string | undefined)[]
type DateParts = [
  year: number,
  month: number,
  day: number,
  hour: number,
  minute: number,
  second: number,
  ms: number,
]

function localTime(day: Day, clock: ClockTexts): ParsedTime {
  const at = timeOf(day, clock, (...parts) => new Date(...parts).getTime())
  if (at === null) return noSuchTime
  const made = new Date(at)
  // Date turns a day that the month does not have, or an hour that summer time leaves out, into another one.
  const same = made.getDate() === day[2] && made.getHours() === Number(clock[0] ?? 0)
  return same ? { kind: 'time', at } : noSuchTime
}

/** Null where a part is out of its range. */
function timeOf(day: Day, clock: ClockTexts, make: (...parts: DateParts) => number): EpochMs | null {
  const [year, month, dayOfMonth] = day
  const [hour = 0, minute = 0, second = 0] = [0, 1, 2].map((index) => Number(clock[index] ?? 0))
  const ms = Number((clock[3] ?? '0').padEnd(3, '0'))
  const isDay = month >= 1 && month <= 12 && dayOfMonth >= 1
  return isDay && hour <= 23 && minute <= 59 && second <= 59
    ? make(year, month - 1, dayOfMonth, hour, minute, second, ms)
    : null
}

function zoneMs(zone: string): number {
  if (zone === 'Z') return 0
  const minutes = Number(zone.slice(1, 3)) * 60 + Number(zone.slice(4, 6))
  return (zone.startsWith('-') ? -minutes : minutes) * 60_000
}
