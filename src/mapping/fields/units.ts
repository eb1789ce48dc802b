// units.ts: the units of values in messages, and their ratios to the units that are sent: km/h, km, h,
// degrees.

import { createScale, product, ratioOf, type Ratio } from './decimal.ts'

const one = ratioOf('1')

/** 180 / pi, far more precise than any compass. */
const degreesPerRadian = ratioOf('57.29577951308232')

export const speedUnits = {
  'km/h': one,
  'm/s': ratioOf('3.6'),
  knots: ratioOf('1.852'),
  mph: ratioOf('1.609344'),
  'cm/s': ratioOf('0.036'),
} as const

export const angleUnits = {
  deg: one,
  '1e-7deg': ratioOf('0.0000001'),
  '0.01deg': ratioOf('0.01'),
  rad: degreesPerRadian,
} as const

/** `5m`, `10m`, `125m`: counters in such steps (J1939 SPN 917 and 245, LoRaWAN trackers). */
const distanceUnits = {
  km: one,
  m: ratioOf('0.001'),
  '5m': ratioOf('0.005'),
  '10m': ratioOf('0.01'),
  '125m': ratioOf('0.125'),
  mi: ratioOf('1.609344'),
} as const

/** `0.05h`: steps of three minutes (J1939 SPN 247). `duration`: a text, read as seconds (duration.ts). */
const durationUnits = {
  h: one,
  '0.05h': ratioOf('0.05'),
  min: overOne('60'),
  s: overOne('3600'),
  ms: overOne('3600000'),
  duration: overOne('3600'),
} as const

export const signalUnits = { ...distanceUnits, ...durationUnits } as const

/** By name; no two kinds of units share one. */
export const unitRatios: Readonly<Record<string, Ratio>> = { ...speedUnits, ...angleUnits, ...signalUnits }

/** The unit of a converted signal value, as the interface writes it (ingestion-api.md 2.5). */
export function valueUnitOf(unit: string): string {
  return Object.hasOwn(distanceUnits, unit) ? 'KILOMETERS' : 'HOURS'
}

/** Converts a number to the unit that is sent; NaN and the infinities stay. */
export type Convert = (value: number) => number

/**
 * `value` x scale, in `unit`, + offset. A computed value is rounded to `places`, so that 8.23 m/s is 29.628
 * km/h and not 29.628000000000004; one of more than 2^53 steps is exact. A value that needs no conversion
 * does not change.
 */
export function createConvert(unit: Ratio, scale: number, offset: number, places: number): Convert {
  const ratio = product(unit, ratioOf(String(scale)))
  const multiplier = Number(ratio.numerator)
  const divisor = Number(ratio.denominator)
  if (multiplier === divisor && offset === 0) return unchanged
  const precision = 10 ** places
  const exact = createScale(ratio, offset)
  return (value) => {
    const converted = (value * multiplier) / divisor + offset
    const steps = Math.round(converted * precision)
    if (Number.isSafeInteger(steps)) return steps / precision
    return Number.isFinite(converted) ? Number(exact(String(value)) ?? converted) : converted
  }
}

/** In steps of 1e-9 degrees, as other computed coordinates. */
const degreeSteps = 1e9

/**
 * 4851.396 to 48.8566: degrees and minutes in one number. An infinity where the minutes are 60 or more: the
 * number is no such value.
 */
export function degreesOfMinutes(value: number): number {
  if (!Number.isFinite(value)) return value
  const magnitude = Math.abs(value)
  const degrees = Math.trunc(magnitude / 100)
  const minutes = magnitude - degrees * 100
  if (minutes >= 60) return Number.POSITIVE_INFINITY
  const steps = Math.round((degrees + minutes / 60) * degreeSteps) / degreeSteps
  return value < 0 ? -steps : steps
}

export const unchanged: Convert = (value) => value

function overOne(text: string): Ratio {
  const { numerator, denominator } = ratioOf(text)
  return { numerator: denominator, denominator: numerator }
}

// `unit: dms`: degrees, minutes and seconds in a text, with a hemisphere before or behind them
// or a sign: `N 52 31.0`, `52°31'00.5"N`, `-13 22 40`. And the hemisphere in a text of `unit: ddmm`, such as
// `5231.000N`.

/** Longer texts are no angles. */
const lengthMax = 40

/** Degrees and minutes need a mark or a blank behind them: 0131 could be 1°31' as well as 13°1'. */
const angle =
  /^([NSEW])?\s*([+-])?(\d{1,3}(?:\.\d+)?)(?:(?:\s*[°d:]\s*|\s+)(\d{1,2}(?:\.\d+)?)(?:(?:\s*(['′m:])\s*|\s+)(\d{1,2}(?:\.\d+)?)\s*(["″s]|'')?|\s*['′m])?|\s*[°d])?\s*([NSEW])?$/i

/** Degrees; NaN for an absent value, an infinity for anything but an angle. A number is in degrees. */
export function degreesFromText(value: unknown): number {
  if (value === undefined || value === null || value === '') return Number.NaN
  if (typeof value === 'number') return value
  if (typeof value !== 'string' || value.length > lengthMax) return Number.POSITIVE_INFINITY
  const parts = angle.exec(value.trim()) ?? []
  const [, before, sign, degrees, minutes = '0', minuteMark, seconds = '0', secondMark, last] = parts
  // An s behind seconds is their mark in 33d52m10s, and the hemisphere in 33 52 10 S.
  const isHemisphere = secondMark?.toLowerCase() === 's' && minuteMark?.toLowerCase() !== 'm'
  if (isHemisphere && last !== undefined) return Number.POSITIVE_INFINITY
  // In 33d52m10S it may be either.
  if (secondMark === 'S' && before === undefined && last === undefined && !isHemisphere)
    return Number.POSITIVE_INFINITY
  const behind = isHemisphere ? secondMark : last
  const letter = (before ?? behind)?.toUpperCase()
  // Two hemispheres, a sign beside one, or a part behind a fraction: it is not known what is meant.
  const isTwice = before !== undefined && behind !== undefined
  const isSigned = letter !== undefined && sign !== undefined
  if (degrees === undefined || isTwice || isSigned) return Number.POSITIVE_INFINITY
  if (Number(minutes) >= 60 || Number(seconds) >= 60) return Number.POSITIVE_INFINITY
  const isBroken = (degrees.includes('.') && minutes !== '0') || (minutes.includes('.') && seconds !== '0')
  if (isBroken) return Number.POSITIVE_INFINITY
  const magnitude = Number(degrees) + Number(minutes) / 60 + Number(seconds) / 3600
  const rounded = Math.round(magnitude * degreeSteps) / degreeSteps
  return sign === '-' || letter === 'S' || letter === 'W' ? -rounded : rounded
}

const minutesAndHemisphere = /^(?:([NSEW]) ?)?(\d{3,5}(?:\.\d+)?)(?: ?,? ?([NSEW]))?$/i

/** `6751.3425 N` as the decimal text with its sign; every other value as it is. */
export function minutesFromText(value: unknown): unknown {
  if (typeof value !== 'string' || value.length > lengthMax) return value
  const [, before, minutes, behind] = minutesAndHemisphere.exec(value.trim()) ?? []
  const letter = (before ?? behind)?.toUpperCase()
  if (minutes === undefined || letter === undefined || (before !== undefined && behind !== undefined))
    return value
  return letter === 'S' || letter === 'W' ? `-${minutes}` : minutes
}
