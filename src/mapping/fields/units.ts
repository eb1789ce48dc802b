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
