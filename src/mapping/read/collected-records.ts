// collected-records.ts: reads records that were collected from several messages, when they close (../state/).

import { admitted, isWanted, readRecord, type ReadDeps } from './read.ts'
import type { SourcePlan } from '../compile/source-plan.ts'
import { limitRejection, withinLimit } from '../expression/expression.ts'
import { recall } from '../filters/filters.ts'
import { noteRemembered } from '../filters/remembered-values.ts'
import type { CollectedReader } from '../state/record-closing.ts'
import type { DeviceNotes } from '../types.ts'
import { hintedRejection } from './map-result.ts'
import { Reading, type Counts, type MessageAt } from './reading.ts'

type Deps = {
  counts: Counts
  read: ReadDeps
  notes: DeviceNotes | null
  onReading: ((reading: Reading, source: SourcePlan) => void) | null
}

export function createCollectedReader(deps: Deps): CollectedReader {
  const { counts, read, notes, onReading } = deps
  return {
    note({ source }, entry, { record, time, arrivedAt }) {
      const at = { arrivedAt, offsetMs: null, live: true }
      const reading = withinLimit(() => readingOf(source, record, at))
      if (reading === undefined) return
      reading.entry = entry
      reading.moment = Number.isNaN(time) ? arrivedAt : time
      recall(reading, source, entry, read.memory)
      noteRemembered(reading, source, reading.moment, read.memory)
    },
    read(runtime, entry, record, at) {
      const { source } = runtime
      try {
        const reading = readingOf(source, record, at)
        reading.device = entry.device
        reading.notes = source.notes?.begin() ?? null
        onReading?.(reading, source)
        if (!isWanted(reading, source.when) || admitted(entry, reading) === null) return reading.rejection
        reading.countOthers(source.name)
        if (readRecord(reading, runtime, entry, read)) return reading.mapped(source.name, entry)
        return hintedRejection(source, reading.rejection, reading, entry)
      } catch (error) {
        return limitRejection(error)
      }
    },
  }

  function readingOf(
    { captures: names, extract }: SourcePlan,
    record: unknown,
    when: Pick<MessageAt, 'arrivedAt' | 'offsetMs' | 'live'>,
  ): Reading {
    const captures = names.map(() => '')
    const others: MessageAt['others'] = []
    const whole = extract === null ? record : extract(record, { captures, others })
    const of = { captures, root: whole, others, notes: when.live ? notes : null }
    const at = { message: null, ...when, ...of, flagged: null, owner: null, isLossNoted: false, noted: null }
    return new Reading(counts, at, whole, undefined)
  }
}
