// placed.ts: the place of a record, for what reads values.

import type { Place } from '../../src/mapping/types.ts'

/** Of a message that is the record. */
export function placed(record: unknown, more: Partial<Place> = {}): Place {
  return { record, root: record, up: undefined, captures: [], ...more }
}

/** What is around a record, from the inside out. */
export function outerOf(...records: readonly unknown[]): Place['up'] {
  const [first, ...others] = records
  return records.length === 0 ? undefined : { record: first, up: outerOf(...others) }
}
