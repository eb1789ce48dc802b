// state-source.ts: a source that remembers (coalesce, thin, merge), as its memory in state/ sees it.

import { checkProvider } from './admission.ts'
import type { RecordContext } from '../reasons.ts'
import type { SourceRuntime } from './routing.ts'
import { mappedRecordOf, readRecord, type Reading } from './record-mapper.ts'
import type { StateSource } from '../state/source-state.ts'

export function isStateful({ source }: SourceRuntime): boolean {
  return source.coalesce !== null || source.thin !== null || source.merge !== null
}

/** `context` and `reading` are the mapper's: nothing else is mapped meanwhile. */
export function stateSourceOf(
  { source, devices, checks }: SourceRuntime,
  context: RecordContext,
  reading: Reading,
): StateSource {
  const noCaptures = source.captures.map(() => '')
  return {
    name: source.name,
    coalesce: source.coalesce,
    thin: source.thin,
    merge: source.merge,
    entryOf: devices.entryOf,
    assetOf: ({ assetId }) => assetId,
    withholdOf: ({ withhold }) => withhold,
    read(entry, record, arrivedAt) {
      context.captures = noCaptures
      const whole = source.extract ? source.extract(record, record, noCaptures) : record
      if (source.when && !source.when.holds(whole, whole, noCaptures))
        return { kind: 'ignored', reason: source.when.reason }
      if (checkProvider(entry, context) === null) return context.rejection
      if (readRecord(source, entry, whole, whole, undefined, arrivedAt, checks, context, reading))
        return mappedRecordOf(source, entry, reading, arrivedAt)
      return context.rejection
    },
  }
}
