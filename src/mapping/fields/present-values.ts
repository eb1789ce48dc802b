// present-values.ts: the values of a message without those that mean "no value" in a source (`absent`), and
// with decimal commas as points where the field says so.

import { compilePath, firstPresent, parsePath, type Read } from '../path/path.ts'
import { compileAbsent, withPoint } from '../path/value.ts'

export type Presence = {
  absent?: readonly (number | string)[] | undefined
  decimal_comma?: boolean | undefined
}

/** Of one path. Throws Malformed. */
export function compilePresent(path: string, { absent = [], decimal_comma: comma }: Presence): Read {
  const raw = compilePath(parsePath(path))
  const read: Read = comma === true ? (record, root, up) => withPoint(raw(record, root, up)) : raw
  return withoutAbsent(read, absent)
}

export function withoutAbsent(read: Read, absent: readonly (number | string)[] = []): Read {
  if (absent.length === 0) return read
  const isAbsent = compileAbsent(absent)
  return (record, root, up, captures) => {
    const value = read(record, root, up, captures)
    return isAbsent(value) ? undefined : value
  }
}

/** Of several paths the first with a value is read. Throws Malformed. */
export function compileFirstPresent(paths: string | readonly string[], presence: Presence): Read {
  return firstPresent([paths].flat().map((path) => compilePresent(path, presence)))
}
