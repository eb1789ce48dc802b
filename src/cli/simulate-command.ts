// simulate-command.ts: `simulate`: simulated vehicles publish real MQTT to a broker; the command reports what
// the broker acknowledged and how fast.

import type { Writable } from 'node:stream'
import { Command, InvalidArgumentError, Option } from 'commander'
import { pause, systemClock } from '../std/clock.ts'
import { GatewayError } from '../std/gateway-error.ts'
import { formatDuration, plural } from '../std/quantity.ts'
import { quote } from '../std/quote.ts'
import { shownUrl } from '../std/shown-url.ts'
import { newRandomId } from '../domain/ids.ts'
import { createFleet, createLatency, formatNames, seededRandom } from '../simulate/simulate.ts'
import type { Fleet, FleetStats, FormatName, LatencySummary } from '../simulate/simulate.ts'
import { brokerUrl, duration, mqttVersion, wholeNumber, type MqttVersion } from './terminal/option-values.ts'
import { outputEnded, type BuildCommand, type CommandIo, type ExitStatus } from './terminal/terminal.ts'
import { readPasswordFile } from './terminal/password-argument.ts'
import { notes } from './terminal/text-format.ts'

const reportMs = 5000
const watchMs = 250
const noListener = /\b(ECONNREFUSED|ENOTFOUND|EHOSTUNREACH|ENETUNREACH)\b/

type SimulateOptions = {
  broker: string
  devices: number
  rate: number
  format: FormatName
  mqtt: MqttVersion
  count?: number
  seed?: number
  wait: number
  json?: boolean
  passwordFile?: string
}

export const simulateCommand: BuildCommand = (io, done) =>
  new Command('simulate')
    .requiredOption(
      '--broker <url>',
      'URL of the broker: mqtt, mqtts, ws or wss; may contain a user (required)',
      broker,
    )
    .option('--password-file <file>', 'file with the password of the user in the URL')
    .option('--devices <number>', 'vehicles, each with its own connection', wholeNumber(1, 100_000), 10)
    .option('--rate <number>', 'messages per second of all vehicles together', rate, 10)
    .addOption(new Option('--format <name>', 'message format').choices(formatNames).default('telemetry-v1'))
    .addOption(
      new Option('--mqtt <version>', 'version of MQTT: 3.1.1 or 5')
        .argParser(mqttVersion)
        .default(4, '3.1.1'),
    )
    .option(
      '--count <messages>',
      'end when this many are acknowledged (default: no end)',
      wholeNumber(1, 1e12),
    )
    .option('--seed <number>', 'drive the same routes again (default: random)', wholeNumber(1, 2 ** 32 - 1))
    .addOption(
      new Option('--wait <duration>', 'give up after this time without an acknowledgement')
        .argParser(duration(100, 86_400_000))
        .default(30_000, '30s'),
    )
    .option('--json', 'print each report as a line of JSON')
    .addHelpText(
      'after',
      notes(
        'Publishes with QoS 1. A message is acknowledged when its PUBACK arrives; the others ' +
          'are sent again with DUP after a reconnect. Ctrl-C ends it.',
        'Exit status 1: some messages stayed unacknowledged.',
      ),
    )
    .action(async (options: SimulateOptions) => done(await simulate(options, io)))

async function simulate(options: SimulateOptions, io: CommandIo): Promise<ExitStatus> {
  io.endWithReader()
  const clock = systemClock
  const period = createPeriods()
  const fleet = createFleet(
    {
      clock,
      random: options.seed === undefined ? Math.random : seededRandom(options.seed),
      newId: newRandomId,
    },
    {
      brokerUrl: await withPassword(options),
      devices: options.devices,
      ratePerS: options.rate,
      format: options.format,
      protocolVersion: options.mqtt,
      ...(options.count === undefined ? {} : { count: options.count }),
      onAck: ({ latencyMs }) => period.record(latencyMs),
    },
  )
  // The timers of the clock do not keep the process alive, and between two attempts there is no socket.
  const alive = setInterval(() => undefined, 2 ** 30)
  const startedAtMs = clock.monotonic()
  const elapsedMs = () => clock.monotonic() - startedAtMs
  try {
    fleet.start()
    const ended = await watch(fleet, { options, io, onReport: report })
    // After a stop, acknowledgements may still arrive for `--wait`; after `silent` that time is over.
    const { connected, acked } = fleet.stats()
    const isOver = ended === 'silent' || io.stop.reason === outputEnded || connected + acked === 0
    await fleet.stop(AbortSignal.timeout(isOver ? 0 : options.wait))
  } finally {
    clearInterval(alive)
  }
  const stats = fleet.stats()
  writeResult(io.stdout, { stats, elapsedMs: elapsedMs(), json: options.json === true })
  if (stats.unacked > 0) throw unackedError(options, stats)
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
 * Ends with `acked` after `--count`, and with `stopped` on a signal. Ends with `silent` when nothing was
 * acknowledged for `--wait` although messages are due; without `--count` only if nothing ever was. Where
 * nothing listens at the start, it does not wait.
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
  let wasConnected = false
  while (await pause(systemClock, watchMs, either)) {
    const nowMs = systemClock.monotonic()
    if (nowMs >= reportAtMs) {
      onReport()
      reportAtMs = nowMs + reportMs
    }
    const { acked, unacked, connected, lastProblem } = fleet.stats()
    wasConnected ||= connected > 0 || acked > 0
    if (!wasConnected && noListener.test(lastProblem ?? '')) return 'silent'
    if (acked > ackedBefore || unacked === 0) progressAtMs = nowMs
    ackedBefore = acked
    const mayGiveUp = options.count !== undefined || acked === 0
    if (mayGiveUp && nowMs - progressAtMs > options.wait) return 'silent'
  }
  return (await finishing) ? 'acked' : 'stopped'
}

type Period = LatencySummary & { tookMs: number }

/** Latencies since the previous report. */
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
    `${formatDuration(elapsedMs)}: ${stats.acked} acknowledged (${ackedPerS.toFixed(1)}/s), ${stats.unacked} unacknowledged, ` +
      `latency ${latencyText(period)}, ${stats.connected} of ${stats.devices} vehicles connected` +
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
    `${stats.published} published, ${stats.acked} acknowledged (${ackedPerS.toFixed(1)}/s), ${stats.unacked} unacknowledged, ` +
      `${stats.resent} sent again, ${plural(stats.reconnects, 'reconnect')} in ${formatDuration(elapsedMs)}\n` +
      `latency ${latencyText(stats.latency)}\n`,
  )
}

function latencyText({ count, p50Ms, p99Ms, maxMs }: LatencySummary): string {
  if (count === 0) return 'unknown'
  return `p50 ${p50Ms.toFixed(1)} ms, p99 ${p99Ms.toFixed(1)} ms, max ${maxMs.toFixed(1)} ms`
}

function unackedError(options: SimulateOptions, stats: FleetStats): GatewayError {
  const { devices, connected, unacked, lastProblem } = stats
  const why =
    connected < devices && lastProblem !== null
      ? `${devices - connected} of ${plural(devices, 'vehicle')} had no connection. Last problem: ${quote(lastProblem)}.`
      : 'The connections were open and no PUBACK arrived. A gateway sends none while it cannot store messages.'
  return new GatewayError('BROKER_UNREACHABLE', {
    what: `${plural(unacked, 'message')} to ${shownUrl(options.broker)} stayed unacknowledged.`,
    why,
    act: 'Check that the broker runs at this address and accepts these clients, and the `status` of the gateway.',
  })
}

const broker = brokerUrl(['mqtt:', 'mqtts:', 'tcp:', 'ssl:', 'ws:', 'wss:'])

/** Other users of the machine see the arguments of a command, but not the file. */
async function withPassword({ broker: text, passwordFile }: SimulateOptions): Promise<string> {
  if (passwordFile === undefined) return text
  const url = new URL(text)
  if (url.username === '' || url.password !== '')
    throw new GatewayError('USAGE', {
      what: '--password-file needs a URL with a user and without a password.',
      why: url.username === '' ? 'The URL names no user.' : 'The URL contains a password, too.',
      act: 'Write it as mqtt://USER@HOST:PORT.',
    })
  url.password = encodeURIComponent(await readPasswordFile(passwordFile))
  return url.href
}

function rate(text: string): number {
  const value = Number(text)
  if (/^\d+(\.\d+)?$/.test(text) && value >= 0.001 && value <= 1_000_000) return value
  throw new InvalidArgumentError('Give a number from 0.001 to 1000000.')
}
