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
import { compileAbsent, shown, isNone, NoResult } from '../path/value.ts'
import { Malformed } from '../path/text-cursor.ts'
import { degreesFromText, minutesFromText } from './units.ts'
import { noteKey, notingFirst, type Candidate, type Notable } from './field-notes.ts'

/** A path, one that counts only where its condition holds, or an expression. */
export type FieldPath = string | { readonly path: string; readonly when: string } | { readonly expr: string }

export type FieldPaths = string | readonly Exclude<FieldPath, { expr: string }>[]

/** One of both. */
export type Finding = { path?: FieldPaths | undefined; expr?: string | undefined }

export type ReadOptions = Finding &
  Notable & {
    /** Values that mean "no value". */
    absent?: readonly (number | string)[] | undefined
    values?: ValueTable | undefined
    unit?: string | undefined
  }

/**
 * `captures`: names of those of the topic. Throws Malformed. A field without these options costs no more than
 * its path.
 */
export function compileReading(reading: ReadOptions, captures: readonly string[] = []): Read {
  const { values, [noteKey]: note } = reading
  const read = compileFound(reading, captures)
  if (values === undefined) return read
  const find = compileTable(values)
  const readWord: Read = (place) => {
    const value = read(place)
    if (isNone(value) || value === '') return value
    const word = find(value)
    note?.amend(word instanceof NoResult ? word.reason : `\`values\`: ${shown(word)}`)
    return word
  }
  if (note) note.read = readWord
  return readWord
}

/** What is read before `values` of the field. */
export function compileFound(reading: ReadOptions, captures: readonly string[]): Read {
  const { path, expr, absent, unit, [noteKey]: note } = reading
  const candidates = findingsOf({ path, expr }).map((one) => candidateOf(one, absent, captures))
  const first = firstPresent(candidates.map(({ usable }) => usable))
  const read = note === undefined ? first : notingFirst(candidates, note)
  if (note) note.read = read
  if (unit === 'duration') return (place) => durationFrom(read(place))
  if (unit === 'ddmm') return (place) => minutesFromText(read(place))
  return unit === 'dms' ? (place) => degreesFromText(read(place)) : read
}

function candidateOf(one: FieldPath, absent: ReadOptions['absent'], captures: readonly string[]): Candidate {
  if (typeof one === 'object' && 'expr' in one) {
    const raw = compileExpression(one.expr, captures)
    return { text: one.expr, condition: null, raw, usable: withoutAbsent(raw, absent) }
  }
  const { path: text, when: condition = null } = typeof one === 'string' ? { path: one } : one
  const raw = compilePath(parsePath(text))
  const found = withoutAbsent(raw, absent)
  return { text, condition, raw, usable: condition === null ? found : whereHolds(found, condition, captures) }
}

function withoutAbsent(read: Read, absent: readonly (number | string)[] = []): Read {
  if (absent.length === 0) return read
  const isAbsent = compileAbsent(absent)
  return (place) => {
    const value = read(place)
    return isAbsent(value) ? undefined : value
  }
}

/** Throws Malformed for both. */
function findingsOf({ path, expr }: Finding): readonly FieldPath[] {
  if (expr !== undefined) {
    if (path !== undefined) throw new Malformed('must have a path or an expression, not both')
    return [{ expr }]
  }
  return typeof path === 'string' ? [path] : (path ?? [])
}

/** `otherwise`: what is read where the condition does not hold. Throws Malformed. */
export function whereHolds(
  read: Read,
  text: string,
  names: readonly string[],
  otherwise: Read = () => undefined,
): Read {
  const holds = compileCondition(text, names)
  return (place) => (holds(place) ? read : otherwise)(place)
}

// The word `values`: a table from the words or numbers of a message to other values, such as
// { DRIVING: true, IDLE: false }. The key * stands for every other value; without it another value is wrong,
// which is counted: a new state of a device must be seen.

type ValueTable = Readonly<Record<string, string | number | boolean>>

const unknown = new NoResult('`values` does not have it')

/** Keys are compared as texts: 1 is `1`, true is `true`. */
function compileTable(table: ValueTable): (value: unknown) => unknown {
  const values = new Map<string, unknown>(Object.entries(table))
  const other = values.get('*') ?? unknown
  return (value) => {
    if (typeof value === 'string') return values.get(value) ?? other
    return typeof value === 'number' || typeof value === 'boolean'
      ? (values.get(String(value)) ?? other)
      : unknown
  }
}
