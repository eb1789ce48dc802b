// low-rate.ts: the processor time of many connections that send little: a thousand with a message a second each.
// That is what a small machine at a depot has to bear all day.
//
// Measured between two moments of the same run, so that connecting and the last batches do not count. After each run,
// bare aedes gets the same load: what reading and acknowledging alone takes on this machine. Its connects are in a short
// run too, which is subtracted. The latency of all acks is reported beside it, and one append with fdatasync on the same
// disk.

import { figureOf, median, rounded, runLoad, until } from '../bench.ts'
import type { BenchOptions, Figure } from '../bench.ts'
import { runScript, startServer } from '../children.ts'
import { startWithSink } from '../gateway.ts'
import { processorMs } from '../resident.ts'
import type { LatencySummary } from '../../../src/simulate/ack-latency.ts'

const connections = 1000
const ratePerS = 1000
const shareMax = 0.2
/** Until V8 has compiled what is used often, as in a daemon that runs for days. */
const warmUpMessages = 200_000
/** Before the first moment, and behind the second. */
const leftOutMessages = 2000

export async function measureLowRate(options: BenchOptions): Promise<Figure[]> {
  const messages = leftOutMessages * 2 + Math.max(2000, Math.round(20_000 * options.scale))
  await using started = await startWithSink(options)
  const { folder, gateway, sink } = started
  await using bare = await startServer('bare-aedes.ts')
  const load = (port: number, count: number) => runLoad({ port, connections, ratePerS, messages: count })
  // The sink is asked and not the gateway, whose time is measured.
  const moment = async (payloads: number) => {
    await until(`the sink has ${payloads} payloads`, async () => (await sink.stats()).payloads >= payloads, {
      timeoutMs: 300_000,
    })
    return { cpuMs: await processorMs(gateway.pid), atMs: performance.now() }
  }
  const loadBare = async (count: number) => {
    const before = await processorMs(bare.pid)
    const { tookMs, latency } = await load(bare.port, count)
    return { tookMs, latency, cpuMs: (await processorMs(bare.pid)) - before }
  }
  const shares: number[] = []
  const bareShares: number[] = []
  const acks: LatencySummary[] = []
  const bareAcks: LatencySummary[] = []
  const writes: LatencySummary[] = []
  for (const port of [gateway.mqttPort, bare.port])
    await runLoad({ port, connections: 16, window: 64, messages: warmUpMessages })
  await moment(warmUpMessages)
  for (let run = 0; run < options.pairs; run += 1) {
    writes.push(await runScript<LatencySummary>('fdatasync.ts', ['--count', '2000', folder]))
    await sink.open()
    const loading = load(gateway.mqttPort, messages)
    const [from, to] = [await moment(leftOutMessages), await moment(messages - leftOutMessages)]
    shares.push((to.cpuMs - from.cpuMs) / (to.atMs - from.atMs))
    acks.push((await loading).latency)
    await moment(messages)
    const [short, long] = [await loadBare(leftOutMessages), await loadBare(messages)]
    bareShares.push((long.cpuMs - short.cpuMs) / (long.tookMs - short.tookMs))
    bareAcks.push(long.latency)
  }
  const value = median(shares)
  return [
    figureOf({
      figure: 'low_rate',
      value,
      unit: `share of a core at ${ratePerS} messages/s over ${connections} connections`,
      atMost: shareMax,
      detail: {
        messages,
        shares: shares.map((share) => rounded(share)),
        bareShares: bareShares.map((share) => rounded(share)),
        ackP50Ms: acks.map((ack) => rounded(ack.p50Ms)),
        ackP99Ms: acks.map((ack) => rounded(ack.p99Ms)),
        bareAckP99Ms: bareAcks.map((ack) => rounded(ack.p99Ms)),
        fdatasyncP99Ms: writes.map((write) => rounded(write.p99Ms)),
      },
    }),
  ]
}
