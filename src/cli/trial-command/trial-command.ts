// trial-command.ts: `trial`, also `npm start`: the whole road on one machine with nothing to configure.
//
//   simulated vehicles --MQTT--> gateway --signed batches--> sandbox of the ingestion API
//
// It is the real gateway with a real config file and a real spool, in a folder of its own that is removed at
// the end. Ports are the usual ones where they are free, else ones that the system chooses.

import { createWriteStream } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Command, InvalidArgumentError } from 'commander'
import { pause, systemClock } from '../../std/clock.ts'
import { GatewayError } from '../../std/gateway-error.ts'
import { formatDuration, parseDuration } from '../../std/quantity.ts'
import { newRandomId } from '../../domain/ids.ts'
import { startGateway, type Gateway } from '../../app/app.ts'
import { loadConfig } from '../../config/config.ts'
import { createSandbox, sandboxAccount, type Sandbox } from '../../sandbox/sandbox.ts'
import { createFleet, type Fleet } from '../../simulate/simulate.ts'
import { openLevelStore, realDisk } from '../../storage/storage.ts'
import type { CommandIo, ExitStatus } from '../terminal/terminal.ts'
import { createTrialReport } from './trial-report.ts'
import { readVersion } from '../package-version.ts'

type TrialOptions = { devices: number; rate: number; for?: number }

type Ports = { mqtt: number; ops: number }

const usualPorts: Ports = { mqtt: 1883, ops: 8080 }
const sandboxPort = 8081
const reportMs = 1000
const farewellMs = 10_000

export function trialCommand(io: CommandIo, done: (status: ExitStatus) => void): Command {
  return new Command('trial')
    .description('the whole road on one machine: simulated vehicles, the gateway, a sandbox of the service')
    .option('--devices <number>', 'simulated vehicles', whole, 5)
    .option('--rate <number>', 'messages a second of all vehicles together', whole, 5)
    .option('--for <duration>', 'end by itself after so long', duration)
    .action(async (options: TrialOptions) => done(await runTrial(options, io)))
}

async function runTrial(options: TrialOptions, io: CommandIo): Promise<ExitStatus> {
  const folder = await mkdtemp(join(tmpdir(), 'telemetry-gateway-trial-'))
  const log = createWriteStream(join(folder, 'gateway.log'))
  const closing: (() => Promise<unknown>)[] = [() => rm(folder, { recursive: true, force: true })]
  try {
    const sandbox = newSandbox()
    const service = await firstFree((free) =>
      sandbox.listen({ host: '127.0.0.1', port: free ? 0 : sandboxPort }),
    )
    closing.push(() => sandbox.close())
    const gateway = await firstFree((free) => startOne(folder, service.url, free, io, log))
    closing.push(() => gateway.stop('the trial ends'))
    const fleet = newFleet(gateway, options)
    fleet.start()
    closing.push(() => fleet.stop(AbortSignal.timeout(farewellMs)))
    const report = createTrialReport({ gateway, sandbox, fleet, clock: systemClock, stdout: io.stdout })
    report.welcome({ service: service.url, folder })
    const ended = endOf(options, io)
    while (await pause(systemClock, reportMs, ended)) report.tick()
    report.farewell()
    return 0
  } finally {
    // In the order of the road: vehicles, gateway, service, folder.
    for (const close of closing.reverse()) await close()
    log.end()
  }
}

function newSandbox(): Sandbox {
  return createSandbox(
    { clock: systemClock, newId: newRandomId, random: Math.random },
    { accounts: [sandboxAccount], receivedMax: 1000 },
  )
}

function newFleet(gateway: Gateway, { devices, rate }: TrialOptions): Fleet {
  return createFleet(
    { clock: systemClock, random: Math.random, newId: newRandomId },
    { brokerUrl: gateway.addresses.mqtt[0] ?? '', devices, ratePerS: rate },
  )
}

async function startOne(
  folder: string,
  serviceUrl: string,
  anyPort: boolean,
  io: CommandIo,
  stdout: NodeJS.WritableStream & import('node:stream').Writable,
): Promise<Gateway> {
  const path = join(folder, 'gateway.yaml')
  await writeFile(path, configText(serviceUrl, anyPort ? { mqtt: 0, ops: 0 } : usualPorts))
  const { accessKeyId, secret } = sandboxAccount
  // Whoever has credentials of their own in the environment must not sign with a part of them here.
  const { AWS_SESSION_TOKEN: _token, ...others } = io.env
  const env = { ...others, AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secret.reveal() }
  const { config } = await loadConfig(path, { env })
  return startGateway(
    {
      clock: systemClock,
      random: Math.random,
      newId: newRandomId,
      env,
      stdout,
      version: readVersion(),
      openStore: openLevelStore,
      disk: realDisk,
    },
    config,
    path,
  )
}

function configText(serviceUrl: string, ports: Ports): string {
  return `# The config of this trial, as you would write it for \`run\`.
ingest:
  broker: { listeners: [{ url: mqtt://127.0.0.1:${ports.mqtt} }], access: { anonymous: true } }
sources:
  - name: trucks
    topic: telemetry/v1/{device}
    map:
      time:      { path: ts, format: ms }
      latitude:  { path: gps.lat }
      longitude: { path: gps.lon }
      speed:     { path: gps.speed, unit: km/h }
      heading:   { path: gps.heading }
      in_motion: { path: gps.moving }
      signals:
        - { type: OBD_LIFETIME_ODOMETER, path: odometer.value, unit: km }
        - { type: OBD_TOTAL_ENGINE_TIME, path: engineHours.value, unit: h, part: ENGINE }
defaults: { carrier: ACME, operator: OP1, asset_type: TRACTOR }
spool: { path: ./spool, max_bytes: 1GiB, min_free_bytes: 64MiB }
delivery:
  base_url: ${serviceUrl}
  credentials: { source: environment }
  batch: { linger: 1s }
ops: { listen: 127.0.0.1:${ports.ops} }
`
}

/** Tries the usual ports, and ones that the system chooses where those are taken. */
async function firstFree<Result>(open: (anyPort: boolean) => Promise<Result>): Promise<Result> {
  try {
    return await open(false)
  } catch (error) {
    if (!(error instanceof GatewayError) || error.code !== 'ADDRESS_IN_USE') throw error
    return open(true)
  }
}

function endOf(options: TrialOptions, io: CommandIo): AbortSignal {
  return options.for === undefined ? io.stop : AbortSignal.any([io.stop, AbortSignal.timeout(options.for)])
}

function whole(text: string): number {
  const number = Number(text)
  if (Number.isInteger(number) && number >= 1 && number <= 10_000) return number
  throw new InvalidArgumentError('It must be a whole number from 1 to 10000.')
}

function duration(text: string): number {
  const ms = parseDuration(text)
  if (ms !== undefined && ms >= reportMs) return ms
  throw new InvalidArgumentError(
    `It must be a duration of at least ${formatDuration(reportMs)}, such as 30s.`,
  )
}
