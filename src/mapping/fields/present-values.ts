// present-values.ts: the values of a message without those that mean "no value" in a source (`absent`).

import { compilePath, parsePath, type Read } from '../path/path.ts'
import { compileAbsent } from '../path/value.ts'

export type Presence = {
  absent?: readonly (number | string)[] | undefined
}

/** Of one path. Throws Malformed. */
export function compilePresent(path: string, { absent }: Presence): Read {
  return withoutAbsent(compilePath(parsePath(path)), absent)
}

export function withoutAbsent(read: Read, absent: readonly (number | string)[] = []): Read {
  if (absent.length === 0) return read
  const isAbsent = compileAbsent(absent)
  return (record, root, up, captures) => {
    const value = read(record, root, up, captures)
    return isAbsent(value) ? undefined : value
  }
}
