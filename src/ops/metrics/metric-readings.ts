// metric-readings.ts: the form of a metric, and how its numbers are read from the counters of the stages.

import type { Verdict } from '../gateway-verdict/gateway-verdict.ts'
import type { DeadLetterOperations } from '../../dead-letters/dead-letters.ts'
import { keptStoreNames, type KeptStore } from '../../domain/kept-store.ts'
import type { ProviderView } from '../../delivery/types.ts'
import type { Conditions } from '../conditions/conditions.ts'
import type { HttpCounters } from '../http/http.ts'
import type { DeviceTotals, MappingView, ReasonCount, StageViews } from '../types.ts'

type Sample = { labels: Record<string, string>; value: number }
type Samples = readonly Sample[]
type Counts = ReadonlyMap<string, number> | undefined

/** What a scrape can see. */
export type MetricsView = {
  stages: StageViews
  conditions: Conditions
  version: string
  ready: boolean
  verdict: Verdict
  linesLost: number
  linesSuppressed: number
  /** Null before the server listens. */
  http: HttpCounters | null
  acceptedByLane: ReadonlyMap<string, number>
  eventLoopLag: { p50S: number; p99S: number; maxS: number }
}

type Read = (this: void, view: MetricsView) => Samples

/** Where the numbers come from, and the labels that they have. */
type Reading = { labels: readonly string[]; read: Read }

export type Metric = Reading & {
  name: `gateway_${string}` | `process_${string}`
  type: 'counter' | 'gauge'
  help: string
}

/** `help` says what it counts. A plain function reads a number without labels. */
export function counter(name: Metric['name'], help: string, reading: Reading | Read): Metric {
  return { name, type: 'counter', help, ...readingOf(reading) }
}

export function gauge(name: Metric['name'], help: string, reading: Reading | Read): Metric {
  return { name, type: 'gauge', help, ...readingOf(reading) }
}

function readingOf(reading: Reading | Read): Reading {
  return typeof reading === 'function' ? labelled([], reading) : reading
}

export function labelled(labels: readonly string[], read: Read): Reading {
  return { labels, read }
}

/**
 * Samples of one metric. Sources and reasons come from the config and from closed sets; this bounds them
 * anyway. Those beyond it are added up in one more sample, so that a sum over all of them is right.
 */
const samplesMax = 100
/** Every label of the sample of those beyond. */
const otherLabel = 'other'

/** A label value is a stable code. Reasons in words, such as `no fix`, become one; /status has the words. */
export function labelCode(text: string): string {
  return text.replaceAll(/[^\w.:-]+/g, '_').slice(0, 64)
}

export function one(value: number | undefined): Samples {
  return value === undefined ? [] : [{ labels: {}, value }]
}

type NumberKey<T> = { [K in keyof T]: T[K] extends number ? K : never }[keyof T]
type IngestCounters = ReturnType<NonNullable<StageViews['ingest']>['counters']>
type SpoolTotals = ReturnType<NonNullable<StageViews['spool']>['totals']>
type LedgerView = ReturnType<NonNullable<StageViews['ledger']>['view']>
type DeadLetterCounters = ReturnType<DeadLetterOperations['counters']>

export function ingest(key: NumberKey<IngestCounters>): Read {
  return ({ stages }) => one(stages.ingest?.counters()[key])
}

export function spool(key: NumberKey<SpoolTotals>): Read {
  return ({ stages }) => one(stages.spool?.totals()[key])
}

/** One sample a store of kept messages. */
export function perStore(read: (totals: SpoolTotals, store: KeptStore) => number): Reading {
  return labelled(['store'], ({ stages }) => {
    const totals = stages.spool?.totals()
    if (totals === undefined) return []
    return keptStoreNames.map((store) => ({ labels: { store }, value: read(totals, store) }))
  })
}

export function deadLetters(key: NumberKey<DeadLetterCounters>): Read {
  return ({ stages }) => one(stages.deadLetters?.counters()[key])
}

export function deviceRecords(key: NumberKey<DeviceTotals>): Read {
  return ({ stages }) => one(stages.mapping?.deviceTotals()[key])
}

export function ledger(key: NumberKey<LedgerView>): Read {
  return ({ stages }) => one(stages.ledger?.view()[key])
}

export function mapping(read: (view: MappingView) => number): Read {
  return ({ stages }) => {
    const view = stages.mapping?.view()
    return one(view && read(view))
  }
}

/** One sample a provider; none where the value is null. */
export function providers(read: (provider: ProviderView) => number | null): Reading {
  return labelled(['provider'], ({ stages }) =>
    (stages.delivery?.providers() ?? []).flatMap((provider) => {
      const value = read(provider)
      return value === null ? [] : [{ labels: { provider: provider.name }, value }]
    }),
  )
}

type KeyOf<Counted> = {
  [K in keyof IngestCounters]: IngestCounters[K] extends Counted ? K : never
}[keyof IngestCounters]

/** A label is empty where there is no source. */
export function bySource(key: KeyOf<readonly ReasonCount[]>): Reading {
  return labelled(['source', 'reason'], ({ stages }) =>
    bounded(
      (stages.ingest?.counters()[key] ?? []).map(({ source, reason, count }) => ({
        labels: { source: source ?? '', reason: labelCode(reason) },
        value: count,
      })),
    ),
  )
}

export function byReason(key: KeyOf<ReadonlyMap<string, number>>): Reading {
  return labelled(['reason'], ({ stages }) =>
    samplesOf(stages.ingest?.counters()[key], (reason) => ({ reason: labelCode(reason) })),
  )
}

export function byField(counts: 'omitted' | 'flagged'): Reading {
  return labelled(['source', 'field', 'reason'], ({ stages }) =>
    bounded(
      (stages.mapping?.view()[counts] ?? []).map(({ source, field, reason, values }) => ({
        labels: { source, field, reason: labelCode(reason) },
        value: values,
      })),
    ),
  )
}

export function samplesOf(counts: Counts, labelsOf: (key: string) => Sample['labels']): Samples {
  return bounded([...(counts ?? [])].map(([key, value]) => ({ labels: labelsOf(key), value })))
}

function bounded(all: Samples): Samples {
  const samples = all.slice(0, samplesMax)
  const [first] = samples
  if (first === undefined || all.length <= samplesMax) return samples
  const rest = all.slice(samplesMax).reduce((sum, { value }) => sum + value, 0)
  const labels = Object.fromEntries(Object.keys(first.labels).map((label) => [label, otherLabel]))
  return [...samples, { labels, value: rest }]
}

/** Lanes come and go; what is scraped is combined by provider and role. */
export function lanes(
  read: (lane: ReturnType<NonNullable<StageViews['spool']>['lanes']>[number]) => number | null,
  combine: (a: number, b: number) => number,
): Reading {
  return labelled(['provider', 'role'], ({ stages }) => {
    const samples = new Map<string, Sample>()
    for (const lane of stages.spool?.lanes() ?? []) {
      const value = read(lane)
      if (value === null) continue
      const labels = { provider: lane.provider, role: lane.role.kind }
      const name = JSON.stringify(labels)
      const known = samples.get(name)
      samples.set(name, { labels, value: known ? combine(known.value, value) : value })
    }
    return [...samples.values()]
  })
}

/** Keys are no labels: a batchId would make a new series for each batch. */
export const openConditions = labelled(['code', 'severity'], ({ conditions }) => {
  const open = new Map<string, Sample>()
  for (const { code, severity } of conditions.open())
    open.set(`${code}|${severity}`, { labels: { code, severity }, value: 1 })
  return [...open.values()]
})
