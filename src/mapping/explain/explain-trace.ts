// explain-trace.ts: a source whose parts record their results. The mapper uses it like any other source, so
// the trace is what was really done, for single records, records of a list, collected records and merged
// ones.

import type { WriteGps } from '../fields/gps.ts'
import type { ReadFixTime } from '../times/fix-time.ts'
import type { ReadTime } from '../times/times.ts'
import type { Up, RecordContext } from '../types.ts'
import type { CompiledSource } from '../mapper/compiled-source.ts'

/** The results of the parts of a source for one record. Null for a part that did not run. */
export type Trace = {
  source: string
  record: unknown
  root: unknown
  up: Up
  /** The reason of the `refuse` rule that matched. */
  refused: string | null
  when: boolean | null
  valid: boolean | null
  /** Its own time; NaN where it has none. */
  time: number | null
  /** When the position was taken; NaN where the record has no time for it. */
  takenAt: number | null
  /** The written position; '' for none. */
  gps: string | null
  /** The record was refused because of its position. */
  positionRefused: boolean
  /** The position was sent as the last known one. */
  lastKnown: boolean
  /** The position was 0, 0. */
  zeroPosition: boolean
  family: number | null
  signals: readonly string[] | null
  fields: string | null
}

/** A value of a source that collects. */
export type TracedValue = { source: string; name: string; wanted: boolean; value: unknown }

export type Traces = { records: Trace[]; values: TracedValue[] }

/** In the order in which a record meets them. */
type Stage = 'refuse' | 'when' | 'time' | 'taken' | 'valid' | 'gps' | 'signals' | 'fields'

const order: readonly Stage[] = ['refuse', 'when', 'time', 'taken', 'valid', 'gps', 'signals', 'fields']

export function tracedSource(source: CompiledSource, traces: Traces): CompiledSource {
  let last: Stage | null = null
  return {
    ...source,
    refuse: source.refuse.map((rule) => ({
      ...rule,
      holds(record, root, captures, up) {
        const trace = at('refuse', record, root, up)
        const holds = rule.holds(record, root, captures, up)
        if (holds) trace.refused = rule.reason
        return holds
      },
    })),
    when: source.when && { ...source.when, holds: tracedCondition('when', source.when.holds) },
    time: source.time && {
      ...source.time,
      read: tracedTime(source.time.read),
    },
    fix: source.fix && {
      ...source.fix,
      valid: source.fix.valid && tracedCondition('valid', source.fix.valid),
      time: source.fix.time && tracedFixTime(source.fix.time),
    },
    gps: tracedGps(source.gps, false),
    gpsLastKnown: tracedGps(source.gpsLastKnown, true),
    signals: source.signals.map((write, family) => (record, root, up, context) => {
      const trace = at('signals', record, root, up)
      trace.family = family
      trace.signals = write(record, root, up, context)
      return trace.signals
    }),
    // Always present, because it marks the end of the record.
    extraFields(record, root, up, context) {
      const trace = at('fields', record, root, up)
      trace.fields = source.extraFields ? source.extraFields(record, root, up, context) : ''
      return trace.fields
    },
    coalesce: source.coalesce && tracedCoalesce(source.name, source.coalesce, traces.values),
  }

  /** The trace of the record; a new one for another record, or for the same one from its first stage. */
  function at(stage: Stage, record: unknown, root: unknown, up: Up): Trace {
    const known = traces.records.at(-1)
    const continues = last !== null && (order.indexOf(stage) > order.indexOf(last) || stage === 'refuse')
    const first = stage === 'refuse' && last !== 'refuse'
    last = stage
    if (known && known.source === source.name && known.record === record && continues && !first) return known
    const trace = newTrace(source.name, record, root, up)
    traces.records.push(trace)
    return trace
  }

  function tracedCondition(stage: 'when' | 'valid', holds: NonNullable<CompiledSource['when']>['holds']) {
    return (record: unknown, root: unknown, captures: readonly string[], up?: Up): boolean => {
      const trace = at(stage, record, root, up)
      trace[stage] = holds(record, root, captures, up)
      return trace[stage]
    }
  }

  function tracedTime(read: ReadTime): ReadTime {
    return (record, root, up, zone, captures) => {
      const trace = at('time', record, root, up)
      trace.time = read(record, root, up, zone, captures)
      return trace.time
    }
  }

  function tracedFixTime(read: ReadFixTime): ReadFixTime {
    return (record, root, up, messageTime, ofDevice) => {
      const trace = at('taken', record, root, up)
      trace.takenAt = read(record, root, up, messageTime, ofDevice)
      return trace.takenAt
    }
  }

  function tracedGps(write: WriteGps, lastKnown: boolean): WriteGps {
    return (record: unknown, root: unknown, up: Up, context: RecordContext) => {
      const trace = at('gps', record, root, up)
      const text = write(record, root, up, context)
      trace.gps = text
      trace.positionRefused = text === null
      trace.lastKnown = lastKnown
      trace.zeroPosition = context.zeroPosition
      return text
    }
  }
}

function newTrace(source: string, record: unknown, root: unknown, up: Up): Trace {
  return {
    source,
    record,
    root,
    up,
    refused: null,
    when: null,
    valid: null,
    time: null,
    takenAt: null,
    gps: null,
    positionRefused: false,
    lastKnown: false,
    zeroPosition: false,
    family: null,
    signals: null,
    fields: null,
  }
}

function tracedCoalesce(
  source: string,
  coalesce: NonNullable<CompiledSource['coalesce']>,
  values: TracedValue[],
): CompiledSource['coalesce'] {
  return {
    ...coalesce,
    name(captures, record, root, up) {
      const name = coalesce.name(captures, record, root, up)
      values.push({ source, name, wanted: coalesce.names.has(name), value: undefined })
      return name
    },
    value(record, root, up) {
      const value = coalesce.value(record, root, up)
      const own = values.at(-1)
      if (own) own.value = value
      return value
    },
  }
}
