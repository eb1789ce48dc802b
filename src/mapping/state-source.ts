// state-source.ts: a source that remembers (coalesce, thin, merge), as its memory in state/ sees it.

import { delivered } from './devices/admission.ts'
import type { Attempt } from './refusals.ts'
import type { Work } from './routing.ts'
import { halfOf, readRecord, type Reading } from './record-mapper.ts'
import type { StateSource } from './state/source-state.ts'

export function remembers({ source }: Work): boolean {
  return source.coalesce !== null || source.thin !== null || source.merge !== null
}

/** `attempt` and `reading` are the mapper's: nothing else is mapped meanwhile. */
export function stateSourceOf(
  { source, registry, judges }: Work,
  attempt: Attempt,
  reading: Reading,
): StateSource {
  const noCaptures = source.captures.map(() => '')
  return {
    name: source.name,
    coalesce: source.coalesce,
    thin: source.thin,
    merge: source.merge,
    entryOf: registry.entryOf,
    assetOf: ({ assetId }) => assetId,
    withholdOf: ({ withhold }) => withhold,
    read(entry, record, arrivedAt) {
      attempt.captures = noCaptures
      const whole = source.extract ? source.extract(record, record, noCaptures) : record
      if (source.when && !source.when.holds(whole, whole, noCaptures))
        return { kind: 'ignored', reason: source.when.reason }
      if (delivered(entry, attempt) === null) return attempt.ending
      if (readRecord(source, entry, whole, whole, undefined, arrivedAt, judges, attempt, reading))
        return halfOf(source, entry, reading, arrivedAt)
      return attempt.ending
    },
  }
}
