// trial-command.ts: `trial`, also `npm start`: everything on one machine, with nothing to configure.
//
//   simulated vehicles --MQTT--> gateway --signed batches--> sandbox of the ingestion API
//
// It is the real gateway with a real config file and a real spool, in a temporary folder that is removed at
// the end.
// It uses the default ports where they are free, else ports that the system chooses.

import { createWriteStream } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Writable } from 'node:stream'
import { Command } from 'commander'
import { pause, systemClock } from '../../std/clock.ts'
import { GatewayError } from '../../std/gateway-error.ts'
import { newRandomId } from '../../domain/ids.ts'
import { realPlaces, startGateway, systemKernelClock, type Gateway } from '../../app/app.ts'
import { loadConfig } from '../../config/config.ts'
import { createSandbox, sandboxAccount } from '../../sandbox/sandbox.ts'
import { createFleet } from '../../simulate/simulate.ts'
import { checkInThread, openLevelStore, realDisk } from '../../storage/storage.ts'
import { duration, wholeNumber } from '../terminal/option-values.ts'
import { readVersion } from '../terminal/package-version.ts'
import type { BuildCommand, CommandIo } from '../terminal/terminal.ts'
import { createTrialReport } from './trial-report.ts'
import { notes } from '../terminal/text-format.ts'

type TrialOptions = { devices: number; rate: number; for?: number }

type Ports = { mqtt: number; ops: number }

const defaultPorts: Ports = { mqtt: 1883, ops: 8080 }
const sandboxPort = 8081
const reportMs = 1000
/** Time for the last acknowledgements. */
const lastAcksMs = 10_000

export const trialCommand: BuildCommand = (io, done) =>
  new Command('trial')
    .option('--devices <number>', 'simulated vehicles', wholeNumber(1, 10_000), 5)
    .option('--rate <number>', 'messages per second of all vehicles together', wholeNumber(1, 10_000), 5)
    .option('--for <duration>', 'end after this time (default: no end)', duration(reportMs, 365 * 86_400_000))
    .addHelpText(
      'after',
      notes('Prints the addresses, a command to publish a message, and a line each second. Ctrl-C ends it.'),
    )
    .action(async (options: TrialOptions) => {
      await runTrial(options, io)
      done(0)
    })

async function runTrial({ devices, rate, for: forMs }: TrialOptions, io: CommandIo): Promise<void> {
  const random = Math.random
  const newId = newRandomId
  const folder = await mkdtemp(join(tmpdir(), 'telemetry-gateway-trial-'))
  const log = createWriteStream(join(folder, 'gateway.log'))
  const closing: (() => Promise<unknown>)[] = [() => rm(folder, { recursive: true, force: true })]
  try {
    const sandbox = createSandbox(
      { clock: systemClock, newId, random },
      { accounts: [sandboxAccount], receivedMax: 1000 },
    )
    const service = await withFreePort((anyPort) =>
      sandbox.listen({ host: '127.0.0.1', port: anyPort ? 0 : sandboxPort }),
    )
    closing.push(() => sandbox.close())
    const gateway = await withFreePort((anyPort) => {
      const ports = anyPort ? { mqtt: 0, ops: 0 } : defaultPorts
      return openGateway(io, { folder, serviceUrl: service.url, ports, log })
    })
    closing.push(() => gateway.stop('the trial ends'))
    const [brokerUrl = ''] = gateway.addresses.mqtt
    const fleet = createFleet({ clock: systemClock, random, newId }, { brokerUrl, devices, ratePerS: rate })
    fleet.start()
    closing.push(() => fleet.stop(AbortSignal.timeout(lastAcksMs)))
    const report = createTrialReport({ gateway, sandbox, fleet, clock: systemClock, stdout: io.stdout })
    report.welcome({ service: service.url, folder })
    const ended = forMs === undefined ? io.stop : AbortSignal.any([io.stop, AbortSignal.timeout(forMs)])
    while (await pause(systemClock, reportMs, ended)) report.tick()
    report.farewell()
  } finally {
    // Along the flow of data: vehicles, gateway, service, folder.
    for (const close of closing.reverse()) await close()
    log.end()
  }
}

async function openGateway(
  io: CommandIo,
  { folder, serviceUrl, ports, log }: { folder: string; serviceUrl: string; ports: Ports; log: Writable },
): Promise<Gateway> {
  const path = join(folder, 'gateway.yaml')
  await writeFile(path, configText(serviceUrl, ports))
  const { accessKeyId, secret } = sandboxAccount
  // A session token of the user's own environment does not belong to these credentials.
  const { AWS_SESSION_TOKEN: _token, ...others } = io.env
  const env = { ...others, AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secret.reveal() }
  const { config } = await loadConfig(path, { env })
  return startGateway(
    {
      clock: systemClock,
      kernel: systemKernelClock(realPlaces(env)),
      random: Math.random,
      newId: newRandomId,
      env,
      stdout: log,
      version: readVersion(),
      openStore: openLevelStore,
      checkStore: checkInThread,
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

/** Opens with the default ports; where one is in use, with ports that the system chooses. */
async function withFreePort<Result>(open: (anyPort: boolean) => Promise<Result>): Promise<Result> {
  try {
    return await open(false)
  } catch (error) {
    if (!(error instanceof GatewayError) || error.code !== 'ADDRESS_IN_USE') throw error
    return open(true)
  }
}
