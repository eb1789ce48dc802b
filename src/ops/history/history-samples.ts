// history-samples.ts: what is kept of each moment: a table of columns; how a sample is taken, and how
// several become one. A value is null while its stage was not running: it is unknown, not zero.

import type { EpochMs } from '../../std/clock.ts'
import type { DeliveryCounters } from '../../delivery/types.ts'
import type { SpoolTotals } from '../../spool/spool.ts'
import { oldestOf } from '../lane-age.ts'
import type { StageViews } from '../types.ts'

/** How submissions ended. */
export const answerKinds = [
  'answered',
  'refused',
  'repeated',
  'unauthorized',
  'unavailable',
  'unreachable',
  'other',
] as const

type Column = {
  /**
   * `count`: of a counter, how often during the sample. The others are read at its end: of several samples
   * the `highest` value, or the `last` one.
   */
  kind: 'count' | 'highest' | 'last'
  means: string
  /** Null or undefined where its stage is missing. */
  read(stages: StageViews, now: EpochMs): number | null | undefined
}

type AnswerKind = (typeof answerKinds)[number]

const answerColumns = Object.fromEntries(
  answerKinds.map((kind): [AnswerKind, Column] => [
    kind,
    {
      kind: 'count',
      means: `Submissions that ended so: ${kind}.`,
      read: ({ delivery }) => delivery && submissionsOf(kind, delivery.counters()),
    },
  ]),
) as Record<AnswerKind, Column>

/** Without the answers. */
export const plainColumns = {
  messages: {
    kind: 'count',
    means: 'Messages received.',
    read: ({ ingest }) => ingest?.counters().received,
  },
  payloads: {
    kind: 'count',
    means: 'Payloads stored.',
    read: ({ spool }) => spool?.totals().payloads,
  },
  accepted: {
    kind: 'count',
    means: 'Payloads that the service accepted.',
    read: ({ spool }) => spool?.totals().delivered,
  },
  retried: {
    kind: 'count',
    means: 'Payloads that failed and wait for another try.',
    read: ({ spool }) => spool?.totals().retried,
  },
  dead: {
    kind: 'count',
    means: 'Payloads that became dead letters because the service refused them.',
    read: ({ delivery }) => delivery?.counters().dead,
  },
  waiting: {
    kind: 'highest',
    means: 'Payloads that waited, at most.',
    read: ({ spool }) => spool?.lanes().reduce((sum, { pending, sealed }) => sum + pending + sealed, 0),
  },
  oldestAgeSeconds: {
    kind: 'highest',
    means: 'Age of the oldest of them, at most; null: none waited.',
    read({ spool }, now) {
      const times = (spool?.lanes() ?? []).map(oldestOf).filter((at) => at !== null)
      // Nothing waits: no age, which is not an age of zero.
      return times.length === 0 ? null : Math.max(0, Math.round((now - Math.min(...times)) / 1000))
    },
  },
  spoolBytes: {
    kind: 'last',
    means: 'What counts for the limit of the spool.',
    read: ({ spool }) => spool && keptBytes(spool.totals()),
  },
  diskBytes: {
    kind: 'last',
    means: 'Its files on the disk.',
    read: ({ spool }) => spool?.totals().diskBytes,
  },
  freeBytes: {
    kind: 'last',
    means: 'Free on its file system.',
    read: ({ spool }) => spool?.totals().freeBytes,
  },
  connections: {
    kind: 'last',
    means: 'Open connections of clients.',
    read: ({ ingest }) => ingest?.counters().connections,
  },
} as const satisfies Record<string, Column>

const columns = { ...plainColumns, ...answerColumns }
export type ColumnName = keyof typeof columns

export const columnNames = Object.keys(columns) as ColumnName[]
const kinds = Object.values<Column>(columns).map(({ kind }) => kind)

export type Sample = {
  /** Its end, by the wall clock. Changes when the clock is set. */
  at: EpochMs
  /** What it covers, by the monotonic clock. */
  ms: number
  /** In the order of `columnNames`. */
  values: (number | null)[]
}

export function columnOf(name: ColumnName): number {
  return columnNames.indexOf(name)
}

/** As they are now, counters since the start of their stage; null for each whose stage is missing. */
export type Readings = readonly (number | null)[]

export function readingsOf(stages: StageViews, now: EpochMs): Readings {
  return Object.values<Column>(columns).map(({ read }) => read(stages, now) ?? null)
}

function submissionsOf(kind: AnswerKind, { outcomes }: DeliveryCounters): number {
  let sum = 0
  for (const [outcome, submissions] of outcomes) if (kindOf(outcome) === kind) sum += submissions
  return sum
}

function keptBytes(totals: SpoolTotals): number {
  const { openBytes, deadLetterBytes, quarantineBytes, deferredBytes, stateBytes, receiptBytes } = totals
  return openBytes + deadLetterBytes + quarantineBytes + deferredBytes + stateBytes + receiptBytes
}

/** The key of an outcome is its kind, and a status or a reason. */
function kindOf(outcome: string): AnswerKind {
  if (outcome.startsWith('accepted_single')) return 'answered'
  return answerKinds.find((kind) => outcome === kind || outcome.startsWith(`${kind}_`)) ?? 'other'
}

/** The values of the sample between two readings. A counter that is lower than before began again at zero. */
export function valuesOf(before: Readings, now: Readings): (number | null)[] {
  return now.map((value, index) => {
    const from = before[index] ?? 0
    return value !== null && kinds[index] === 'count' && value >= from ? value - from : value
  })
}

/** Both as one: `later` follows `earlier`. */
export function joined(earlier: Sample, later: Sample): Sample {
  const values = later.values.map((value, index) => {
    const other = earlier.values[index] ?? null
    if (value === null || other === null) return value ?? (kinds[index] === 'count' ? other : null)
    if (kinds[index] === 'count') return value + other
    return kinds[index] === 'highest' ? Math.max(value, other) : value
  })
  return { at: later.at, ms: earlier.ms + later.ms, values }
}
