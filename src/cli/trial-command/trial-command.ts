// trial-command.ts: `trial`, also `npm start`: everything on one machine, with nothing to configure.
//
//   simulated vehicles --MQTT--> gateway --signed batches--> sandbox of the ingestion API
//
// It is the real gateway with a real config file and a real spool, in a temporary folder that is removed at
// the end.
//
//   trial-ports.ts      which ports
//   hand-published.ts   messages of other clients than the vehicles, followed to their requestId
//   trial-report.ts     what is shown

import { createWriteStream } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Writable } from 'node:stream'
import { Command } from 'commander'
import { pause, systemClock } from '../../std/clock.ts'
import { GatewayError, messageOf } from '../../std/gateway-error.ts'
import { newRandomId } from '../../domain/ids.ts'
import { realPlaces, startGateway, startHeapWork, systemKernelClock, type Gateway } from '../../app/app.ts'
import { loadConfig } from '../../config/config.ts'
import { createSandbox, sandboxAccount } from '../../sandbox/sandbox.ts'
import { createFleet } from '../../simulate/simulate.ts'
import { initSpool } from '../../spool/spool.ts'
import { checkInThread, openLevelStore, realDisk } from '../../storage/storage.ts'
import { duration, wholeNumber } from '../terminal/option-values.ts'
import { readVersion } from '../terminal/package-version.ts'
import type { BuildCommand, CommandIo } from '../terminal/terminal.ts'
import { createLiveOutput } from '../terminal/live-output.ts'
import { notes } from '../terminal/text-format.ts'
import { createHandPublished } from './hand-published.ts'
import { chooseTrialPorts, trialHost, type PortOptions, type TrialPorts } from './trial-ports.ts'
import { createTrialReport } from './trial-report.ts'

type TrialOptions = PortOptions & { devices: number; rate: number; for?: number }

const reportMs = 1000
/** Time for the last acknowledgements. */
const lastAcksMs = 10_000

export const trialCommand: BuildCommand = (io, done) =>
  new Command('trial')
    .option('--devices <number>', 'simulated vehicles', wholeNumber(1, 10_000), 5)
    .option('--rate <number>', 'messages per second of all vehicles together', wholeNumber(1, 10_000), 5)
    .option('--for <duration>', 'end after this time (default: no end)', duration(reportMs, 365 * 86_400_000))
    .option('--mqtt-port <port>', 'port of the broker (default: 1883, or a free one)', port)
    .option('--service-port <port>', 'port of the ingestion API (default: 8081, or a free one)', port)
    .option('--status-port <port>', 'port of status and metrics (default: 8080, or a free one)', port)
    .addHelpText(
      'after',
      notes(
        'Port 0 is one that the system chooses. Prints the addresses, a command to publish a message, the ' +
          'counts of all publishers once a second, and what becomes of messages that others than the ' +
          'vehicles publish. Ctrl-C ends it.',
      ),
    )
    .action(async (options: TrialOptions) => {
      await runTrial(options, io)
      done(0)
    })

const port = wholeNumber(0, 65_535)

async function runTrial({ devices, rate, for: forMs, ...asked }: TrialOptions, io: CommandIo): Promise<void> {
  const random = Math.random
  const newId = newRandomId
  const ports = await chooseTrialPorts(asked)
  io.endWithReader()
  const folder = await newFolder()
  const log = createWriteStream(join(folder, 'gateway.log'))
  const closing: (() => Promise<unknown>)[] = [() => rm(folder, { recursive: true, force: true })]
  try {
    const sandbox = createSandbox(
      { clock: systemClock, newId, random },
      { accounts: [sandboxAccount], receivedMax: 1000 },
    )
    const service = await sandbox.listen({ host: trialHost, port: ports.service })
    closing.push(() => sandbox.close())
    const gateway = await openGateway(io, { folder, serviceUrl: service.url, ports, log })
    closing.push(() => gateway.stop('the trial ends'))
    // Stopped while it started: it may have no address.
    if (io.stop.aborted) return
    const [brokerUrl = ''] = gateway.addresses.mqtt
    const fleet = createFleet({ clock: systemClock, random, newId }, { brokerUrl, devices, ratePerS: rate })
    const output = createLiveOutput(io.stdout, io.env)
    const report = createTrialReport({ gateway, sandbox, fleet, clock: systemClock, output })
    report.welcome({ service: service.url, folder })
    fleet.start()
    closing.push(() => fleet.stop(AbortSignal.timeout(lastAcksMs)))
    const lost = new AbortController()
    const fault = gateway.broken.finally(() => lost.abort())
    const timeIsOver = forMs === undefined ? [] : [AbortSignal.timeout(forMs)]
    const ended = AbortSignal.any([io.stop, lost.signal, ...timeIsOver])
    const { hasClient: isVehicle } = fleet
    const hand = createHandPublished({ gateway, isVehicle, show: report.show, stop: ended })
    while (await pause(systemClock, reportMs, ended)) report.tick(hand)
    hand.read()
    report.farewell()
    if (lost.signal.aborted) throw await fault
  } finally {
    // Along the flow of data: vehicles, gateway, service, folder.
    for (const close of closing.reverse()) await close()
    log.end()
  }
}

async function newFolder(): Promise<string> {
  try {
    return await mkdtemp(join(tmpdir(), 'telemetry-gateway-trial-'))
  } catch (error) {
    throw new GatewayError('OUTPUT_UNWRITABLE', {
      what: `Cannot make a folder in ${tmpdir()}.`,
      why: `${messageOf(error)}.`,
      act: 'Set TMPDIR to a folder that you may write to, on a disk with space.',
      cause: error,
    })
  }
}

async function openGateway(
  io: CommandIo,
  {
    folder,
    serviceUrl,
    ports,
    log,
  }: { folder: string; serviceUrl: string; ports: TrialPorts; log: Writable },
): Promise<Gateway> {
  const path = join(folder, 'gateway.yaml')
  await writeFile(path, configText(serviceUrl, ports))
  const { accessKeyId, secret } = sandboxAccount
  // A session token of the user's own environment does not belong to these credentials.
  const { AWS_SESSION_TOKEN: _token, ...others } = io.env
  const env = { ...others, AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secret.reveal() }
  const { config, files } = await loadConfig(path, { env })
  // On purpose, so that a new one is not reported.
  await initSpool(config.spool.path, systemClock.now())
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
      startHeapWork,
      disk: realDisk,
      configFiles: files,
      stop: io.stop,
    },
    config,
    path,
  )
}

function configText(serviceUrl: string, ports: TrialPorts): string {
  return `# The config of this trial, as you would write it for \`run\`.
ingest:
  broker: { listeners: [{ url: mqtt://${trialHost}:${ports.mqtt} }], access: { anonymous: true } }
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
spool: { path: ./spool, allow_in_memory: true, max_bytes: 1GiB, min_free_bytes: 64MiB }
delivery:
  base_url: ${serviceUrl}
  credentials: { source: environment }
  batch: { linger: 1s }
ops: { listen: ${trialHost}:${ports.status} }
`
}
