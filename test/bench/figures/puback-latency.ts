// puback-latency.ts: what an ack costs at an even thousand messages a second, in units of one durable write to
// the same disk, measured before each run while the gateway is idle.

import { figureOf, median, rounded, runLoad } from '../bench.ts'
import type { BenchOptions, Figure } from '../bench.ts'
import { runScript } from '../children.ts'
import { startWithSink } from '../gateway.ts'
import type { LatencySummary } from '../../../src/simulate/ack-latency.ts'

const ratePerS = 1000

export async function measurePubackLatency(options: BenchOptions): Promise<Figure[]> {
  const messages = Math.max(2000, Math.round(15_000 * options.scale))
  await using started = await startWithSink(options)
  const { folder, gateway } = started
  const load = (count: number) => runLoad({ port: gateway.mqttPort, messages: count, ratePerS })
  const writes: LatencySummary[] = []
  const acks: LatencySummary[] = []
  await load(5000)
  for (let pair = 0; pair < options.pairs; pair += 1) {
    writes.push(await runScript<LatencySummary>('fdatasync.ts', ['--count', '2000', folder]))
    acks.push((await load(messages)).latency)
  }
  return (['p50Ms', 'p99Ms'] as const).map((quantile): Figure => {
    const name = quantile.slice(0, 3)
    const most = quantile === 'p50Ms' ? 3 : 10
    const value = median(acks.map((ack) => ack[quantile])) / median(writes.map((write) => write[quantile]))
    return figureOf({
      figure: `puback_latency_${name}`,
      value,
      unit: `multiple of the ${name} of one 4 KiB append + fdatasync`,
      atMost: most,
      detail: {
        ratePerS,
        messages,
        ackMs: acks.map((ack) => rounded(ack[quantile])),
        fdatasyncMs: writes.map((write) => rounded(write[quantile])),
        ackMaxMs: acks.map((ack) => rounded(ack.maxMs)),
      },
    })
  })
}
