// calendar.ts: days, hours and minutes as epoch milliseconds, and the digits they are written with.

/** NaN where there is no such day or time of day, or a part of it is NaN. */
export function momentOf(
  year: number,
  month: number,
  day: number,
  hour: number,
  minute: number,
  second: number,
): number {
  const valid =
    month >= 1 &&
    month <= 12 &&
    day >= 1 &&
    day <= daysIn(year, month) &&
    hour <= 23 &&
    minute <= 59 &&
    // A leap second is told as :60 and counted as the first second of the next minute.
    second <= 60
  if (!valid) return Number.NaN
  return ((daysBefore(year, month, day) * 24 + hour) * 60 + minute) * 60_000 + second * 1000
}

function daysIn(year: number, month: number): number {
  if (month === 2) return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31
}

/**
 * Days since 1970-01-01 in the Gregorian calendar; the year is counted from March, so that a leap day ends
 * it.
 */
function daysBefore(year: number, month: number, day: number): number {
  const marchYear = month > 2 ? year : year - 1
  const era = Math.floor(marchYear / 400)
  const yearOfEra = marchYear - era * 400
  const dayOfYear = Math.floor((153 * (month > 2 ? month - 3 : month + 9) + 2) / 5) + day - 1
  const dayOfEra = yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear
  return era * 146_097 + dayOfEra - 719_468
}

export function isDigitAt(text: string, at: number): boolean {
  const unit = text.charCodeAt(at)
  return unit >= 0x30 && unit <= 0x39
}

/** NaN where there are no two digits. */
export function twoDigits(text: string, at: number): number {
  return isDigitAt(text, at) && isDigitAt(text, at + 1)
    ? (text.charCodeAt(at) - 0x30) * 10 + text.charCodeAt(at + 1) - 0x30
    : Number.NaN
}

/** Where the run of digits that starts at `start` ends. */
export function digitsEnd(text: string, start: number): number {
  let at = start
  while (isDigitAt(text, at)) at += 1
  return at
}
