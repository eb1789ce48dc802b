// state-source.ts: a source with state (coalesce, thin, merge), as the folder state/ uses it.

import type { EpochMs } from '../../std/clock.ts'
import type { StateSource } from '../state/source-state.ts'
import type { RecordContext } from '../types.ts'
import { checkProvider, isBeyondLimit } from './admission.ts'
import type { RecordMapper } from './record-mapper.ts'
import type { RecordMemory } from './record-memory.ts'
import type { SourceRuntime } from '../routing/routing.ts'

export function isStateful({ source }: SourceRuntime): boolean {
  return source.coalesce !== null || source.thin !== null || source.merge !== null
}

/**
 * Our time may have become known between the arrival and now. A time that is not ahead of now is not in the
 * future either way.
 */
function sinceArrival({ at, offsetMs }: RecordContext['latest'], arrivedAt: EpochMs): number | null {
  return offsetMs === null ? null : offsetMs + Math.max(0, at - arrivedAt)
}

/** `context` is the mapper's: nothing else is mapped meanwhile. */
export function stateSourceOf(
  runtime: SourceRuntime,
  context: RecordContext,
  { recordMapper, memory }: { recordMapper: RecordMapper; memory: Pick<RecordMemory, 'begin' | 'note'> },
): StateSource {
  const { source, devices } = runtime
  const captures = source.captures.map(() => '')
  return {
    name: source.name,
    coalesce: source.coalesce,
    thin: source.thin,
    merge: source.merge,
    entryOf: devices.entryOf,
    assetOf: ({ assetId }) => assetId,
    withholdOf: ({ withhold }) => withhold,
    note(entry, record, time) {
      context.record = record
      memory.begin(source, entry, time)
      memory.note()
    },
    read(entry, record, { arrivedAt, arrival }) {
      const whole = source.extract ? source.extract(record, record, captures) : record
      const isUnwanted = source.when !== null && !source.when.holds(whole, whole, captures)
      if (isBeyondLimit(context)) return context.rejection
      if (source.when !== null && isUnwanted) return { kind: 'ignored', reason: source.when.reason }
      if (checkProvider(entry, context) === null) return context.rejection
      const offsetMs = arrival === undefined ? sinceArrival(context.latest, arrivedAt) : arrival.offsetMs
      Object.assign(context, { record: whole, root: whole, up: undefined, captures, arrivedAt, offsetMs })
      context.stored = null
      // That of a message which was mapped before, perhaps of another source.
      context.unwanted = 0
      context.recordSender = null
      context.device = entry.device
      source.otherControllers?.count(context)
      if (recordMapper.read(runtime, entry)) return recordMapper.mapped(source, entry)
      return source.hintRefusal(context.rejection, context, entry)
    },
  }
}
