// metric-readings.ts: how the numbers of the metrics are read from the counters of the stages.

import type { Conditions } from '../conditions/conditions.ts'
import type { MappingView, StageViews } from '../types.ts'

export type Sample = { labels: Record<string, string>; value: number }

/** What a scrape can see. */
export type MetricsView = {
  stages: StageViews
  conditions: Conditions
  version: string
  ready: boolean
  linesLost: number
  acceptedByLane: ReadonlyMap<string, number>
  eventLoopLag: { p50S: number; p99S: number; maxS: number }
}

export type Metric = {
  name: `gateway_${string}` | `process_${string}`
  type: 'counter' | 'gauge'
  labels: readonly string[]
  help: string
  read(this: void, view: MetricsView): readonly Sample[]
}

/** Sources and reasons come from the config and from closed sets; this bounds them whatever happens. */
export const reasonsMax = 100

type NumberKey<T> = { [K in keyof T]: T[K] extends number ? K : never }[keyof T]
type IngestNumber = NumberKey<ReturnType<NonNullable<StageViews['ingest']>['counters']>>
type SpoolNumber = NumberKey<ReturnType<NonNullable<StageViews['spool']>['totals']>>

export function ingest(key: IngestNumber): Metric['read'] {
  return ({ stages }) => (stages.ingest ? one(stages.ingest.counters()[key]) : [])
}

export function spool(key: SpoolNumber): Metric['read'] {
  return ({ stages }) => (stages.spool ? one(stages.spool.totals()[key]) : [])
}

export function one(value: number): readonly Sample[] {
  return [{ labels: {}, value }]
}

/** Keys are `source|reason`; a source may hold a `|`, a reason never does. */
export function byReason(counts: ReadonlyMap<string, number> | undefined): readonly Sample[] {
  return [...(counts ?? [])].slice(0, reasonsMax).map(([key, value]) => {
    const bar = key.lastIndexOf('|')
    return { labels: { source: key.slice(0, Math.max(0, bar)), reason: key.slice(bar + 1) }, value }
  })
}

/** Keys are `source|field|reason`; of these only a source may hold a `|`. */
export function byField(counts: ReadonlyMap<string, number> | undefined): readonly Sample[] {
  return [...(counts ?? [])].slice(0, reasonsMax).map(([key, value]) => {
    const parts = key.split('|')
    const reason = parts.pop() ?? ''
    const field = parts.pop() ?? ''
    return { labels: { source: parts.join('|'), field, reason }, value }
  })
}

export function fromView({ stages }: MetricsView, read: (view: MappingView) => number): readonly Sample[] {
  const view = stages.mapping?.view()
  return view ? one(read(view)) : []
}

export function counted(counts: ReadonlyMap<string, number> | undefined): readonly Sample[] {
  return [...(counts ?? [])].slice(0, reasonsMax).map(([reason, value]) => ({ labels: { reason }, value }))
}

/** Lanes come and go; what is scraped is their sum by provider and role. */
export function byLane({ stages }: MetricsView, key: 'pending' | 'sealed'): readonly Sample[] {
  const sums = new Map<string, Sample>()
  for (const lane of stages.spool?.lanes() ?? []) {
    const labels = { provider: lane.provider, role: lane.role.kind }
    const name = JSON.stringify(labels)
    sums.set(name, { labels, value: (sums.get(name)?.value ?? 0) + lane[key] })
  }
  return [...sums.values()]
}

export function oldest({ stages }: MetricsView): readonly Sample[] {
  const oldestByName = new Map<string, Sample>()
  for (const { provider, role, oldestAt } of stages.spool?.lanes() ?? []) {
    if (oldestAt === null) continue
    const labels = { provider, role: role.kind }
    const name = JSON.stringify(labels)
    const value = Math.min(oldestAt / 1000, oldestByName.get(name)?.value ?? Infinity)
    oldestByName.set(name, { labels, value })
  }
  return [...oldestByName.values()]
}

/** Keys stay out of the labels: a batchId would make a new series for each batch. */
export function openConditions(conditions: Conditions): readonly Sample[] {
  const open = new Map<string, Sample>()
  for (const { code, severity } of conditions.open())
    open.set(`${code}|${severity}`, { labels: { code, severity }, value: 1 })
  return [...open.values()]
}

export function counter(
  name: Metric['name'],
  help: string,
  read: Metric['read'],
  labels: readonly string[] = [],
): Metric {
  return { name, type: 'counter', labels, help, read }
}

export function gauge(
  name: Metric['name'],
  help: string,
  read: Metric['read'],
  labels: readonly string[] = [],
): Metric {
  return { name, type: 'gauge', labels, help, read }
}
