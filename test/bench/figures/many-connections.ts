// many-connections.ts: anonymous memory with as many connections as the default limit allows, which send 4,000
// messages a second together. Both processes need 10,100 open files.

import { makeFolder, rounded, runLoad, startSink } from '../bench.ts'
import type { BenchOptions, Figure } from '../bench.ts'
import { startGateway } from '../gateway.ts'
import { processorMs, sampleResident } from '../resident.ts'

const ratePerS = 4000
const mostMb = 300

export async function measureManyConnections(options: BenchOptions): Promise<Figure[]> {
  const connections = Math.max(100, Math.round(10_000 * Math.min(1, options.scale)))
  const messages = Math.round(200_000 * options.scale)
  await using folder = await makeFolder(options.dir)
  await using sink = await startSink({ closed: false })
  await using gateway = await startGateway({
    folder: folder.path,
    sinkPort: sink.port,
    signals: options.signals,
  })
  await using resident = sampleResident(gateway.pid)
  const beforeMs = await processorMs(gateway.pid)
  const { latency } = await runLoad({ port: gateway.mqttPort, connections, ratePerS, messages })
  const cpuMs = (await processorMs(gateway.pid)) - beforeMs
  const value = resident.maxBytes / 1e6
  return [
    {
      figure: 'many_connections',
      value: rounded(value, 1),
      unit: `MB of RssAnon at most, with ${connections} connections at ${ratePerS} messages/s`,
      target: `<= ${mostMb}`,
      reached: value <= mostMb,
      detail: {
        messages,
        /** With the connecting. */
        usEach: rounded((cpuMs * 1000) / messages, 1),
        ackP50Ms: rounded(latency.p50Ms),
        ackP99Ms: rounded(latency.p99Ms),
      },
    },
  ]
}
