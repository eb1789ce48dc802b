// run.ts: the benchmark.
//
//   npm run bench
//   npm run bench -- --only throughput_16,mapping [--pairs 3] [--scale 1] [--dir DIR]
//
// Prints one JSON line per figure. Ratios come from runs side by side on the same machine: load generator, service
// and the gateway are processes of their own, everything is on loopback and on a real disk with fsync on. Nothing
// else should run meanwhile. Exit status 1 when a figure could not be measured; a missed target is no failure.

import { parseArgs } from 'node:util'
import { realDisk } from './bench.ts'
import type { BenchOptions, Figure } from './bench.ts'
import { measureBacklog } from './figures/backlog.ts'
import { measureBacklogOfOne, measureDepot, measureIdle } from './figures/depot.ts'
import { measureDrainLive } from './figures/drain-live.ts'
import { measureLowRate } from './figures/low-rate.ts'
import { measureManyConnections } from './figures/many-connections.ts'
import { measureMapping, measureMappingShapes } from './figures/mapping.ts'
import { measurePubackLatency } from './figures/puback-latency.ts'
import { measureStatusLatency } from './figures/status-latency.ts'
import { measureThroughput } from './figures/throughput.ts'
import { measureIdleMemory, measureTlsShare } from './figures/tls.ts'
import { writeLine } from './script.ts'

type Measure = (options: BenchOptions) => Promise<Figure[]>

/** What one measurement yields; `--only` takes these names. */
const measures: readonly { yields: readonly string[]; measure: Measure }[] = [
  {
    yields: ['throughput_16', 'processor_time_16'],
    measure: (options) =>
      measureThroughput(
        { name: '16', connections: 16, window: 64, messages: 600_000, target: 0.38, timesMax: 3.5 },
        options,
      ),
  },
  {
    yields: ['throughput_1000', 'processor_time_1000'],
    measure: (options) =>
      measureThroughput(
        { name: '1000', connections: 1000, window: 1, messages: 300_000, target: 0.6, timesMax: 1.75 },
        options,
      ),
  },
  { yields: ['tls_share'], measure: measureTlsShare },
  { yields: ['idle_memory'], measure: measureIdleMemory },
  { yields: ['low_rate'], measure: measureLowRate },
  { yields: ['depot_100'], measure: (options) => measureDepot(100, options) },
  { yields: ['depot_10'], measure: (options) => measureDepot(10, options) },
  { yields: ['idle'], measure: measureIdle },
  { yields: ['backlog_1'], measure: measureBacklogOfOne },
  { yields: ['many_connections'], measure: measureManyConnections },
  { yields: ['puback_latency'], measure: measurePubackLatency },
  { yields: ['drain', 'disk', 'resident', 'startup'], measure: measureBacklog },
  { yields: ['fresh', 'drain_live'], measure: measureDrainLive },
  { yields: ['mapping'], measure: measureMapping },
  { yields: ['mapping_2kb', 'mapping_topics'], measure: measureMappingShapes },
  { yields: ['status_latency'], measure: measureStatusLatency },
]

// A first Ctrl-C ends the bench, and `exit` takes its processes along.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))

const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    pairs: { type: 'string', default: '3' },
    scale: { type: 'string', default: '1' },
    dir: { type: 'string' },
  },
})
const options: BenchOptions = {
  dir: values.dir ?? (await realDisk()),
  pairs: positive('pairs', values.pairs),
  scale: positive('scale', values.scale),
}
const wanted = wantedNames(values.only)
for (const { yields, measure } of measures) {
  if (!yields.some((name) => wanted.has(name))) continue
  try {
    for (const figure of await measure(options)) writeLine(figure)
  } catch (error) {
    writeLine({ figure: yields.join(), error: error instanceof Error ? error.message : String(error) })
    process.exitCode = 1
  }
}

function positive(name: string, text: string): number {
  const value = Number(text)
  if (value > 0 && Number.isFinite(value)) return value
  throw new Error(`--${name} must be a number above 0, found ${text}`)
}

function wantedNames(only: string | undefined): ReadonlySet<string> {
  const known = measures.flatMap(({ yields }) => yields)
  const asked = only === undefined ? known : only.split(',')
  const unknown = asked.filter((name) => !known.includes(name))
  if (unknown.length > 0) throw new Error(`unknown figure ${unknown.join()}; there are ${known.join(', ')}`)
  return new Set(asked)
}
