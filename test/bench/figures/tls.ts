// tls.ts: what TLS costs: acknowledged messages a second over TLS as a share of plain TCP, and anonymous memory of an
// idle connection of each kind.
//
// One gateway with both listeners; the kinds take turns. The load generator decrypts in its own process.

import { setTimeout as wait } from 'node:timers/promises'
import { figureOf, median, rounded, runLoad } from '../bench.ts'
import type { BenchOptions, Figure } from '../bench.ts'
import { startServer } from '../children.ts'
import { startWithSink } from '../gateway.ts'
import { residentBytes } from '../resident.ts'
import { endToEnd } from './throughput.ts'

const shareMin = 0.5

export async function measureTlsShare(options: BenchOptions): Promise<Figure[]> {
  const messages = Math.max(160, Math.round(300_000 * options.scale))
  await using started = await startWithSink(options, { tls: true })
  const { tlsPort, mqttPort } = started.gateway
  const load = (tls: boolean, messages: number) =>
    endToEnd(started, messages, () => runLoad({ port: tls ? tlsPort : mqttPort, messages, tls }))
  const runs: Record<'plain' | 'tls', Awaited<ReturnType<typeof load>>[]> = { plain: [], tls: [] }
  for (const tls of [false, true]) await load(tls, Math.round(messages / 4))
  for (let pair = 0; pair < options.pairs; pair += 1) {
    runs.plain.push(await load(false, messages))
    runs.tls.push(await load(true, messages))
  }
  const rates = (kind: 'plain' | 'tls') => runs[kind].map(({ ackedPerS }) => Math.round(ackedPerS))
  const value = median(rates('tls')) / median(rates('plain'))
  return [
    figureOf({
      figure: 'tls_share',
      value,
      unit: 'share of acknowledged messages/s without TLS',
      atLeast: shareMin,
      detail: {
        messages,
        plainAckedPerS: rates('plain'),
        tlsAckedPerS: rates('tls'),
        tlsGatewayCpuUsEach: runs.tls.map(({ usEach }) => rounded(usEach)),
        tlsP99Ms: runs.tls.map(({ latency }) => rounded(latency.p99Ms)),
        loadBusy: runs.tls.map(({ cpuMs, tookMs }) => rounded(cpuMs / tookMs, 2)),
      },
    }),
  ]
}

const idleKb = { plain: 40, tls: 90 } as const

export async function measureIdleMemory(options: BenchOptions): Promise<Figure[]> {
  const count = Math.max(100, Math.round(5000 * options.scale))
  const figures: Figure[] = []
  for (const kind of ['plain', 'tls'] as const) {
    await using started = await startWithSink(options, { tls: true })
    const { mqttPort, tlsPort, pid } = started.gateway
    const port = kind === 'tls' ? tlsPort : mqttPort
    const tls = kind === 'tls' ? 1 : 0
    const open = (connections: number) =>
      startServer(
        'idle.ts',
        Object.entries({ port, connections, tls }).flatMap(([name, value]) => [`--${name}`, `${value}`]),
      )
    // Code and buffers that the first connections need are not theirs.
    await using _first = await open(50)
    const before = await quietBytes(pid)
    await using _idle = await open(count)
    const after = await quietBytes(pid)
    const value = (after - before) / count / 1000
    figures.push(
      figureOf({
        figure: `idle_memory_${kind}`,
        value,
        digits: 1,
        unit: 'KB of anonymous memory a connection',
        atMost: idleKb[kind],
        detail: { connections: count, beforeMb: rounded(before / 1e6, 1), afterMb: rounded(after / 1e6, 1) },
      }),
    )
  }
  return figures
}

/** The least that was seen for a while: what V8 gives back, it gives back late. */
async function quietBytes(pid: number): Promise<number> {
  let least = Infinity
  for (let sample = 0; sample < 20; sample += 1) {
    await wait(250)
    least = Math.min(least, (await residentBytes(pid)) ?? Infinity)
  }
  return least
}
