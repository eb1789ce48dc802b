// position-pairs.ts: latitude and longitude in one value: a text, a list or a GeoJSON point.

import { isRecord } from '../path/path-eval.ts'
import { isDecimal, numberIn } from '../path/value.ts'
import { isNowhere } from '../fields/gps.ts'

type Pair = { latitude: unknown; longitude: unknown }

const lengthMax = 64

/** Null where it is none. `key`: the name of the value, which can say the order. */
export function pairIn(value: unknown, key: string): Pair | null {
  if (Array.isArray(value)) return ofList(value, key)
  if (typeof value === 'string') return ofText(value, key)
  if (!isRecord(value)) return null
  const { type, coordinates } = value
  if (typeof type !== 'string' || type.toLowerCase() !== 'point') return null
  if (!Array.isArray(coordinates)) return null
  const [longitude, latitude] = coordinates as unknown[]
  return isNumber(longitude) && isNumber(latitude) ? { latitude, longitude } : null
}

function ofList(list: readonly unknown[], key: string): Pair | null {
  const [first, second] = list
  if (list.length < 2 || list.length > 3 || !isNumber(first) || !isNumber(second)) return null
  const name = key.toLowerCase()
  const lonFirst = { latitude: second, longitude: first }
  const latFirst = { latitude: first, longitude: second }
  if (/^l(?:o?ng|on).?lat/.test(name)) return lonFirst
  if (!name.startsWith('coord')) return latFirst
  // A list named like that of GeoJSON: only a number beyond 90 says which is the longitude.
  if (Math.abs(Number(first)) > 90) return lonFirst
  return Math.abs(Number(second)) > 90 ? latFirst : null
}

function ofText(text: string, key: string): Pair | null {
  if (text.length > lengthMax) return null
  const point = /^POINT ?\(([^)]*)\)$/i.exec(text.trim())
  const plain = text.includes('°') ? text.replaceAll('°', '') : text
  const parts = (point?.[1] ?? plain.replaceAll(/^[[(]|[\])]$/g, '')).trim().split(/[,;/ ]+/)
  const [first = '', second = ''] = parts
  if (parts.length < 2 || parts.length > 3 || !parts.every((part) => isDecimal(part))) return null
  return point || /^l(?:o?ng|on).?lat/i.test(key)
    ? { latitude: second, longitude: first }
    : { latitude: first, longitude: second }
}

function isNumber(value: unknown): boolean {
  return typeof value === 'number' || (typeof value === 'string' && isDecimal(value))
}

// Coordinates that a tracker sends when it has no position.
//
//   zeros          0 and 0; 0 in one of them, where a decoder has no value; all bits set, -0.000001 in both
//   limits         as for all positions (../fields/gps.ts)
//   a full integer the largest or smallest of 24, 28 or 32 bits, in steps of the decoder: 214.7483647
//
// A full integer is outside of the range of a coordinate, so no real position is lost by this.

type Coordinates = { latitude: unknown; longitude: unknown }

/** The digits of full integers, without the last ones, which a decoder may have rounded. */
const fullIntegers = [2 ** 32, 2 ** 31, 2 ** 28, 2 ** 24, 2 ** 23].map((full) => String(full - 1).slice(0, 6))

export function isBlank({ latitude, longitude }: Coordinates): boolean {
  const north = numberIn(latitude)
  const east = numberIn(longitude)
  if (north === 0 || east === 0) return true
  if (isNowhere(north, east)) return true
  return (Math.abs(north) > 90 && isFull(north)) || (Math.abs(east) > 180 && isFull(east))
}

export function isUsable(coordinates: Coordinates): boolean {
  const isInRange =
    Math.abs(numberIn(coordinates.latitude)) <= 90 && Math.abs(numberIn(coordinates.longitude)) <= 180
  return isInRange && !isBlank(coordinates)
}

function isFull(degrees: number): boolean {
  const digits = String(Math.abs(degrees)).replace('.', '')
  return fullIntegers.some((full) => digits.startsWith(full))
}
