// record-selection.ts: the records inside a message: what `each` selects, one path or several, one inside the
// other.
//
//   each: data                                    a record, or a list of records
//   each: ["$entries()", "value"]                 for every entry of the message its value, or each of its values: what
//                                                 the entry says of it (its key) is found by `$up.key`
//   each: [data, "$entries()", "value"]           the same for every one of a list: what all entries of one have in
//                                                 common is found by `$up.$up.id`
//
// What an inner path does not find in one record is skipped, and so is what is no object there: an envelope
// has more in it than records.

import type { Read } from './path.ts'
import { isRecord } from './path-eval.ts'
import type { Up } from '../types.ts'

export type EachRecord = { record: unknown; up: Up }

export type Each =
  { kind: 'one'; read: Read } | { kind: 'chain'; expand: (root: unknown, most: number) => EachRecord[] }

/** On the way to the records there is more than records: names, and values that nobody maps. */
const passedPerRecord = 16

export function compileEach(reads: readonly Read[]): Each | null {
  const [only] = reads
  if (only === undefined) return null
  if (reads.length === 1) return { kind: 'one', read: only }
  return { kind: 'chain', expand: (root, most) => expand(reads, root, most) }
}

/** At most `most` of them, or more than that: enough to know that there are too many. */
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
