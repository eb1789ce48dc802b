// depot.ts: what a depot costs its box: devices with a message a second each, the next one only after the
// acknowledgement of the last; the same box at night, with nobody connected; and a device that sends what it has
// collected, one by one.
//
// Commits and bytes do not depend on what else the machine does. Times do: compare them in pairs. The spool is on a
// loop device where one can be made, so that what the disk writes is counted too.

import { setTimeout as wait } from 'node:timers/promises'
import type { LatencySummary } from '../../../src/simulate/ack-latency.ts'
import { figureOf, median, rounded, runLoad, until } from '../bench.ts'
import type { BenchOptions, Figure } from '../bench.ts'
import { startWithSink, type Gateway } from '../gateway.ts'
import type { LoadResult } from '../load.ts'
import { costBetween, costOf, makeDisk } from '../process-cost.ts'
import { residentBytes } from '../resident.ts'

/** Delivery that is soon, and dear: five batches a second in place of one. */
const lingerMs = 200
/** Until V8 has compiled what is used often, as in a daemon that runs for days. One by one: full load takes memory. */
const warmUp = { connections: 16, window: 1, messages: 30_000 }
type DepotRun = Record<'commits' | 'bytes' | 'wchar' | 'us' | 'switchesPerS' | 'anonMb', number> &
  Pick<LatencySummary, 'p50Ms' | 'p99Ms' | 'maxMs'> & { device: number | null }
type IdleRun = Record<'share' | 'wakeUpsPerS' | 'anonMb' | 'bytesPerS', number>

const goals = { commits: 0.05, bytes: 600, us: 350, p50Ms: 150, p99Ms: 500 }
const idleGoals = { share: 0.0015, wakeUpsPerS: 15, anonMb: 70 }
const busyAnonMb = 110

export async function measureDepot(ratePerS: number, options: BenchOptions): Promise<Figure[]> {
  const seconds = Math.max(10, Math.round(40 * options.scale))
  const messages = ratePerS * seconds
  // Connecting and the last batches do not count.
  const [firstPayloads, lastPayloads] = [ratePerS * 3, messages - ratePerS * 2]
  await using disk = await makeDisk(options.dir)
  await using started = await startWithSink({ ...options, dir: disk.path }, { lingerMs })
  const { gateway, sink } = started
  const { mqttPort: port, pid } = gateway
  const delivered = (payloads: number) =>
    until(`the sink has ${payloads} payloads`, async () => (await sink.stats()).payloads >= payloads, {
      timeoutMs: 300_000,
    })
  await runLoad({ port, ...warmUp })
  await delivered(warmUp.messages)
  const runs: DepotRun[] = []
  for (let run = 0; run < options.pairs; run += 1) {
    await sink.open()
    const loading = runLoad({ port, connections: ratePerS, ratePerS, messages })
    await delivered(firstPayloads)
    const writesBefore = await writesOf(gateway)
    const [payloadsBefore, before] = [(await sink.stats()).payloads, await costOf(pid, disk.device)]
    await delivered(lastPayloads)
    const [payloadsAfter, after] = [(await sink.stats()).payloads, await costOf(pid, disk.device)]
    const cost = costBetween(before, after)
    const each = payloadsAfter - payloadsBefore
    runs.push({
      commits: ((await writesOf(gateway)) - writesBefore) / each,
      bytes: cost.writtenBytes / each,
      wchar: cost.wcharBytes / each,
      device: cost.deviceBytes === null ? null : cost.deviceBytes / each,
      us: (cost.cpuMs * 1000) / each,
      switchesPerS: (cost.switches * 1000) / cost.tookMs,
      anonMb: ((await residentBytes(pid)) ?? Number.NaN) / 1e6,
      ...quantilesOf(await loading),
    })
    await delivered(messages)
  }
  const of = (name: keyof DepotRun) => runs.map((run) => rounded(run[name] ?? Number.NaN))
  const name = `depot_${ratePerS}`
  const figure = (what: keyof typeof goals, unit: string, detail: unknown = of(what)) =>
    figureOf({
      figure: `${name}_${what}`,
      value: median(of(what)),
      unit,
      ...(ratePerS === 100 ? { atMost: goals[what] } : {}),
      detail,
    })
  return [
    figure('commits', 'writes with fdatasync for a message', { messages, seconds, commits: of('commits') }),
    figure('bytes', 'bytes written by the process for a message', {
      bytes: of('bytes'),
      givenToWrite: of('wchar'),
      writtenByTheDevice: disk.device === null ? null : of('device'),
    }),
    figure('us', 'us of processor time for a message', { us: of('us'), switchesPerS: of('switchesPerS') }),
    figure('p50Ms', 'ms from PUBLISH to PUBACK, p50'),
    figure('p99Ms', 'ms from PUBLISH to PUBACK, p99', { p99Ms: of('p99Ms'), maxMs: of('maxMs') }),
    figureOf({
      figure: `${name}_memory`,
      value: median(of('anonMb')),
      unit: 'MB of anonymous memory',
      ...(ratePerS === 100 ? { atMost: busyAnonMb } : {}),
      detail: of('anonMb'),
    }),
  ]
}

/** A gateway just started, and nobody there. */
export async function measureIdle(options: BenchOptions): Promise<Figure[]> {
  const seconds = Math.max(10, Math.round(30 * options.scale))
  await using disk = await makeDisk(options.dir)
  await using started = await startWithSink({ ...options, dir: disk.path }, { lingerMs })
  const { pid, readyAfterMs } = started.gateway
  // What the start leaves behind is done by then.
  await wait(15_000)
  const runs: IdleRun[] = []
  for (let run = 0; run < options.pairs; run += 1) {
    const before = await costOf(pid, disk.device)
    await wait(seconds * 1000)
    const { tookMs, cpuMs, switches, ...cost } = costBetween(before, await costOf(pid, disk.device))
    const anonMb = ((await residentBytes(pid)) ?? Number.NaN) / 1e6
    const bytesPerS = (cost.writtenBytes * 1000) / tookMs
    runs.push({ share: cpuMs / tookMs, wakeUpsPerS: (switches * 1000) / tookMs, anonMb, bytesPerS })
  }
  const figure = (what: keyof typeof idleGoals, unit: string) =>
    figureOf({
      figure: `idle_${what}`,
      value: median(runs.map((run) => run[what])),
      digits: 5,
      unit,
      atMost: idleGoals[what],
      detail: runs.map((run) => rounded(run[what], 5)),
    })
  return [
    figure('share', 'share of a core without connections'),
    figure('wakeUpsPerS', 'wake-ups a second of all threads'),
    figure('anonMb', 'MB of anonymous memory'),
    figureOf({
      figure: 'idle_ready',
      value: readyAfterMs,
      digits: 0,
      unit: 'ms from the start of the process until it is ready, on an empty spool',
      atMost: 1000,
      detail: { bytesPerS: runs.map(({ bytesPerS }) => rounded(bytesPerS, 1)) },
    }),
  ]
}

/** One device that sends its next message when it has the acknowledgement of the last. */
export async function measureBacklogOfOne(options: BenchOptions): Promise<Figure[]> {
  const messages = Math.max(500, Math.round(5000 * options.scale))
  await using started = await startWithSink(options)
  const { gateway } = started
  const load = (count: number) =>
    runLoad({ port: gateway.mqttPort, connections: 1, window: 1, messages: count })
  await runLoad({ port: gateway.mqttPort, ...warmUp })
  await load(500)
  const runs: Record<'ackedPerS' | 'commits' | 'p50Ms', number>[] = []
  for (let run = 0; run < options.pairs; run += 1) {
    const before = await writesOf(gateway)
    const { ackedPerS, latency } = await load(messages)
    runs.push({ ackedPerS, commits: ((await writesOf(gateway)) - before) / messages, p50Ms: latency.p50Ms })
  }
  return [
    figureOf({
      figure: 'backlog_1',
      value: median(runs.map(({ ackedPerS }) => ackedPerS)),
      digits: 0,
      unit: 'messages/s of one device that waits for each acknowledgement',
      detail: { messages, runs: runs.map((run) => Object.values(run).map((value) => rounded(value))) },
    }),
  ]
}

function quantilesOf({ latency }: LoadResult): Pick<LatencySummary, 'p50Ms' | 'p99Ms' | 'maxMs'> {
  return { p50Ms: latency.p50Ms, p99Ms: latency.p99Ms, maxMs: latency.maxMs }
}

/** Writes of the spool so far, each with one fdatasync. */
async function writesOf({ url }: Gateway): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text()
  const found = /^gateway_spool_write_duration_seconds_count (\d+)/m.exec(text)
  if (found === null) throw new Error('/metrics does not count the writes of the spool')
  return Number(found[1])
}
