// simulate-command.ts: `simulate`: vehicles that publish real MQTT to a broker, and what became of it: acked, how fast.

import type { Writable } from 'node:stream'
import { Command, InvalidArgumentError, Option } from 'commander'
import { pause, systemClock } from '../std/clock.ts'
import { GatewayError } from '../std/gateway-error.ts'
import { formatDuration, parseDuration } from '../std/quantity.ts'
import { quote } from '../std/quote.ts'
import { newRandomId } from '../domain/ids.ts'
import { createFleet, createLatency, formatNames, seededRandom } from '../simulate/simulate.ts'
import type { Fleet, FleetStats, FormatName, LatencySummary } from '../simulate/simulate.ts'
import type { CommandIo, ExitStatus } from './terminal/terminal.ts'

const reportMs = 5000
const watchMs = 250

type SimulateOptions = {
  broker: string
  devices: number
  rate: number
  format: FormatName
  count?: number
  seed?: number
  wait: number
  json?: boolean
}

export function simulateCommand(io: CommandIo, done: (status: ExitStatus) => void): Command {
  return new Command('simulate')
    .description(
      'vehicles that publish real MQTT (3.1.1, QoS 1) to a broker; reports what was acked and how fast',
    )
    .requiredOption(
      '--broker <url>',
      'mqtt:// or mqtts:// address; a user and password may stand in it',
      brokerUrl,
    )
    .option('--devices <number>', 'vehicles, each with a connection of its own', wholeUpTo(100_000), 10)
    .option('--rate <number>', 'messages a second of all vehicles together', rate, 10)
    .addOption(new Option('--format <name>', 'how they write').choices(formatNames).default('telemetry-v1'))
    .option('--count <number>', 'end after so many messages are acked', wholeUpTo(1e12))
    .option('--seed <number>', 'the same tracks again', wholeUpTo(2 ** 32 - 1))
    .addOption(
      new Option('--wait <duration>', 'the longest silence before it gives up on acks')
        .argParser(duration)
        .default(30_000, '30s'),
    )
    .option('--json', 'a JSON line for each report')
    .addHelpText(
      'after',
      '\nA message counts as acked when its PUBACK came. What is unacked when a connection is lost goes again with ' +
        'DUP.\nExit status 1: messages stayed unacked.',
    )
    .action(async (options: SimulateOptions) => done(await simulate(options, io)))
}

async function simulate(options: SimulateOptions, io: CommandIo): Promise<ExitStatus> {
  const clock = systemClock
  const period = createPeriods()
  const fleet = createFleet(
    {
      clock,
      random: options.seed === undefined ? Math.random : seededRandom(options.seed),
      newId: newRandomId,
    },
    {
      brokerUrl: options.broker,
      devices: options.devices,
      ratePerS: options.rate,
      format: options.format,
      ...(options.count === undefined ? {} : { count: options.count }),
      onAck: ({ latencyMs }) => period.record(latencyMs),
    },
  )
  // Timers of the clock keep no process alive, and between two attempts there is no socket that would.
  const alive = setInterval(() => undefined, 2 ** 30)
  const startedAtMs = clock.monotonic()
  const elapsedMs = () => clock.monotonic() - startedAtMs
  try {
    fleet.start()
    const ended = await watch(fleet, { options, io, onReport: report })
    // After a stop the acks that are under way still get their time; after a long silence nobody waits again.
    await fleet.stop(AbortSignal.timeout(ended === 'silent' ? 0 : options.wait))
  } finally {
    clearInterval(alive)
  }
  const stats = fleet.stats()
  writeResult(io.stdout, { stats, elapsedMs: elapsedMs(), json: options.json === true })
  if (stats.unacked > 0) throw unackedFault(options, stats)
  return 0

  function report(): void {
    writeProgress(io.stdout, {
      stats: fleet.stats(),
      period: period.next(),
      elapsedMs: elapsedMs(),
      json: options.json === true,
    })
  }
}

/**
 * Ends with `acked` when `--count` messages are, with `stopped` when the person says so. `silent`: nothing was
 * acked for `--wait` although something was due, and nobody asked for a run without end; or never anything was.
 */
async function watch(
  fleet: Fleet,
  { options, io, onReport }: { options: SimulateOptions; io: CommandIo; onReport: () => void },
): Promise<'acked' | 'stopped' | 'silent'> {
  const finished = new AbortController()
  const finishing = fleet.whenAcked(io.stop).then((all) => {
    finished.abort()
    return all
  })
  const either = AbortSignal.any([io.stop, finished.signal])
  let ackedBefore = 0
  let progressAtMs = systemClock.monotonic()
  let reportAtMs = progressAtMs + reportMs
  while (await pause(systemClock, watchMs, either)) {
    const nowMs = systemClock.monotonic()
    if (nowMs >= reportAtMs) {
      onReport()
      reportAtMs = nowMs + reportMs
    }
    const { acked, unacked } = fleet.stats()
    if (acked > ackedBefore || unacked === 0) progressAtMs = nowMs
    ackedBefore = acked
    const mayGiveUp = options.count !== undefined || acked === 0
    if (mayGiveUp && nowMs - progressAtMs > options.wait) return 'silent'
  }
  return (await finishing) ? 'acked' : 'stopped'
}

type Period = LatencySummary & { tookMs: number }

/** Latencies since the last report. */
function createPeriods() {
  let latency = createLatency()
  let beganAtMs = systemClock.monotonic()
  return {
    record: (latencyMs: number) => latency.record(latencyMs),
    next(): Period {
      const nowMs = systemClock.monotonic()
      const period = { ...latency.summary(), tookMs: nowMs - beganAtMs }
      latency = createLatency()
      beganAtMs = nowMs
      return period
    },
  }
}

function writeProgress(
  stdout: Writable,
  { stats, period, elapsedMs, json }: { stats: FleetStats; period: Period; elapsedMs: number; json: boolean },
): void {
  const ackedPerS = period.count / (period.tookMs / 1000)
  if (json) {
    stdout.write(
      `${JSON.stringify({ kind: 'progress', elapsedMs: Math.round(elapsedMs), ackedPerS, ...stats })}\n`,
    )
    return
  }
  const problem = stats.connected < stats.devices && stats.lastProblem !== null ? stats.lastProblem : null
  stdout.write(
    `${formatDuration(elapsedMs)}: ${stats.acked} acked (${ackedPerS.toFixed(1)}/s), ${stats.unacked} unacked, ` +
      `latency ${latencyText(period)}, ${stats.connected} of ${stats.devices} connected` +
      `${problem === null ? '' : `, last problem: ${quote(problem)}`}\n`,
  )
}

function writeResult(
  stdout: Writable,
  { stats, elapsedMs, json }: { stats: FleetStats; elapsedMs: number; json: boolean },
): void {
  if (json) {
    stdout.write(`${JSON.stringify({ kind: 'result', elapsedMs: Math.round(elapsedMs), ...stats })}\n`)
    return
  }
  const ackedPerS = stats.acked / (elapsedMs / 1000)
  stdout.write(
    `${stats.published} published, ${stats.acked} acked (${ackedPerS.toFixed(1)}/s), ${stats.unacked} unacked, ` +
      `${stats.resent} sent again, ${stats.reconnects} reconnects in ${formatDuration(elapsedMs)}\n` +
      `latency ${latencyText(stats.latency)}\n`,
  )
}

function latencyText({ count, p50Ms, p99Ms, maxMs }: LatencySummary): string {
  if (count === 0) return 'unknown'
  return `p50 ${p50Ms.toFixed(1)} ms, p99 ${p99Ms.toFixed(1)} ms, max ${maxMs.toFixed(1)} ms`
}

function unackedFault(options: SimulateOptions, stats: FleetStats): GatewayError {
  const why =
    stats.connected < stats.devices && stats.lastProblem !== null
      ? `${stats.devices - stats.connected} of ${stats.devices} devices had no connection; the last problem was ${quote(stats.lastProblem)}.`
      : 'The connections stood, but no PUBACK came: a gateway holds its acks while it cannot keep what it gets.'
  return new GatewayError('BROKER_UNREACHABLE', {
    what: `${stats.unacked} messages to ${withoutUser(options.broker)} stayed unacked.`,
    why,
    act: 'Check that the broker runs at this address and lets these devices in, and what the gateway says of its spool.',
  })
}

function brokerUrl(text: string): string {
  const protocols = ['mqtt:', 'mqtts:', 'tcp:', 'ssl:']
  if (URL.canParse(text)) {
    const { protocol, hostname } = new URL(text)
    if (protocols.includes(protocol) && hostname !== '') return text
  }
  throw new InvalidArgumentError('Write it as mqtt://127.0.0.1:1883.')
}

/** The URL without the user and password that may stand in it. */
function withoutUser(text: string): string {
  const url = new URL(text)
  url.username = ''
  url.password = ''
  return url.href
}

function wholeUpTo(most: number): (text: string) => number {
  return (text) => {
    if (/^\d{1,15}$/.test(text) && Number(text) >= 1 && Number(text) <= most) return Number(text)
    throw new InvalidArgumentError(`It must be a whole number from 1 to ${most}.`)
  }
}

function rate(text: string): number {
  const value = Number(text)
  if (/^\d+(\.\d+)?$/.test(text) && value >= 0.001 && value <= 1_000_000) return value
  throw new InvalidArgumentError('It must be a number from 0.001 to 1000000, messages a second.')
}

function duration(text: string): number {
  const ms = parseDuration(text)
  if (ms !== undefined && ms >= 100 && ms <= 86_400_000) return ms
  throw new InvalidArgumentError('It must be a duration from 100ms to 1d, such as 30s.')
}
