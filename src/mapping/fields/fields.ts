// fields.ts: compiles the value of a field of `map` to one closure. The other files of the folder use it:
//
//   gps.ts       the position              ../times/times.ts   times
//   signals.ts   odometer, hours and others       extra-fields.ts  `map.fields`
//   units.ts     conversion to the sent units     decimal.ts       exact decimals
//
// For each path in turn: read the value, make a decimal comma a point where the field says so, and drop a
// value that means "absent". The first value that is left is the value of the field. What is absent and what
// is wrong are told apart (path/value.ts): absent values are left out, wrong ones are left out and counted,
// or refuse the record where the field is required.

import { durationFrom } from '../times/duration.ts'
import { compilePath, firstPresent, parsePath, type Read } from '../path/path.ts'
import { compileAbsent, withPoint } from '../path/value.ts'

export type Reading = {
  path: string | readonly string[]
  absent?: readonly (number | string)[] | undefined
  decimal_comma?: boolean | undefined
  /** Only `duration` changes the reading: to seconds, which `signalUnits.duration` converts to hours. */
  unit?: string | undefined
}

/** Throws Malformed. A field without these options costs no more than its path. */
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
