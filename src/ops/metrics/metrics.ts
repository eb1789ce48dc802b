// metrics.ts: the catalogue as a Prometheus registry of our own (never the global one: two gateways in one
// process, as in the tests, must not share numbers).

import { Counter, Gauge, Histogram, Registry } from 'prom-client'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { LaneId } from '../../domain/ids.ts'
import type { GatewayEvent } from '../../domain/event.ts'
import type { LaneView } from '../../spool/spool.ts'
import { durationHistograms, metricCatalogue } from './metrics-catalogue.ts'
import type { Metric } from '../status-schema/fact.ts'
import type { MetricsView } from './metrics-view.ts'

/** Lanes whose role is remembered for batches that are settled later. Old ones are forgotten first. */
const lanesMax = 1024
/** How often the event loop is sampled. Each sample is a wake-up, also of an idle process. */
const lagResolutionMs = 1000

export type Metrics = {
  apply(this: void, event: GatewayEvent): void
  writeEnded(this: void, tookMs: number): void
  acksGiven(this: void, waitMs: number): void
  /** The text that Prometheus scrapes. */
  scrape(): Promise<string>
  readonly contentType: string
  stop(): void
}

type Source = Omit<MetricsView, 'acceptedByLane' | 'eventLoopLag'>

type Deps = { view: () => Source; lanes: () => readonly LaneView[] }

export function createMetrics({ view, lanes }: Deps): Metrics {
  const registry = new Registry()
  const acceptedByLane = new Map<string, number>()
  const roleOf = new Map<LaneId, string>()
  const delay = monitorEventLoopDelay({ resolution: lagResolutionMs })
  delay.enable()
  /** What the present scrape sees: read once, so that the numbers of one scrape belong together. */
  let seen: MetricsView | null = null
  for (const metric of metricCatalogue) register(metric)
  const [submissions, writes, acks] = durationHistograms.map(
    ({ name, help, labels, buckets }) =>
      new Histogram({ name, help, labelNames: [...labels], buckets: [...buckets], registers: [registry] }),
  )

  return {
    apply,
    writeEnded,
    acksGiven,
    scrape,
    contentType: registry.contentType,
    stop: () => void delay.disable(),
  }

  function apply(event: GatewayEvent): void {
    if (event.kind === 'submission_ended') {
      submissions?.observe({ outcome: event.outcome.kind }, event.tookMs / 1000)
    } else if (event.kind === 'batch_sealed') {
      rememberRole(event.lane)
    } else if (event.kind === 'batch_settled' && event.delivered > 0) {
      const lane = rememberRole(event.lane)
      acceptedByLane.set(lane, (acceptedByLane.get(lane) ?? 0) + event.delivered)
    }
  }

  function writeEnded(tookMs: number): void {
    writes?.observe(tookMs / 1000)
  }

  function acksGiven(waitMs: number): void {
    acks?.observe(waitMs / 1000)
  }

  /** A lane may be gone when its last batch is settled, so its role is looked up while it is there. */
  function rememberRole(lane: LaneId): string {
    const role = lanes().find(({ id }) => id === lane)?.role.kind ?? roleOf.get(lane)
    if (role === undefined) return 'unknown'
    for (const oldest of roleOf.keys()) {
      if (roleOf.size < lanesMax) break
      roleOf.delete(oldest)
    }
    roleOf.set(lane, role)
    return role
  }

  async function scrape(): Promise<string> {
    const seconds = (nanoseconds: number) =>
      Number.isFinite(nanoseconds) ? Math.max(0, nanoseconds / 1e9 - lagResolutionMs / 1000) : 0
    const eventLoopLag = {
      p50S: seconds(delay.percentile(50)),
      p99S: seconds(delay.percentile(99)),
      maxS: seconds(delay.max),
    }
    delay.reset()
    seen = { ...view(), acceptedByLane, eventLoopLag }
    return registry.metrics()
  }

  function register({ name, help, labels, type, read }: Metric<MetricsView>): void {
    const shape = { name, help, labelNames: [...labels], registers: [registry] }
    if (type === 'gauge') {
      const gauge = new Gauge({
        ...shape,
        collect() {
          gauge.reset()
          if (!seen) return
          const samples = read(seen)
          // Without a label it has the value 0 after a reset. What is not known is absent, not 0.
          if (samples.length === 0 && labels.length === 0) gauge.remove()
          for (const sample of samples) gauge.set(sample.labels, sample.value)
        },
      })
      return
    }
    const counter = new Counter({
      ...shape,
      // The stages count; here the total is only put in place, so a reset is no reset of the series.
      collect() {
        counter.reset()
        if (!seen) return
        for (const { labels, value } of read(seen)) counter.inc(labels, value)
      },
    })
  }
}
