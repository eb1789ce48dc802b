// gps.ts: the position of a payload (ingestion-api.md 2.4), as text.
//
//   latitude, longitude   both or neither. A value that is not a number or out of range refuses the position,
//                         and a record that has no signals: a wrong place is worse than none, and clamping
//                         would invent one
//   speed                 below zero means "unknown" to many receivers: left out and counted
//   speed, heading        a value out of bounds is left out or sent, and counted (plausibility/)
//   heading               360 is 0
//   0, 0                  is sent by receivers without a fix: no position, nor one within some metres of it
//   inMotion              read from the message. Motion by the speed is added later (filters/motion.ts): it
//                         depends on earlier messages and must not be part of the payload's name

import { bounded, quote } from '../../std/quote.ts'
import { messageOf } from '../../std/gateway-error.ts'
import type { Read } from '../path/path.ts'
import { rejects, type Bounds } from '../plausibility/plausibility.ts'
import type { WriteExtraFields } from './extra-fields.ts'
import { jsonString } from './json-string.ts'
import { degreesOfMinutes, unchanged, type Convert } from './units.ts'
import { withoutResult } from '../path/no-result.ts'
import { booleanFrom, numberFrom } from '../path/value.ts'
import type { Up, RecordContext } from '../types.ts'

/** Of the topic. */
type Captures = readonly string[]

/** One number of a message; NaN for an absent one, an infinity for anything but a number. */
export type ReadNumber = (record: unknown, root: unknown, up: Up, captures?: Captures) => number

export type ReadBoolean = (
  record: unknown,
  root: unknown,
  up: Up,
  captures?: Captures,
) => boolean | null | undefined

export type InMotion = {
  /** Null where motion follows from the speed only. */
  read: ReadBoolean | null
  /** Derive motion from the speed where the message does not have it (filters/motion.ts). */
  fromSpeed: boolean
}

/**
 * In degrees, about ten metres. There is only sea: positions from there are rounded zeros, or degrees that
 * were scaled as ten-millionths.
 */
export const nearNowhere = 0.0001

export type Coordinate = {
  read: ReadNumber
  /** The value itself, for the sentence of a refusal. */
  raw: Read
  /** What -1 of the message is in degrees. */
  minusOne: number
  /** What is wrong with its hemisphere, as a sentence; undefined where nothing is. */
  fault?: (...place: Parameters<Read>) => string | undefined
}

export type GpsFields = {
  source: string
  latitude: Coordinate
  longitude: Coordinate
  speed: ReadNumber | null
  speedBounds: Bounds | null
  speedUnits: string
  heading: ReadNumber | null
  headingBounds: Bounds | null
  inMotion: InMotion | null
  /** Extra fields inside `gps`, `,"name":value` each. */
  extraFields: WriteExtraFields | null
  bits: GpsBits
}

/** As in lost-fields/watched-fields.ts; 0 for none. */
export type GpsBits = { position: number; speed: number; heading: number; inMotion: number }

/** `,"gps":{...}`, '' without a position, null where it was refused. */
export type WriteGps = (context: RecordContext) => string | null

export function compileNumber(read: Read, convert: Convert, otherwise: unknown): ReadNumber {
  if (otherwise === undefined && convert === unchanged)
    return (record, root, up, captures) => numberFrom(read(record, root, up, captures))
  if (otherwise === undefined)
    return (record, root, up, captures) => convert(numberFrom(read(record, root, up, captures)))
  const instead = convert(numberFrom(otherwise))
  return (record, root, up, captures) => {
    const value = numberFrom(read(record, root, up, captures))
    return Number.isNaN(value) ? instead : convert(value)
  }
}

export function compileBoolean(read: Read, otherwise: boolean | undefined): ReadBoolean {
  return (record, root, up, captures) => {
    const value = booleanFrom(read(record, root, up, captures))
    return value === undefined ? otherwise : value
  }
}

export function compileGps(fields: GpsFields): WriteGps {
  const { latitude, longitude, inMotion, extraFields, bits } = fields
  const writeSpeed = compileSpeed(fields)
  const writeHeading = compileHeading(fields)
  const readMotion = inMotion?.read ?? null
  const fromSpeed = inMotion?.fromSpeed ?? false
  const motionUnread = `${fields.source}|in_motion|not true or false`
  return (context) => {
    if ((context.unwanted & bits.position) !== 0) return ''
    const { record, root, up, captures } = context
    const north = latitude.read(record, root, up, captures)
    const east = longitude.read(record, root, up, captures)
    if (!(north >= -90 && north <= 90 && east >= -180 && east <= 180)) {
      const raw = () =>
        `${shown(latitude.raw(record, root, up, captures))}, ${shown(longitude.raw(record, root, up, captures))}`
      const fault = () =>
        latitude.fault?.(record, root, up, captures) ??
        longitude.fault?.(record, root, up, captures) ??
        withoutResult('latitude', latitude.raw(record, root, up, captures)) ??
        withoutResult('longitude', longitude.raw(record, root, up, captures))
      return refused(north, east, { raw, fault }, context)
    }
    if (isNowhere(north, east) || (north === latitude.minusOne && east === longitude.minusOne)) {
      context.zeroPosition = true
      return ''
    }
    context.latitude = north
    context.longitude = east
    context.present |= bits.position
    const speed = writeSpeed ? writeSpeed.read(context) : Number.NaN
    let text = `,"gps":{"latitude":${north},"longitude":${east}`
    if (writeSpeed && speed >= 0) {
      text += `,"speed":${speed}${writeSpeed.tail}`
      context.present |= bits.speed
    }
    const heading = writeHeading ? writeHeading(context) : ''
    if (heading !== '') {
      text += heading
      context.present |= bits.heading
    }
    if (readMotion) {
      const moving = readMotion(record, root, up, captures)
      if (moving === true || moving === false) {
        text += `,"inMotion":${moving}`
        context.present |= bits.inMotion
      } else {
        if (moving === null) context.omit(motionUnread)
        if (fromSpeed) context.motionSpeed = speed
      }
    } else if (fromSpeed) {
      context.motionSpeed = speed
    }
    if (extraFields) text += extraFields(context)
    return `${text}}`
  }
}

/** What receivers without a fix report: zeros, integers at their limits, and -1 whatever the unit is. */
function isNowhere(north: number, east: number): boolean {
  if (north < nearNowhere && north > -nearNowhere && east < nearNowhere && east > -nearNowhere) return true
  return north === 90 || north === -90 || (north === -1 && east === -1)
}

function refused(
  north: number,
  east: number,
  { raw, fault }: { raw: () => string; fault: () => string | undefined },
  context: RecordContext,
): string | null {
  if (Number.isNaN(north) && Number.isNaN(east)) return ''
  if (Number.isNaN(north)) return context.refuse('HALF_POSITION', 'There is a longitude but no latitude.')
  if (Number.isNaN(east)) return context.refuse('HALF_POSITION', 'There is a latitude but no longitude.')
  if (!Number.isFinite(north) || !Number.isFinite(east))
    return context.refuse('BAD_VALUE', fault() ?? `The position ${raw()} is not a pair of numbers.`)
  return context.refuse('OUT_OF_RANGE', `The position ${raw()} is out of range.${rangeHint(north, east)}`)
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

type WriteSpeed = {
  /** NaN where it is left out. */
  read: (context: RecordContext) => number
  tail: string
}

function compileSpeed({ source, speed, speedBounds, speedUnits }: GpsFields): WriteSpeed | null {
  if (!speed) return null
  const low = Math.max(0, speedBounds?.min ?? 0)
  const high = speedBounds?.max ?? Number.MAX_VALUE
  const unread = `${source}|speed|not a number`
  const negative = `${source}|speed|negative`
  return {
    tail: `,"speedUnits":${jsonString(speedUnits)}`,
    read(context) {
      const value = speed(context.record, context.root, context.up, context.captures)
      if ((value >= low && value <= high) || Number.isNaN(value)) return value
      if (value >= 0 && value < Number.POSITIVE_INFINITY)
        return speedBounds !== null && rejects(speedBounds, value, context) ? Number.NaN : value
      context.omit(Number.isFinite(value) ? negative : unread)
      return Number.NaN
    },
  }
}

function compileHeading({ source, heading, headingBounds }: GpsFields) {
  if (!heading) return null
  const unread = `${source}|heading|not a number`
  const low = headingBounds?.min ?? -Number.MAX_VALUE
  const high = headingBounds?.max ?? Number.MAX_VALUE
  return (context: RecordContext): string => {
    const value = heading(context.record, context.root, context.up, context.captures)
    if (value >= low && value <= high) return `,"heading":${value === 360 ? 0 : value}`
    if (Number.isNaN(value)) return ''
    if (!Number.isFinite(value)) context.omit(unread)
    else if (headingBounds !== null && !rejects(headingBounds, value, context)) return `,"heading":${value}`
    return ''
  }
}

/** A value of a message, quoted and bounded for a sentence. */
export function shown(value: unknown): string {
  try {
    return typeof value === 'string' ? quote(value, 60) : bounded(JSON.stringify(value) ?? 'nothing', 60)
  } catch (error) {
    // The value is nested too deeply for JSON.stringify.
    return `a value that cannot be shown (${messageOf(error)})`
  }
}
