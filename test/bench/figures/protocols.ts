// protocols.ts: what MQTT 5 and WebSocket cost: acknowledged messages a second as a share of 3.1.1 over TCP, and the
// processor time of a message in times of it.
//
// One gateway with both listeners; the kinds take turns, in the other order every second time.

import { makeFolder, median, rounded, runLoad, startSink } from '../bench.ts'
import type { BenchOptions, Figure } from '../bench.ts'
import { startGateway } from '../gateway.ts'
import type { LoadResult } from '../load.ts'
import { processorMs } from '../resident.ts'
import { endToEnd } from './throughput.ts'

type Kind = { name: string; ws?: boolean; mqtt5?: 'plain' | 'properties' }
type Run = { load: LoadResult; usEach: number }

const base: Kind = { name: 'mqtt3_tcp' }
const compared: readonly Kind[] = [
  { name: 'mqtt5_share', mqtt5: 'plain' },
  { name: 'mqtt5_properties_share', mqtt5: 'properties' },
  { name: 'ws_share', ws: true },
]

export async function measureProtocols(options: BenchOptions): Promise<Figure[]> {
  const messages = Math.max(160, Math.round(200_000 * options.scale))
  await using folder = await makeFolder(options.dir)
  await using sink = await startSink({ closed: false })
  const { signals } = options
  await using gateway = await startGateway({ folder: folder.path, sinkPort: sink.port, signals, ws: true })
  const kinds = [base, ...compared].map((kind) => ({ ...kind, runs: [] as Run[] }))
  const measure = async ({ ws = false, mqtt5 }: Kind, count: number): Promise<Run> => {
    const port = ws ? gateway.wsPort : gateway.mqttPort
    const beforeMs = await processorMs(gateway.pid)
    const load = await endToEnd(
      () => runLoad({ port, messages: count, ws, ...(mqtt5 && { mqtt5 }) }),
      sink,
      count,
    )
    return { load, usEach: (((await processorMs(gateway.pid)) - beforeMs) * 1000) / count }
  }
  for (const kind of kinds) await measure(kind, Math.round(messages / 4))
  for (let round = 0; round < options.pairs; round += 1)
    for (const kind of round % 2 === 0 ? kinds : kinds.toReversed())
      kind.runs.push(await measure(kind, messages))

  const first = kinds[0]!
  const times = (runs: readonly Run[]) =>
    median(runs.map(({ usEach }, round) => usEach / (first.runs[round]?.usEach ?? Number.NaN)))
  const share = (runs: readonly Run[]) =>
    median(runs.map(({ load }, round) => load.ackedPerS / (first.runs[round]?.load.ackedPerS ?? Number.NaN)))
  return kinds.slice(1).map(({ name, runs }) => ({
    figure: name,
    value: rounded(share(runs)),
    unit: 'share of acknowledged messages/s of MQTT 3.1.1 over TCP',
    target: null,
    reached: null,
    detail: {
      messages,
      processorTimes: rounded(times(runs)),
      usEach: runs.map(({ usEach }) => rounded(usEach, 2)),
      mqtt3TcpUsEach: first.runs.map(({ usEach }) => rounded(usEach, 2)),
      ackedPerS: runs.map(({ load }) => Math.round(load.ackedPerS)),
      mqtt3TcpAckedPerS: first.runs.map(({ load }) => Math.round(load.ackedPerS)),
      loadBusy: runs.map(({ load }) => rounded(load.cpuMs / load.tookMs, 2)),
    },
  }))
}
