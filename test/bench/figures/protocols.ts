// protocols.ts: what MQTT 5 and WebSocket cost: acknowledged messages a second as a share of 3.1.1 over TCP, and the
// processor time of a message in times of it.
//
// One gateway with both listeners; the kinds take turns, in the other order every second time.

import { figureOf, median, rounded, runLoad } from '../bench.ts'
import type { BenchOptions, Figure } from '../bench.ts'
import { startWithSink } from '../gateway.ts'
import { endToEnd } from './throughput.ts'

type Kind = { name: string; ws?: boolean; mqtt5?: 'plain' | 'properties' }
type Run = Awaited<ReturnType<typeof endToEnd>>

const base: Kind = { name: 'mqtt3_tcp' }
const compared: readonly Kind[] = [
  { name: 'mqtt5_share', mqtt5: 'plain' },
  { name: 'mqtt5_properties_share', mqtt5: 'properties' },
  { name: 'ws_share', ws: true },
]

export async function measureProtocols(options: BenchOptions): Promise<Figure[]> {
  const messages = Math.max(160, Math.round(200_000 * options.scale))
  await using started = await startWithSink(options, { ws: true })
  const { wsPort, mqttPort } = started.gateway
  const kinds = [base, ...compared].map((kind) => ({ ...kind, runs: [] as Run[] }))
  const measure = ({ ws = false, mqtt5 }: Kind, messages: number): Promise<Run> => {
    const port = ws ? wsPort : mqttPort
    return endToEnd(started, messages, () => runLoad({ port, messages, ws, ...(mqtt5 && { mqtt5 }) }))
  }
  for (const kind of kinds) await measure(kind, Math.round(messages / 4))
  for (let round = 0; round < options.pairs; round += 1)
    for (const kind of round % 2 === 0 ? kinds : kinds.toReversed())
      kind.runs.push(await measure(kind, messages))

  const first = kinds[0]!
  const times = (runs: readonly Run[]) =>
    median(runs.map(({ usEach }, round) => usEach / (first.runs[round]?.usEach ?? Number.NaN)))
  const share = (runs: readonly Run[]) =>
    median(runs.map(({ ackedPerS }, round) => ackedPerS / (first.runs[round]?.ackedPerS ?? Number.NaN)))
  return kinds.slice(1).map(({ name, runs }) =>
    figureOf({
      figure: name,
      value: share(runs),
      unit: 'share of acknowledged messages/s of MQTT 3.1.1 over TCP',
      detail: {
        messages,
        processorTimes: rounded(times(runs)),
        usEach: runs.map(({ usEach }) => rounded(usEach, 2)),
        mqtt3TcpUsEach: first.runs.map(({ usEach }) => rounded(usEach, 2)),
        ackedPerS: runs.map(({ ackedPerS }) => Math.round(ackedPerS)),
        mqtt3TcpAckedPerS: first.runs.map(({ ackedPerS }) => Math.round(ackedPerS)),
        loadBusy: runs.map(({ cpuMs, tookMs }) => rounded(cpuMs / tookMs, 2)),
      },
    }),
  )
}
