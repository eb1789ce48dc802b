// fields.ts: a field of the config as one closure: its paths, and what of their values counts as a value.
//
// For each path in turn: the value, a decimal comma made a point where the field says so, and nothing where
// it is one of the values that mean "not there". The first that is left is the field's value.

import { durationFrom } from './duration.ts'
import { compilePath, firstPresent, parsePath, type Read } from '../path/path.ts'
import { compileAbsent, withPoint } from '../path/value.ts'

export type Reading = {
  path: string | readonly string[]
  absent?: readonly (number | string)[] | undefined
  decimal_comma?: boolean | undefined
  /**
   * Only `duration` changes how a value is read: to seconds, which `signalUnits.duration` turns into hours.
   */
  unit?: string | undefined
}

/** Throws Malformed. A field that uses none of it costs what its path costs. */
export function compileReading({ path, absent, decimal_comma: comma, unit }: Reading): Read {
  const paths = typeof path === 'string' ? [path] : path
  const read = firstPresent(paths.map((text) => compileOne(text, absent ?? [], comma === true)))
  return unit === 'duration' ? (record, root, up) => durationFrom(read(record, root, up)) : read
}

function compileOne(path: string, absent: readonly (number | string)[], comma: boolean): Read {
  const raw = compilePath(parsePath(path))
  const read: Read = comma ? (record, root, up) => withPoint(raw(record, root, up)) : raw
  if (absent.length === 0) return read
  const isAbsent = compileAbsent(absent)
  return (record, root, up) => {
    const value = read(record, root, up)
    return isAbsent(value) ? undefined : value
  }
}
