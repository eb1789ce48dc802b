// record-selection.ts: the records inside a message, as `each` selects them: by one path, or by several, one
// inside the other.
//
//   each: data                           a record, or a list of records
//   each: ["$entries()", "value"]        for every entry of the message its value, or each of its values; the
//                                        entry itself (its key) is found by `$up.key`
//   each: [data, "$entries()", "value"]  the same for every element of a list, found by `$up.$up`
//
// A record in which an inner path finds nothing, or no object, is skipped: an envelope holds more than
// records.

import type { Read } from './path.ts'
import { isRecord } from './path-eval.ts'
import type { Up } from '../types.ts'

export type EachRecord = { record: unknown; up: Up }

export type Each =
  { kind: 'one'; read: Read } | { kind: 'chain'; expand: (root: unknown, most: number) => EachRecord[] }

/** The highest `max_records`. A decoder makes no more records of a message. */
export const recordsMost = 20_000

/** Bound of what outer paths may find per record: they also find names, and values that are not mapped. */
const passedPerRecord = 16

export function compileEach(reads: readonly Read[]): Each | null {
  const [only] = reads
  if (only === undefined) return null
  if (reads.length === 1) return { kind: 'one', read: only }
  return { kind: 'chain', expand: (root, most) => expand(reads, root, most) }
}

/** Stops soon after `most` records: the caller only needs to know that there are too many. */
function expand(reads: readonly Read[], root: unknown, most: number): EachRecord[] {
  let level: EachRecord[] = [{ record: root, up: undefined }]
  for (const [index, read] of reads.entries()) {
    const levelMost = index === reads.length - 1 ? most : most * passedPerRecord
    const next: EachRecord[] = []
    for (const outer of level) {
      const found = read(outer.record, root, outer.up)
      for (const inner of Array.isArray(found) ? (found as unknown[]) : [found]) {
        if (next.length > levelMost) return next
        if (isRecord(inner) || Array.isArray(inner)) next.push({ record: inner, up: outer })
      }
    }
    level = next
  }
  return level.filter(({ record }) => isRecord(record))
}
