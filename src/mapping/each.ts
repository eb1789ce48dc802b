// each.ts: the records inside a message: what `each` selects, one path or several, one inside the other.
//
//   each: data                      a record, or a list of records
//   each: ["$entries()", "value"]   for every entry of the message its value: what the entry says of it (its key) is
//                                   found by `$up.key`
//
// What an inner path does not find in one record is skipped, and so is what is no object there: an envelope has
// more in it than records.

import type { Read } from './path.ts'
import { isRecord } from './walk.ts'

export type EachRecord = { record: unknown; up: unknown }

export type Each =
  { kind: 'one'; read: Read } | { kind: 'chain'; expand: (root: unknown, most: number) => EachRecord[] }

export function compileEach(reads: readonly Read[]): Each | null {
  const [only] = reads
  if (only === undefined) return null
  if (reads.length === 1) return { kind: 'one', read: only }
  return { kind: 'chain', expand: (root, most) => expand(reads, root, most) }
}

/** At most one more than `most` of them: enough to know that there are too many. */
function expand(reads: readonly Read[], root: unknown, most: number): EachRecord[] {
  let level: EachRecord[] = [{ record: root, up: undefined }]
  for (const read of reads) {
    const next: EachRecord[] = []
    for (const { record, up } of level) {
      const found = read(record, root, up)
      for (const inner of Array.isArray(found) ? (found as unknown[]) : [found]) {
        if (next.length > most) return next
        if (isRecord(inner) || Array.isArray(inner)) next.push({ record: inner, up: record })
      }
    }
    level = next
  }
  return level.filter(({ record }) => isRecord(record))
}
