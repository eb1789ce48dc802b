// history-samples.ts: what is kept of each moment: the columns, how a sample is taken, and how several become
// one. A value is null where its stage was missing: nobody knows it, which is not zero.

import type { EpochMs } from '../../std/clock.ts'
import type { DeliveryCounters } from '../../delivery/types.ts'
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

/** How often during the sample. */
const countNames = ['messages', 'payloads', 'accepted', 'retried', 'dead', ...answerKinds] as const
/** At its end; of several samples the highest one. */
const highestNames = ['waiting', 'oldestAgeSeconds'] as const
/** At its end. */
const lastNames = ['spoolBytes', 'diskBytes', 'freeBytes', 'connections'] as const

export const columnNames = [...countNames, ...highestNames, ...lastNames] as const
export type ColumnName = (typeof columnNames)[number]

export type Sample = {
  /** Its end, by the wall clock. Changes when the clock is set. */
  at: EpochMs
  /** What it covers, by the monotonic clock. */
  ms: number
  /** In the order of `columnNames`. */
  values: (number | null)[]
}

const isCount = columnNames.map((name) => (countNames as readonly string[]).includes(name))
const isHighest = columnNames.map((name) => (highestNames as readonly string[]).includes(name))

export function columnOf(name: ColumnName): number {
  return columnNames.indexOf(name)
}

/** Counters as they are now; null for each whose stage is missing. */
export type Counters = readonly (number | null)[]

export function countersOf({ ingest, spool, delivery }: StageViews): Counters {
  const totals = spool?.totals()
  const sent = delivery?.counters()
  const answers = answersOf(sent)
  return [
    ingest?.counters().received ?? null,
    totals?.payloads ?? null,
    totals?.delivered ?? null,
    totals?.retried ?? null,
    sent?.dead ?? null,
    ...answerKinds.map((kind) => answers?.[kind] ?? null),
  ]
}

type AnswerCounts = Record<(typeof answerKinds)[number], number>

function answersOf(sent: DeliveryCounters | undefined): AnswerCounts | null {
  if (sent === undefined) return null
  const counts = Object.fromEntries(answerKinds.map((kind) => [kind, 0])) as AnswerCounts
  for (const [outcome, submissions] of sent.outcomes) counts[kindOf(outcome)] += submissions
  return counts
}

/** The key of an outcome is its kind, and a status or a reason. */
function kindOf(outcome: string): (typeof answerKinds)[number] {
  if (outcome.startsWith('accepted_single')) return 'answered'
  return answerKinds.find((kind) => outcome === kind || outcome.startsWith(`${kind}_`)) ?? 'other'
}

export function levelsOf({ ingest, spool }: StageViews, now: EpochMs): (number | null)[] {
  const totals = spool?.totals()
  const lanes = spool?.lanes() ?? null
  const oldest = lanes?.reduce<EpochMs | null>((first, lane) => {
    const at = oldestOf(lane)
    return at !== null && (first === null || at < first) ? at : first
  }, null)
  return [
    lanes?.reduce((sum, { pending, sealed }) => sum + pending + sealed, 0) ?? null,
    // Nothing waits: no age, which is not an age of zero.
    oldest === null || oldest === undefined ? null : Math.max(0, Math.round((now - oldest) / 1000)),
    totals
      ? totals.openBytes +
        totals.deadLetterBytes +
        totals.quarantineBytes +
        totals.deferredBytes +
        totals.stateBytes +
        totals.receiptBytes
      : null,
    totals?.diskBytes ?? null,
    totals?.freeBytes ?? null,
    ingest?.counters().connections ?? null,
  ]
}

/** A counter that is lower than before began again at zero with its stage. */
export function increase(before: Counters, now: Counters): (number | null)[] {
  return now.map((value, index) => {
    const from = before[index] ?? 0
    return value === null ? null : value >= from ? value - from : value
  })
}

/** Both as one: `later` follows `earlier`. */
export function joined(earlier: Sample, later: Sample): Sample {
  const values = later.values.map((value, index) => {
    const other = earlier.values[index] ?? null
    if (value === null || other === null) return value ?? (isCount[index] === true ? other : null)
    if (isCount[index] === true) return value + other
    return isHighest[index] === true ? Math.max(value, other) : value
  })
  return { at: later.at, ms: earlier.ms + later.ms, values }
}
