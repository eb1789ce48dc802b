// coalesced-value.ts: a record of a source that coalesces, read as one value under its name.

import type { EpochMs } from '../../std/clock.ts'
import type { Read } from '../path/path.ts'
import type { CoalesceRules } from './coalesce.ts'
import { keepable, type Value } from './open-record.ts'
import type { Up } from '../types.ts'

/** The `coalesce` of a source, compiled. */
export type CompiledCoalesce = {
  rules: CoalesceRules
  /** The value's name; '' where there is none. */
  name(captures: readonly string[], record: unknown, root: unknown, up: Up): string
  /** The same, where the topic alone says it: noise is told apart before its message is read. */
  nameOfTopic: ((captures: readonly string[]) => string) | null
  names: ReadonlySet<string>
  value: Read
  /** Null where values have no time; reads NaN where one has none, an infinity where it cannot be read. */
  time: ((record: unknown, root: unknown, up: Up) => EpochMs) | null
}

/** A record and where it stands in its message. */
export type RecordPlace = { captures: readonly string[]; record: unknown; root: unknown; up?: Up }

export type PartFault = { kind: 'ignored' | 'refused'; reason: string; detail: string }

/** A record as a value; or why it is none. */
export function partOf(
  { name: nameOf, names, value: read, time: readTime }: CompiledCoalesce,
  { captures, record, root, up }: RecordPlace,
  arrivedAt: EpochMs,
): Value | PartFault {
  const name = nameOf(captures, record, root, up)
  if (name === '') return fault('refused', 'NO_NAME', 'What names the value is missing or empty.')
  if (!names.has(name)) return fault('ignored', 'not wanted', '')
  const found = read(record, root, up)
  if (found === undefined) return fault('ignored', 'no value', '')
  const time = readTime === null ? Number.NaN : readTime(record, root, up)
  if (time === Number.POSITIVE_INFINITY)
    return fault('refused', 'BAD_TIME', 'The time of the value is not in the format that the source names.')
  const kept = keepable(name, found)
  if (kept === null) return fault('refused', 'TOO_LARGE', 'The value cannot be kept until its record closes.')
  return { name, ...kept, time, arrivedAt, messages: 0 }
}

function fault(kind: PartFault['kind'], reason: string, detail: string): PartFault {
  return { kind, reason, detail }
}
