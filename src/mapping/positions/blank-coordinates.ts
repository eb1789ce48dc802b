// blank-coordinates.ts: coordinates that a tracker sends when it has no position.
//
//   zeros          0 and 0; 0 in one of them, where a decoder has no value; all bits set, -0.000001 in both
//   limits         as for all positions (../fields/gps.ts)
//   a full integer the largest or smallest of 24, 28 or 32 bits, in steps of the decoder: 214.7483647
//
// A full integer is outside of the range of a coordinate, so no real position is lost by this.

import { isNowhere } from '../fields/gps.ts'
import { numberIn } from '../path/value.ts'

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
