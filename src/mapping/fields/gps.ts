// gps.ts: the position of a payload (ingestion-api.md 2.4), as text.
//
//   latitude, longitude   both or neither. A value that is not a number or out of range refuses the position,
//                         and a record that has no signals: a wrong place is worse than none, and clamping
//                         would invent one
//   0, 0                  is sent by receivers without a fix: no position, nor one within some metres of it
//   speed, heading, ...   member-fields.ts. Motion by the speed is added later (filters/motion.ts): it
//                         depends on earlier messages and must not be part of the payload's name

import { hexHint } from '../encodings/text-bytes.ts'
import type { Read } from '../path/path.ts'
import { notingWritten, type Notable } from './field-notes.ts'
import type { WriteMembers } from './member-fields.ts'
import { degreesOfMinutes, type Convert } from './units.ts'
import { withoutResult, numberFrom, shown } from '../path/value.ts'
import { isLargeUnsetNumber } from '../plausibility/unset-numbers.ts'
import type { Place, RecordContext } from '../types.ts'

/** One number of a message; NaN for an absent one, an infinity for anything but a number. */
export type ReadNumber = (place: Place) => number

/**
 * In degrees. There is only sea: positions from there are rounded zeros, degrees that were scaled as
 * ten-millionths, or degrees that were read as degrees and minutes (52.5 as 0°52.5').
 */
const nowhere = { north: 1, east: 2 }

/** Around the place where the equator meets the meridian of Greenwich. */
function isNearNowhere(north: number, east: number): boolean {
  return north < nowhere.north && north > -nowhere.north && east < nowhere.east && east > -nowhere.east
}

export type Coordinate = Notable & {
  read: ReadNumber
  /** The value itself, for the sentence of a refusal. */
  raw: Read
  /** What -1 of the message is in degrees. */
  minusOne: number
  /** What is wrong with its hemisphere, as a sentence; undefined where nothing is. */
  fault?: (place: Place) => string | undefined
}

export type GpsFields = {
  latitude: Coordinate
  longitude: Coordinate
  /** Speed, heading, motion and extra fields. */
  members: WriteMembers | null
  /** As in lost-fields/watched-fields.ts; 0 for none. */
  bit: number
}

/** `,"gps":{...}`, '' without a position, null where it was refused. */
export type WriteGps = (context: RecordContext) => string | null

export function compileNumber(read: Read, convert: Convert): ReadNumber {
  return (place) => convert(numberFrom(read(place)))
}

export function compileGps({ latitude, longitude, members, bit }: GpsFields): WriteGps {
  const write: WriteGps = (context) => {
    if ((context.unwanted & bit) !== 0) return ''
    const north = latitude.read(context)
    const east = longitude.read(context)
    if (!(north >= -90 && north <= 90 && east >= -180 && east <= 180))
      return refused(north, east, [latitude, longitude], context)
    const isMinusOne = north === latitude.minusOne && east === longitude.minusOne
    if (isMinusOne || isNowhere(north, east) || (north === east && isUnset(latitude, context))) {
      context.zeroPosition = true
      return ''
    }
    context.latitude = north
    context.longitude = east
    context.present |= bit
    const more = members === null ? '' : members(context)
    return `,"gps":{"latitude":${north},"longitude":${east}${more}}`
  }
  return notingWritten(longitude, notingWritten(latitude, write))
}

/**
 * What receivers without a fix report: zeros, integers at their limits, such as 90 and 180 or a step below,
 * and -1 whatever the unit is. Also one number for both, which no receiver has measured: 65.535, 65.535.
 * What is out of range is another fault.
 */
export function isNowhere(north: number, east: number): boolean {
  if (isNearNowhere(north, east) || (north === -1 && east === -1)) return true
  const pole = Math.abs(north)
  const side = Math.abs(east)
  if (pole > 90 || side > 180) return false
  if (pole === 90 || (pole > nearPole && side > nearPole + 90)) return true
  return north === east && isLargeUnsetNumber(north)
}

/** A step of 15 bits below 90. */
const nearPole = 89.99

/** As the device wrote it. */
function isUnset({ raw }: Coordinate, context: RecordContext): boolean {
  return isLargeUnsetNumber(numberFrom(raw(context)))
}

function refused(
  north: number,
  east: number,
  axes: readonly [latitude: Coordinate, longitude: Coordinate],
  context: RecordContext,
): string | null {
  if (Number.isNaN(north) && Number.isNaN(east)) return ''
  if (Number.isNaN(north)) return context.refuse('HALF_POSITION', 'There is a longitude but no latitude.')
  if (Number.isNaN(east)) return context.refuse('HALF_POSITION', 'There is a latitude but no longitude.')
  const [latitude, longitude] = axes.map(({ raw }) => raw(context))
  const position = `The position ${shown(latitude)}, ${shown(longitude)}`
  if (Number.isFinite(north) && Number.isFinite(east))
    return context.refuse('OUT_OF_RANGE', `${position} is out of range.${rangeHint(north, east)}`)
  const fault =
    axes[0].fault?.(context) ??
    axes[1].fault?.(context) ??
    withoutResult('latitude', latitude) ??
    withoutResult('longitude', longitude)
  const hint = hexHint(latitude) ?? hexHint(longitude) ?? ''
  return context.refuse('BAD_VALUE', fault ?? `${position} is not a pair of numbers. ${hint}`.trimEnd())
}

/** What the position may be, as a sentence; '' where it is nothing known. */
function rangeHint(north: number, east: number): string {
  const unsigned = unsignedHint(north, east)
  if (Math.abs(north) <= 90 && east > 180 && east <= 360) {
    const fullCircle = ' Longitudes of 0 to 360 are read by `expr: lon > 180 ? lon - 360 : lon`.'
    return unsigned === undefined ? fullCircle : fullCircle + unsigned.replace(' It is', ' Otherwise it is')
  }
  if (unsigned !== undefined) return unsigned
  const isAnyMinutes = isMinutes(north, 90) && isMinutes(east, 180)
  return isAnyMinutes ? ' If these are degrees and minutes (ddmm.mmmm), use `unit: ddmm`.' : ''
}

/** Parts of a degree in which positions are whole numbers of 32 bits. */
const partsOfDegree = [1e7, 1e6, 1e5]

/** For a negative number of 32 bits that was read without its sign: 423.22 is -6.277 and 2^32 parts. */
function unsignedHint(north: number, east: number): string | undefined {
  for (const parts of partsOfDegree) {
    const signed = (value: number, most: number) =>
      value > most && value <= 2 ** 32 / parts ? value - 2 ** 32 / parts : value
    const [latitude, longitude] = [signed(north, 90), signed(east, 180)]
    if (Math.abs(latitude) > 90 || Math.abs(longitude) > 180) continue
    const place = `${Number(latitude.toFixed(5))}, ${Number(longitude.toFixed(5))}`
    return ` It is ${place}, read without its sign: have what makes the message read signed numbers of 32 bits.`
  }
  return undefined
}

function isMinutes(value: number, degreesMax: number): boolean {
  return Math.abs(degreesOfMinutes(value)) <= degreesMax
}
