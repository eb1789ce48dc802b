// collected-records.ts: reads records that were collected from several messages, when they close (../state/).

import { admitted, isWanted } from './admission.ts'
import type { SourcePlan } from '../compile/source-plan.ts'
import { recall } from '../filters/filters.ts'
import { noteRemembered } from '../filters/remembered-values.ts'
import type { CollectedReader } from '../state/record-closing.ts'
import type { DeviceNotes } from '../types.ts'
import { readRecord, type ReadDeps } from './read.ts'
import { Reading, type Counts, type MessageAt, type Moment } from './reading.ts'

type Deps = {
  counts: Counts
  read: ReadDeps
  latest: Readonly<Moment>
  notes: DeviceNotes | null
  onReading: ((reading: Reading, source: SourcePlan) => void) | null
}

export function createCollectedReader(deps: Deps): CollectedReader {
  const { counts, read, latest, notes, onReading } = deps
  return {
    note({ source }, entry, { record, time, arrivedAt }) {
      const reading = readingOf(source, record, { arrivedAt, offsetMs: null, live: true })
      reading.entry = entry
      reading.moment = Number.isNaN(time) ? arrivedAt : time
      recall(reading, source, entry, read.memory)
      noteRemembered(reading, source, reading.moment, read.memory)
    },
    read(runtime, entry, record, { arrivedAt, arrival }, live) {
      const { source } = runtime
      const offsetMs = arrival === undefined ? sinceArrival(latest, arrivedAt) : arrival.offsetMs
      const reading = readingOf(source, record, { arrivedAt, offsetMs, live })
      reading.device = entry.device
      onReading?.(reading, source)
      if (!isWanted(reading, source.when) || admitted(entry, reading) === null) return reading.rejection
      source.otherControllers?.count(reading)
      if (readRecord(reading, runtime, entry, read)) return reading.mapped(source.name, entry)
      return source.hintRefusal(reading.rejection, reading, entry)
    },
  }

  function readingOf(
    { captures: names, extract }: SourcePlan,
    record: unknown,
    when: Pick<MessageAt, 'arrivedAt' | 'offsetMs' | 'live'>,
  ): Reading {
    const captures = names.map(() => '')
    const whole = extract === null ? record : extract(record, record, captures)
    const of = { captures, root: whole, notes: when.live ? notes : null }
    const at = { message: null, ...when, ...of, owner: null, isLossNoted: false, noted: null }
    return new Reading(counts, at, whole, undefined)
  }
}

/**
 * Our time may have become known between the arrival and now. A time that is not ahead of now is not in the
 * future either way.
 */
function sinceArrival({ at, offsetMs }: Moment, arrivedAt: number): number | null {
  return offsetMs === null ? null : offsetMs + Math.max(0, at - arrivedAt)
}
