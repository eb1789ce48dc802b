// drain-live.ts: fresh first. A backlog of a million payloads drains into a service that needs its time for each batch, while
// devices go on publishing: how old is what is fresh when the service has it, and what does that cost the drain?
//
// The same drain without live traffic is the other side of the comparison, in the same run.

import { figureOf, makeFolder, median, runLoad, startSink, until } from '../bench.ts'
import type { BenchOptions, Figure, Sink } from '../bench.ts'
import { startGateway } from '../gateway.ts'
import type { Gateway } from '../gateway.ts'

const livePerS = 200
/** Of a service that is some way off; with four requests at once it takes up to 40,000 payloads a second. */
const answerMs = 50
const lingerMs = 1000

type Drain = {
  payloadsPerS: number
  live: { p50Ms: number; p95Ms: number; maxMs: number; count: number } | null
}

export async function measureDrainLive(options: BenchOptions): Promise<Figure[]> {
  const payloads = Math.round(1_000_000 * options.scale)
  const quiet: Drain[] = []
  const busy: Drain[] = []
  for (let pair = 0; pair < Math.min(options.pairs, 2); pair += 1) {
    quiet.push(await runDrain(payloads, false, options))
    busy.push(await runDrain(payloads, true, options))
  }
  const p95Ms = Math.max(...busy.map(({ live }) => live?.p95Ms ?? Number.POSITIVE_INFINITY))
  const share =
    median(busy.map(({ payloadsPerS }) => payloadsPerS)) / median(quiet.map((run) => run.payloadsPerS))
  const detail = { payloads, livePerS, answerMs, busy, quiet }
  return [
    figureOf({
      figure: 'fresh',
      value: p95Ms,
      digits: 0,
      unit: 'ms from publish to accepted, p95, during the whole drain',
      atMost: 2000 + lingerMs,
      detail,
    }),
    figureOf({
      figure: 'drain_live',
      value: share,
      unit: 'share of the rate without live traffic',
      atLeast: 0.8,
      detail: null,
    }),
  ]
}

async function runDrain(payloads: number, withLive: boolean, options: BenchOptions): Promise<Drain> {
  await using folder = await makeFolder(options.dir)
  await using sink = await startSink({ closed: true, answerMs })
  const setting = { folder: folder.path, sinkPort: sink.port }
  await using gateway = await startGateway(setting)
  await runLoad({ port: gateway.mqttPort, messages: payloads })
  await sink.open()
  await until(
    'the first batch was accepted',
    async () => {
      gateway.probe()
      return (await sink.stats()).payloads > 0
    },
    { timeoutMs: 120_000, everyMs: 500 },
  )
  if (!withLive) {
    await drained(gateway, sink, payloads)
    return { payloadsPerS: (await sink.stats()).steadyPerS, live: null }
  }
  const drain = { ended: false }
  const rounds: Promise<unknown> = (async () => {
    while (!drain.ended)
      await runLoad({ port: gateway.mqttPort, messages: livePerS * 5, ratePerS: livePerS, live: true })
  })()
  await drained(gateway, sink, payloads)
  const { steadyPerS, live } = await sink.stats()
  drain.ended = true
  await rounds
  return { payloadsPerS: steadyPerS, live: { ...live } }
}

/** Until no more than what live traffic leaves for a moment is in the spool. */
async function drained(gateway: Gateway, sink: Sink, payloads: number): Promise<void> {
  await until('the sink has the backlog', async () => (await sink.stats()).payloads >= payloads, {
    timeoutMs: 600_000,
    everyMs: 250,
  })
  await until('the spool is nearly empty', async () => (await gateway.open()).payloads < 2 * livePerS, {
    timeoutMs: 60_000,
  })
}
