// time-argument.ts: moments as people write them: `14:03` (today, local time), `2026-11-21T14:03`, or milliseconds.

import type { EpochMs } from '../std/clock.ts'

const forms = 'as 14:03 (today), 2026-11-21T14:03, 2026-11-21T14:03:20Z, or as milliseconds since 1970'

export type ParsedTime = { kind: 'time'; at: EpochMs } | { kind: 'invalid'; why: string }

const clockPattern = /^(\d{1,2}):(\d{2})(?::(\d{2})(?:\.(\d{1,3}))?)?$/
const datePattern =
  /^(\d{4})-(\d{2})-(\d{2})(?:[T ](\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,3}))?)?(Z|[+-]\d{2}:\d{2})?)?$/

/** Local times are those of this process; `now` says which day is today. */
export function parseTimeArgument(text: string, now: EpochMs): ParsedTime {
  const trimmed = text.trim()
  if (/^\d+$/.test(trimmed)) return fromDigits(trimmed)
  const clock = clockPattern.exec(trimmed)
  if (clock !== null) {
    const today = new Date(now)
    const [, hour, minute, second, fraction] = clock
    const day = [today.getFullYear(), today.getMonth() + 1, today.getDate()] as const
    return local(day, [hour, minute, second, fraction])
  }
  const date = datePattern.exec(trimmed)
  if (date === null) return { kind: 'invalid', why: `A time is written ${forms}.` }
  const [, year, month, dayOfMonth, hour, minute, second, fraction, zone] = date
  const day = [Number(year), Number(month), Number(dayOfMonth)] as const
  if (zone === undefined) return local(day, [hour, minute, second, fraction])
  // Judged as if it were local to UTC, since Date takes the 31st of February.
  const inUtc = ofParts(day, [hour, minute, second, fraction], (...parts) => Date.UTC(...parts))
  if (inUtc === null || new Date(inUtc).getUTCDate() !== day[2]) return noSuchTime
  return { kind: 'time', at: inUtc - zoneMs(zone) }
}

const noSuchTime: ParsedTime = { kind: 'invalid', why: 'There is no such day or time.' }

function fromDigits(text: string): ParsedTime {
  if (text.length >= 12 && text.length <= 15) return { kind: 'time', at: Number(text) }
  const why =
    text.length === 10 ? 'That may be seconds; milliseconds have 13 digits.' : 'Milliseconds have 13 digits.'
  return { kind: 'invalid', why }
}

type Day = readonly [year: number, month: number, dayOfMonth: number]
type ClockTexts = readonly (string | undefined)[]
type Parts = [
  year: number,
  month: number,
  day: number,
  hour: number,
  minute: number,
  second: number,
  ms: number,
]

function local(day: Day, clock: ClockTexts): ParsedTime {
  const at = ofParts(day, clock, (...parts) => new Date(...parts).getTime())
  if (at === null) return noSuchTime
  const made = new Date(at)
  // A day that is not in the month, or an hour that is left out where clocks go forward, becomes another.
  const same = made.getDate() === day[2] && made.getHours() === Number(clock[0] ?? 0)
  return same ? { kind: 'time', at } : noSuchTime
}

function ofParts(day: Day, clock: ClockTexts, make: (...parts: Parts) => number): EpochMs | null {
  const [year, month, dayOfMonth] = day
  const [hour, minute, second] = [0, 1, 2].map((index) => Number(clock[index] ?? 0))
  if (
    month < 1 ||
    month > 12 ||
    dayOfMonth < 1 ||
    (hour ?? 0) > 23 ||
    (minute ?? 0) > 59 ||
    (second ?? 0) > 59
  )
    return null
  const ms = Number((clock[3] ?? '0').padEnd(3, '0'))
  return make(year, month - 1, dayOfMonth, hour ?? 0, minute ?? 0, second ?? 0, ms)
}

function zoneMs(zone: string): number {
  if (zone === 'Z') return 0
  const minutes = Number(zone.slice(1, 3)) * 60 + Number(zone.slice(4, 6))
  return (zone.startsWith('-') ? -minutes : minutes) * 60_000
}
