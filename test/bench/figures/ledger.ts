// ledger.ts: what the ledger costs at full load: payloads a second into the sink with it, as a share of those without.
//
// Two gateways that differ in that alone live for the whole figure and are measured in turn, each only while the other one
// is idle and its ledger has copied everything. A run is long enough to have copying in it; what is copied after its
// end is in the processor time of the detail.

import { figureOf, makeFolder, median, rounded, runLoad, startSink, until } from '../bench.ts'
import type { BenchOptions, Figure, Sink } from '../bench.ts'
import { startGateway } from '../gateway.ts'
import type { Gateway } from '../gateway.ts'
import { measureUsEach, sampleResident } from '../resident.ts'
import { endToEnd } from './throughput.ts'

type Run = { deliveredPerS: number; ackedPerS: number; usEach: number }

export async function measureLedger(options: BenchOptions): Promise<Figure[]> {
  const messages = Math.max(16_000, Math.round(1_200_000 * options.scale))
  await using sink = await startSink({ closed: false })
  await using folderOn = await makeFolder(options.dir)
  await using folderOff = await makeFolder(options.dir)
  const setting = { sinkPort: sink.port, signals: options.signals }
  await using on = await startGateway({ ...setting, folder: folderOn.path, ledger: true })
  await using off = await startGateway({ ...setting, folder: folderOff.path, ledger: false })
  await using residentOn = sampleResident(on.pid)
  await using residentOff = sampleResident(off.pid)
  for (const gateway of [on, off]) await measure(gateway, sink, Math.round(messages / 4))
  const runs: { on: Run[]; off: Run[] } = { on: [], off: [] }
  for (let pair = 0; pair < options.pairs; pair += 1) {
    // In turn the first one, so that what drifts on the machine weighs on both alike.
    const order = pair % 2 === 0 ? (['on', 'off'] as const) : (['off', 'on'] as const)
    for (const which of order) runs[which].push(await measure(which === 'on' ? on : off, sink, messages))
  }
  const shares = runs.on.map((run, pair) => run.deliveredPerS / (runs.off[pair]?.deliveredPerS ?? Number.NaN))
  const value = median(shares)
  const { ledger } = await on.status()
  return [
    figureOf({
      figure: 'ledger',
      value,
      unit: 'share of the payloads a second without a ledger',
      atLeast: 0.9,
      detail: {
        messages,
        shares: shares.map((share) => rounded(share)),
        deliveredPerS: columns(runs, (run) => Math.round(run.deliveredPerS)),
        ackedPerS: columns(runs, (run) => Math.round(run.ackedPerS)),
        cpuUsEach: columns(runs, (run) => rounded(run.usEach, 2)),
        recordBytesEach: rounded((ledger?.bytes ?? 0) / Math.max(1, ledger?.records ?? 0), 1),
        missed: ledger?.missed,
        residentMaxMb: [residentOn, residentOff].map(({ maxBytes }) => rounded(maxBytes / 1e6, 1)),
      },
    }),
  ]
}

const columns = (runs: { on: readonly Run[]; off: readonly Run[] }, read: (run: Run) => number) => ({
  on: runs.on.map(read),
  off: runs.off.map(read),
})

async function measure(gateway: Gateway, sink: Sink, messages: number): Promise<Run> {
  const { result, usEach } = await measureUsEach(gateway.pid, messages, async () => {
    const load = () => runLoad({ port: gateway.mqttPort, messages })
    const run = await endToEnd({ gateway, sink }, messages, load)
    await until('the ledger has copied everything', async () => isCopied(gateway), { timeoutMs: 60_000 })
    return run
  })
  return { ...result, usEach }
}

async function isCopied(gateway: Gateway): Promise<boolean> {
  const { ledger, lanes } = await gateway.status()
  return (ledger?.behind ?? 0) === 0 && lanes.every(({ pending, sealed }) => pending + sealed === 0)
}
