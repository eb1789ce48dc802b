// fields.ts: compiles the value of a field of `map` to one closure. The other files of the folder use it:
//
//   gps.ts       the position                     ../times/times.ts  times
//   signals.ts   odometer, hours and others       member-fields.ts other values
//   units.ts     conversion to the sent units     decimal.ts       exact decimals
//
// For the expression, or for each path whose condition holds, in turn: read the value, and drop one that
// means "absent". The first value that is left passes the table `values`. What is absent and what is wrong
// are distinguished (path/value.ts): absent values are left out, wrong ones are left out and counted, or
// refuse the record where the field is required.

import { durationFrom } from '../times/duration.ts'
import { compileCondition, compileExpression } from '../expression/expression.ts'
import { compilePath, firstPresent, parsePath, type Read } from '../path/path.ts'
import { compileAbsent } from '../path/value.ts'
import { Malformed } from '../path/text-cursor.ts'
import { isNone } from '../path/no-result.ts'
import { degreesFromText, minutesFromText } from './angle-text.ts'
import { compileTable, type ValueTable } from './value-table.ts'

/** A path, one that counts only where its condition holds, or an expression. */
export type FieldPath = string | { readonly path: string; readonly when: string } | { readonly expr: string }

export type FieldPaths = string | readonly Exclude<FieldPath, { expr: string }>[]

/** One of both. */
export type Finding = { path?: FieldPaths | undefined; expr?: string | undefined }

export type Reading = Finding & {
  /** Values that mean "no value". */
  absent?: readonly (number | string)[] | undefined
  values?: ValueTable | undefined
  unit?: string | undefined
}

/**
 * `captures`: names of those of the topic. Throws Malformed. A field without these options costs no more than
 * its path.
 */
export function compileReading(reading: Reading, captures: readonly string[] = []): Read {
  const read = compileFound(reading, captures)
  if (reading.values === undefined) return read
  const find = compileTable(reading.values)
  return (record, root, up, found) => {
    const value = read(record, root, up, found)
    return isNone(value) || value === '' ? value : find(value)
  }
}

/** What is read before `values` of the field. */
export function compileFound({ path, expr, absent, unit }: Reading, captures: readonly string[]): Read {
  const read = firstPresent(
    findingsOf({ path, expr }).map((one) => {
      if (typeof one === 'object' && 'expr' in one)
        return withoutAbsent(compileExpression(one.expr, captures), absent)
      const found = withoutAbsent(compilePath(parsePath(textOf(one))), absent)
      return typeof one === 'string' ? found : whereHolds(found, one.when, captures)
    }),
  )
  if (unit === 'duration') return (...place) => durationFrom(read(...place))
  if (unit === 'ddmm') return (...place) => minutesFromText(read(...place))
  return unit === 'dms' ? (...place) => degreesFromText(read(...place)) : read
}

function withoutAbsent(read: Read, absent: readonly (number | string)[] = []): Read {
  if (absent.length === 0) return read
  const isAbsent = compileAbsent(absent)
  return (record, root, up, captures) => {
    const value = read(record, root, up, captures)
    return isAbsent(value) ? undefined : value
  }
}

/** Throws Malformed for both. */
export function findingsOf({ path, expr }: Finding): readonly FieldPath[] {
  if (expr !== undefined) {
    if (path !== undefined) throw new Malformed('must have a path or an expression, not both')
    return [{ expr }]
  }
  return typeof path === 'string' ? [path] : (path ?? [])
}

export function textOf(path: FieldPath): string {
  if (typeof path === 'string') return path
  return 'expr' in path ? path.expr : path.path
}

function whereHolds(read: Read, text: string, names: readonly string[]): Read {
  const holds = compileCondition(text, names)
  return (record, root, up, captures = []) =>
    holds(record, root, captures, up) ? read(record, root, up, captures) : undefined
}
