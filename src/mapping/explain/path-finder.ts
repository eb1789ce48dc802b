// path-finder.ts: finds which of the paths of a field has a value in a record, and the raw value there.

import { compileReading } from '../fields/fields.ts'
import { shown } from '../fields/gps.ts'
import { compilePath, parsePath } from '../path/path.ts'
import type { Up } from '../types.ts'

/** A record, what is around it in its message, and the captures of its topic. */
export type PlacedRecord = { record: unknown; root: unknown; up: Up; captures: readonly string[] }

export type Found = { path: string | null; raw: unknown; note: string | null }

export type Readable = {
  path?: string | readonly string[] | undefined
  value?: unknown
  default?: unknown
  absent?: readonly (number | string)[] | undefined
  decimal_comma?: boolean | undefined
  unit?: string | undefined
}

/** Finds the path with a value, by reading each path alone. */
export function compileFinder(readable: Readable): {
  paths: readonly string[]
  find(place: PlacedRecord): Found
} {
  const { path, value, absent, decimal_comma, unit } = readable
  const paths = path === undefined ? [] : typeof path === 'string' ? [path] : path
  const reads = paths.map((text) => ({
    text,
    raw: compilePath(parsePath(text)),
    read: compileReading({ path: text, absent, decimal_comma, unit }),
  }))
  const whenAbsent =
    readable.default === undefined ? 'absent' : `absent: the default ${shown(readable.default)} is sent`
  return {
    paths,
    find({ record, root, up }) {
      if (value !== undefined) return { path: null, raw: value, note: 'a constant' }
      let best: Found = { path: null, raw: undefined, note: whenAbsent }
      for (const { text, raw, read } of reads) {
        const found = raw(record, root, up)
        if (isThere(read(record, root, up))) return { path: text, raw: found, note: null }
        const note = isThere(found) ? `${shown(found)} means "no value" (\`absent\`)` : whenAbsent
        if (found !== undefined && best.raw === undefined) best = { path: text, raw: found, note }
      }
      return best
    },
  }
}

function isThere(value: unknown): boolean {
  return value !== undefined && value !== null && value !== ''
}

/** The first of `paths` with a value, such as those that name the device. */
export function findBy(paths: string | readonly string[], place: PlacedRecord): Found {
  return compileFinder({ path: paths }).find(place)
}
