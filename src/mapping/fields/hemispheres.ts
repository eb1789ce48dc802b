// hemispheres.ts: the hemisphere of a coordinate: in its text (`5231.0S`, see below), in a
// value of its own (`hemisphere`), or both.
//
// A value whose hemisphere cannot be read could be on the other side of the earth, and so could one whose
// text or sign says another hemisphere than the value beside it. Neither is sent.

import { quote } from '../../std/quote.ts'
import type { Read } from '../path/path.ts'
import type { Coordinate, ReadNumber } from './gps.ts'

export type Axis = 'latitude' | 'longitude'

const hemispheres = {
  latitude: {
    positive: 'N',
    negative: 'S',
    isPositive: /^\s*N|N\s*$/i,
    isOther: /^\s*[EW]|[EW]\s*$/i,
  },
  longitude: {
    positive: 'E',
    negative: 'W',
    isPositive: /^\s*E|E\s*$/i,
    // 13d24m10s has the mark of seconds, not a hemisphere.
    isOther: /^\s*[NS]|N\s*$|^[^m]*S\s*$/i,
  },
} as const

/** An angle with a hemisphere of the other axis is wrong: a longitude is no latitude. */
export function compileOnAxis(read: ReadNumber, raw: Read, axis: Axis): ReadNumber {
  const { isOther } = hemispheres[axis]
  return (place) => {
    const value = read(place)
    if (!Number.isFinite(value)) return value
    const text = raw(place)
    return typeof text === 'string' && isOther.test(text) ? Number.POSITIVE_INFINITY : value
  }
}

/** N and S, or E and W, also written out. `raw`: the value in the message, which may have a letter too. */
export function compileHemisphere(
  read: ReadNumber,
  raw: Read,
  readHemisphere: Read,
  axis: Axis,
): Pick<Coordinate, 'read' | 'fault'> {
  const { positive, negative, isPositive } = hemispheres[axis]
  return {
    read(place) {
      const value = read(place)
      if (Number.isNaN(value)) return value
      const letter = firstLetterOf(readHemisphere(place))
      if (isContradicted(value, letter, raw(place))) return Number.POSITIVE_INFINITY
      if (letter === negative) return value > 0 ? -value : value
      return letter === positive ? value : Number.POSITIVE_INFINITY
    },
    fault(place) {
      const value = read(place)
      if (!Number.isFinite(value)) return undefined
      const found = readHemisphere(place)
      const letter = firstLetterOf(found)
      const text = raw(place)
      if (isContradicted(value, letter, text))
        return `The ${axis} ${shown(text)} and its hemisphere ${shown(found)} contradict each other.`
      return letter === positive || letter === negative
        ? undefined
        : `The hemisphere of the ${axis} ${shown(text)} must be ${positive} or ${negative}, found ${shown(found)}.`
    },
  }

  /** A minus or a letter of the text says one hemisphere, the letter beside it the other. */
  function isContradicted(value: number, letter: string, text: unknown): boolean {
    if (letter === positive) return value < 0
    return letter === negative && value > 0 && typeof text === 'string' && isPositive.test(text)
  }
}

function firstLetterOf(hemisphere: unknown): string {
  return typeof hemisphere === 'string' ? hemisphere.charAt(0).toUpperCase() : ''
}

/** A value of the message in a sentence. */
function shown(value: unknown): string {
  return typeof value === 'string' ? quote(value, 60) : typeof value === 'number' ? String(value) : 'nothing'
}
