// record-selection.ts: the records inside a message, as `each` selects them: by one path, or by several, one
// inside the other.
//
//   each: data                           a record, or a list of records
//   each: ["$entries()", "value"]        for every entry of the message its value, or each of its values; the
//                                        entry itself (its key) is found by `$up.key`
//   each: [data, "$entries()", "value"]  the same for every element of a list, found by `$up.$up`
//
// A record in which an inner path finds nothing, or a single value, is skipped: an envelope holds more than
// records. An element of a list that is no object is a record that cannot be read, as with one path; of the
// values of all entries of an object, only lists with an object are lists of records.

import type { Read } from './path.ts'
import { isRecord } from './path-eval.ts'
import type { Place } from '../types.ts'

/** `isList`: each of them stands alone; else there is one. */
export type SelectedRecords = { isList: boolean; records: readonly Place[] }

/** Of more than `most` records so many and one more. */
export type Each = (message: Place, most: number) => SelectedRecords

/** The highest `max_records`. A decoder makes no more records of a message. */
export const recordsMost = 20_000

/** Bound of what outer paths may find per record: they also find names, and values that are not mapped. */
const passedPerRecord = 16

/** `isOfEntry`: an outer step gives entries of an object, whatever their values are. */
export type EachStep = { read: Read; isOfEntry: boolean }

export function compileEach(steps: readonly EachStep[]): Each | null {
  const [only] = steps
  if (only === undefined) return null
  if (steps.length === 1) return (message, most) => recordsOf(message, only.read(message), most)
  return (message, most) => ({ isList: true, records: expand(steps, message, most) })
}

/** Without `each` the message is the record, or the list of them. */
export function selectRecords(
  each: Each | null,
  root: unknown,
  captures: readonly string[],
  most: number,
): SelectedRecords {
  const message = { record: root, root, up: undefined, captures }
  return each === null ? recordsOf(message, root, most) : each(message, most)
}

function recordsOf(message: Place, found: unknown, most: number): SelectedRecords {
  if (!Array.isArray(found)) return { isList: false, records: [{ ...message, record: found }] }
  const list: readonly unknown[] = found.length > most + 1 ? found.slice(0, most + 1) : found
  return { isList: true, records: list.map((record) => ({ ...message, record })) }
}

/** Stops soon after `most` records: the caller only needs to know that there are too many. */
function expand(steps: readonly EachStep[], message: Place, most: number): Place[] {
  let level: Place[] = [message]
  for (const [index, { read, isOfEntry }] of steps.entries()) {
    const isLast = index === steps.length - 1
    const levelMost = isLast ? most : most * passedPerRecord
    const isSound = (value: unknown) => isRecord(value) || (!isLast && Array.isArray(value))
    const next: Place[] = []
    for (const outer of level) {
      const found = read(outer)
      const inners: readonly unknown[] = Array.isArray(found) ? found : [found]
      const isList = Array.isArray(found) && (!isOfEntry || inners.some(isSound))
      // What is no object has nothing inside, and stays the record that it is.
      if (index > 0 && isSingle(outer.record)) next.push(outer)
      for (const inner of inners) {
        if (next.length > levelMost) return next
        if (isList || isSound(inner)) next.push({ ...message, record: inner, up: outer })
      }
    }
    level = next
  }
  return level
}

function isSingle(value: unknown): boolean {
  return !isRecord(value) && !Array.isArray(value)
}
