// two-providers.ts: one of two providers is unauthorized and its devices go on publishing: what does the other one notice?
//
// Two gateways of the same config live for the whole figure and are measured in turn. The second provider of one of them is
// refused with 403, has a backlog that waits, and gets live messages meanwhile; that of the other one has nothing.

import { figureOf, makeFolder, median, runLoad, startSink } from '../bench.ts'
import type { BenchOptions, Figure } from '../bench.ts'
import { startGateway, type Gateway } from '../gateway.ts'
import { endToEnd } from './throughput.ts'

const otherBacklog = 20_000
const otherPerS = 200

export async function measureTwoProviders(options: BenchOptions): Promise<Figure[]> {
  const messages = Math.max(16_000, Math.round(300_000 * options.scale))
  await using sink = await startSink({ closed: false })
  await using refusing = await startSink({ closed: true, closedStatus: 403 })
  await using folderAlone = await makeFolder(options.dir)
  await using folderBeside = await makeFolder(options.dir)
  const setting = { sinkPort: sink.port, otherPort: refusing.port, signals: options.signals }
  await using alone = await startGateway({ ...setting, folder: folderAlone.path })
  await using beside = await startGateway({ ...setting, folder: folderBeside.path })
  await runLoad({ port: beside.mqttPort, messages: otherBacklog, other: true })
  const run = (gateway: Gateway, count: number) =>
    endToEnd({ gateway, sink }, count, () => runLoad({ port: gateway.mqttPort, messages: count }))
  for (const gateway of [alone, beside]) await run(gateway, Math.round(messages / 4))
  const runs: { alone: number[]; beside: number[] } = { alone: [], beside: [] }
  for (let pair = 0; pair < options.pairs; pair += 1) {
    runs.alone.push((await run(alone, messages)).deliveredPerS)
    const pace = { port: beside.mqttPort, ratePerS: otherPerS, messages: otherPerS * 3, other: true }
    const [measured] = await Promise.all([run(beside, messages), runLoad(pace)])
    runs.beside.push(measured.deliveredPerS)
  }
  const value = median(runs.beside) / median(runs.alone)
  const { providers } = await beside.status()
  return [
    figureOf({
      figure: 'two_providers',
      value,
      unit: 'share of the payloads a second of one provider while the other is not refused',
      atLeast: 0.9,
      detail: {
        messages,
        deliveredPerS: { alone: runs.alone.map(Math.round), beside: runs.beside.map(Math.round) },
        endpoints: providers.map(({ name, endpoint }) => `${name}: ${endpoint}`),
        refusedRequests: (await refusing.stats()).refused,
      },
    }),
  ]
}
