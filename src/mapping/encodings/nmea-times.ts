// nmea-times.ts: the times of the fixes of a message with sentences of NMEA 0183. RMC and ZDA have a date,
// GGA and GLL the time of day only.
//
// A receiver writes its fixes one after the other, and a message may end between the sentences of one. So a
// fix without a date has that of the fix beside it in the message, also across midnight, where the two are
// within an hour. A day is never guessed: alone, or far from every date, a GGA has no time.

import { momentOf, timeOfDay, twoDigits } from '../times/calendar.ts'

/** The values of its sentences. */
type Fix = Readonly<Record<string, string | number | undefined>>

const dayMs = 86_400_000
const besideMs = 3_600_000

/** UTC; NaN for a fix whose time is not known, or does not exist. */
export function timesOfFixes(fixes: readonly Fix[]): number[] {
  const times = fixes.map((fix) => midnightOf(fix) + clockOf(fix))
  /** Of each fix the next time behind it that has a date of its own. */
  const behind: number[] = []
  for (let at = fixes.length - 1, next = Number.NaN; at >= 0; at -= 1) {
    behind[at] = next
    next = Number.isNaN(times[at]) ? next : times[at]!
  }
  for (const [at, fix] of fixes.entries())
    if (fix['date'] === undefined) times[at] = nearestOf(clockOf(fix), [times[at - 1], behind[at]])
  return times
}

/** The moment with this time of day that is nearest to one of `others`, within an hour of it; else NaN. */
function nearestOf(clock: number, others: readonly (number | undefined)[]): number {
  let nearest = Number.NaN
  let nearestMs = besideMs
  for (const other of others) {
    if (other === undefined) continue
    const today = Math.floor(other / dayMs) * dayMs + clock
    for (const moment of [today - dayMs, today, today + dayMs]) {
      const gapMs = Math.abs(moment - other)
      if (!(gapMs <= nearestMs)) continue
      nearest = moment
      nearestMs = gapMs
    }
  }
  return nearest
}

/** Years before 80 are after 2000. */
function midnightOf({ ['date']: date }: Fix): number {
  if (typeof date !== 'string' || !/^\d{6}$/.test(date)) return Number.NaN
  const year = twoDigits(date, 4)
  return momentOf(year < 80 ? 2000 + year : 1900 + year, twoDigits(date, 2), twoDigits(date, 0), 0)
}

function clockOf({ ['timeOfDay']: written }: Fix): number {
  if (typeof written !== 'string' || !/^\d{6}(\.\d*)?$/.test(written)) return Number.NaN
  const ms = Number(written.slice(7, 10).padEnd(3, '0'))
  return timeOfDay(twoDigits(written, 0), twoDigits(written, 2), twoDigits(written, 4)) + ms
}
