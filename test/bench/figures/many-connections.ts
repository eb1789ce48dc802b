// many-connections.ts: anonymous memory with as many connections as the default limit allows, which send 4,000
// messages a second together. Both processes need 10,100 open files.

import { figureOf, rounded, runLoad } from '../bench.ts'
import type { BenchOptions, Figure } from '../bench.ts'
import { startWithSink } from '../gateway.ts'
import { measureUsEach, sampleResident } from '../resident.ts'

const ratePerS = 4000
const mostMb = 300

export async function measureManyConnections(options: BenchOptions): Promise<Figure[]> {
  const connections = Math.max(100, Math.round(10_000 * Math.min(1, options.scale)))
  const messages = Math.round(200_000 * options.scale)
  await using started = await startWithSink(options)
  const { gateway } = started
  await using resident = sampleResident(gateway.pid)
  const load = () => runLoad({ port: gateway.mqttPort, connections, ratePerS, messages })
  const { result, usEach } = await measureUsEach(gateway.pid, messages, load)
  const value = resident.maxBytes / 1e6
  return [
    figureOf({
      figure: 'many_connections',
      value,
      digits: 1,
      unit: `MB of RssAnon at most, with ${connections} connections at ${ratePerS} messages/s`,
      atMost: mostMb,
      detail: {
        messages,
        /** With the connecting. */
        usEach: rounded(usEach, 1),
        ackP50Ms: rounded(result.latency.p50Ms),
        ackP99Ms: rounded(result.latency.p99Ms),
      },
    }),
  ]
}
