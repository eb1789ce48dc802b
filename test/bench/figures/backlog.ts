// backlog.ts: an outage with a million payloads: memory and disk while it grows, the start on top of it, the
// drain when the service is back, and the disk that is given back. One scenario, four figures.
//
// The drain is compared with that of a tenth of the payloads, in turn; a rate counts from 5 % to 95 % of the
// payloads, so that neither the first probe nor the last half-full batch weighs in.

import { figureOf, diskBytes, makeFolder, median, rounded, runLoad, startSink, until } from '../bench.ts'
import type { BenchOptions, Figure, Sink } from '../bench.ts'
import { startGateway } from '../gateway.ts'
import type { Gateway } from '../gateway.ts'
import { sampleMax, sampleResident } from '../resident.ts'

const restarts = 3
/** The drains of both sizes alternate; so many of each. */
const drains = 2

type Backlog = {
  payloads: number
  intakePerS: number
  payloadBytes: number
  backlogDiskBytes: number
  peakDiskBytes: number
  drainedDiskBytes: number
  startUpMs: number[]
  drainPerS: number
  residentMaxBytes: { intake: number; restarted: number; drain: number }
}

export async function measureBacklog(options: BenchOptions): Promise<Figure[]> {
  const big = Math.round(1_000_000 * options.scale)
  const small = Math.round(big / 10)
  const runs: { small: Backlog[]; big: Backlog[] } = { small: [], big: [] }
  for (let turn = 0; turn < drains; turn += 1) {
    runs.small.push(await runBacklog(small, options))
    runs.big.push(await runBacklog(big, options))
  }
  return [drainFigure(runs), ...diskFigures(runs.big), residentFigure(runs.big), startUpFigure(runs.big)]
}

async function runBacklog(payloads: number, options: BenchOptions): Promise<Backlog> {
  await using folder = await makeFolder(options.dir)
  await using sink = await startSink({ closed: true })
  const setting = { folder: folder.path, sinkPort: sink.port }
  const fill = await fillSpool(setting, payloads)
  const startUpMs: number[] = []
  for (let start = 1; start < restarts; start += 1) {
    await using gateway = await startGateway(setting)
    startUpMs.push(gateway.readyAfterMs)
  }
  await using gateway = await startGateway(setting)
  startUpMs.push(gateway.readyAfterMs)
  await using restarted = sampleResident(gateway.pid)
  // Long enough to see what recovery leaves behind.
  await until('recovery was sampled', async () => restarted.maxBytes > 0, { timeoutMs: 10_000 })
  await using disk = sampleMax(() => diskBytes(gateway.storePath), 250)
  await using resident = sampleResident(gateway.pid)
  const drainPerS = await drain(gateway, sink, payloads)
  const peakDiskBytes = Math.max(disk.maxBytes, fill.backlogDiskBytes)
  const drainedDiskBytes = await settledDisk(gateway, { enough: peakDiskBytes * 0.05, restMs: 30_000 })
  return {
    ...fill,
    payloads,
    peakDiskBytes,
    drainedDiskBytes,
    startUpMs,
    drainPerS,
    residentMaxBytes: {
      intake: fill.residentMaxBytes,
      restarted: restarted.maxBytes,
      drain: resident.maxBytes,
    },
  }
}

/** Takes the payloads in while the service answers 500, and stops. */
async function fillSpool(setting: Parameters<typeof startGateway>[0], payloads: number) {
  await using gateway = await startGateway(setting)
  await using resident = sampleResident(gateway.pid)
  const load = await runLoad({ port: gateway.mqttPort, messages: payloads })
  const open = await gateway.open()
  if (open.payloads !== payloads)
    throw new Error(`the spool holds ${open.payloads} payloads after ${payloads} acks`)
  const backlogDiskBytes = await settledDisk(gateway, { enough: 0, restMs: 5000 })
  return {
    intakePerS: load.ackedPerS,
    payloadBytes: open.bytes,
    backlogDiskBytes,
    residentMaxBytes: resident.maxBytes,
  }
}

async function drain(gateway: Gateway, sink: Sink, payloads: number): Promise<number> {
  await sink.open()
  await until(
    'the first batch was accepted',
    async () => {
      gateway.probe()
      return (await sink.stats()).payloads > 0
    },
    { timeoutMs: 120_000, everyMs: 500 },
  )
  await until('the sink has every payload', async () => (await sink.stats()).payloads >= payloads, {
    timeoutMs: 600_000,
    everyMs: 100,
  })
  await until('the spool is empty', async () => (await gateway.open()).payloads === 0, { timeoutMs: 60_000 })
  return (await sink.stats()).steadyPerS
}

/** What is on the disk when that is `enough` or less, or when nothing changed for `restMs`. */
async function settledDisk(gateway: Gateway, options: { enough: number; restMs: number }): Promise<number> {
  let bytes = -1
  let changedAtMs = 0
  await until(
    'the database has come to rest',
    async () => {
      const before = bytes
      bytes = await diskBytes(gateway.storePath)
      const nowMs = performance.now()
      if (bytes !== before) changedAtMs = nowMs
      return bytes <= options.enough || nowMs - changedAtMs >= options.restMs
    },
    { timeoutMs: 180_000, everyMs: 500 },
  )
  return bytes
}

function drainFigure({ small, big }: { small: readonly Backlog[]; big: readonly Backlog[] }): Figure {
  const rate = ({ drainPerS }: Backlog) => drainPerS
  const value = median(big.map(rate)) / median(small.map(rate))
  return figureOf({
    figure: 'drain',
    value,
    unit: `share of the rate at ${small[0]?.payloads} payloads`,
    atLeast: 0.85,
    detail: {
      payloads: big[0]?.payloads,
      payloadsPerS: big.map((run) => Math.round(run.drainPerS)),
      smallPayloadsPerS: small.map((run) => Math.round(run.drainPerS)),
      intakePerS: big.map((run) => Math.round(run.intakePerS)),
    },
  })
}

function diskFigures(runs: readonly Backlog[]): Figure[] {
  const pending = median(runs.map((run) => run.backlogDiskBytes / run.payloadBytes))
  const drained = median(runs.map((run) => run.drainedDiskBytes / run.peakDiskBytes))
  const detail = runs.map((run) => ({
    payloadBytesEach: Math.round(run.payloadBytes / run.payloads),
    diskBytesEach: Math.round(run.backlogDiskBytes / run.payloads),
    peakMb: rounded(run.peakDiskBytes / 1e6, 1),
    drainedMb: rounded(run.drainedDiskBytes / 1e6, 1),
  }))
  return [
    figureOf({
      figure: 'disk_pending',
      value: pending,
      unit: 'disk bytes per payload byte',
      atMost: 0.5,
      detail,
    }),
    figureOf({
      figure: 'disk_drained',
      value: drained,
      unit: 'share of the peak',
      atMost: 0.05,
      detail,
    }),
  ]
}

function residentFigure(runs: readonly Backlog[]): Figure {
  const most = Math.max(...runs.flatMap((run) => Object.values(run.residentMaxBytes)))
  return figureOf({
    figure: 'resident',
    value: most / 1e6,
    digits: 1,
    unit: 'MB of RssAnon at most',
    atMost: 250,
    detail: runs.map(({ residentMaxBytes: { intake, restarted, drain } }) => ({
      intakeMb: rounded(intake / 1e6, 1),
      restartedMb: rounded(restarted / 1e6, 1),
      drainMb: rounded(drain / 1e6, 1),
    })),
  })
}

function startUpFigure(runs: readonly Backlog[]): Figure {
  const startUpMs = runs.flatMap((run) => run.startUpMs)
  const value = median(startUpMs)
  return figureOf({
    figure: 'startup',
    value,
    digits: 0,
    unit: 'ms until ready',
    atMost: 2000,
    detail: { payloads: runs[0]?.payloads, startUpMs: startUpMs.map(Math.round) },
  })
}
