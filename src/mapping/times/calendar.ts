// calendar.ts: days and times of day as epoch milliseconds, and the two digits they are written with.

import { isDigitAt } from '../path/value.ts'

/** `timeOfDay` in milliseconds. NaN for a day that does not exist, or where a part is NaN. */
export function momentOf(year: number, month: number, day: number, timeOfDay: number): number {
  const exists = month >= 1 && month <= 12 && day >= 1 && day <= daysIn(year, month)
  return exists ? daysBefore(year, month, day) * 86_400_000 + timeOfDay : Number.NaN
}

/** Milliseconds since midnight; NaN for a time that does not exist, or where a part is NaN. */
export function timeOfDay(hour: number, minute: number, second: number): number {
  // A leap second is written as :60 and counts as the first second of the next minute.
  const exists = hour <= 23 && minute <= 59 && second <= 60
  return exists ? (hour * 60 + minute) * 60_000 + second * 1000 : Number.NaN
}

function daysIn(year: number, month: number): number {
  if (month === 2) return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31
}

/** Days since 1970-01-01 in the Gregorian calendar. Years begin in March, so that a leap day ends one. */
function daysBefore(year: number, month: number, day: number): number {
  const marchYear = month > 2 ? year : year - 1
  const era = Math.floor(marchYear / 400)
  const yearOfEra = marchYear - era * 400
  const dayOfYear = Math.floor((153 * (month > 2 ? month - 3 : month + 9) + 2) / 5) + day - 1
  const dayOfEra = yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear
  return era * 146_097 + dayOfEra - 719_468
}

/** NaN for anything but two digits. */
export function twoDigits(text: string, at: number): number {
  return isDigitAt(text, at) && isDigitAt(text, at + 1)
    ? (text.charCodeAt(at) - 0x30) * 10 + text.charCodeAt(at + 1) - 0x30
    : Number.NaN
}

/** The hour of 24, where AM or PM is behind it. */
export function hourOfHalf(hour: number, half: string | undefined): number {
  if (half === undefined) return hour
  return hour >= 1 && hour <= 12 ? (hour % 12) + (half.toLowerCase() === 'pm' ? 12 : 0) : Number.NaN
}

/** The first three decimals of a second; the others are cut off. */
export function millisecondsIn(text: string, start = 0, end = text.length): number {
  let ms = 0
  for (let at = start, unitMs = 100; at < end && unitMs >= 1; at += 1, unitMs /= 10)
    ms += unitMs * (text.charCodeAt(at) - 0x30)
  return ms
}
