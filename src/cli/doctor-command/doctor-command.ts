// doctor-command.ts: `doctor`: examines the machine, the config and the running daemon, one line for each
// check, with the cure. Exit status 1 where one failed.
//
//   check-command      what `check --connect` finds: config, service, keys, space, bridges, alerts
//   service-checks     what the keys sign
//   disk-checks        file system, flush, write wear
//   listener-checks    addresses of the broker and of ops
//   certificate-checks dates and names of the certificates in the config
//   file-checks        owners and modes
//   unit-checks        the systemd unit
//
// It changes nothing but a file that it writes beside the spool and deletes, and sends no telemetry. With
// --signed-request it also sends one signed request without effect to each provider; never by itself. A
// check that cannot be made here is shown as skipped, with the reason.

import { Command } from 'commander'
import { GatewayError } from '../../std/gateway-error.ts'
import { plural } from '../../std/quantity.ts'
import { realPlaces, systemKernelClock } from '../../app/app.ts'
import { providerNames } from '../../delivery/config.ts'
import type { Status } from '../../ops/ops.ts'
import { checkConfig, type CheckedConfig } from '../check-command/config-findings.ts'
import { checkSurroundings, findingLine, type Finding } from '../check-command/connection-findings.ts'
import { requestDaemon } from '../daemon-client/daemon-client.ts'
import { findDaemon, serviceConfig as defaultConfig } from '../daemon-client/find-daemon.ts'
import { isLoopback } from '../../std/loopback.ts'
import type { BuildCommand, CommandIo } from '../terminal/terminal.ts'
import { notes } from '../terminal/text-format.ts'
import { checkFileSystem, checkFlush, checkWear } from './disk-checks.ts'
import { checkFiles } from './file-checks.ts'
import { checkCertificates } from './certificate-checks.ts'
import { checkListeners, type RunningDaemon } from './listener-checks.ts'
import { checkSignature } from './service-checks.ts'
import { checkUnit } from './unit-checks.ts'

type DoctorOptions = {
  config: string
  signedRequest?: boolean
  json?: boolean
  /** The daemon starts next: that its unit failed or was never started is no finding. */
  willStart?: boolean
}

const daemonMs = 5000
const notSigned = 'No signed request was sent. --signed-request sends one without effect to each provider.'

export const doctorCommand: BuildCommand = (io, done) =>
  new Command('doctor')
    .option('--config <file>', 'config of the daemon', defaultConfig)
    .option('--signed-request', 'also send one signed request without effect to each provider')
    .option('--json', 'print one JSON document')
    .addHelpText(
      'after',
      notes(
        'Changes nothing and sends no telemetry. The signed request is a batch without batchId and payloads, which ' +
          'the service must refuse with 400.',
        'Run it as root or as the user of the daemon: another user cannot see all files.',
        'Exit status 1: a check failed.',
      ),
    )
    .action(async (options: DoctorOptions) => done((await examineMachine(options, io)) ? 0 : 1))

/** Prints one line for each check. False: one failed. */
export async function examineMachine(options: DoctorOptions, io: CommandIo): Promise<boolean> {
  const { json } = options
  const checks: Finding[] = []
  let several = false
  const examination = examine(options, io, (names) => {
    several = names.length > 1
  })
  for await (const finding of examination) {
    checks.push(finding)
    if (!json) io.stdout.write(findingLine(finding, several))
    if (io.stop.aborted) break
  }
  const ok = checks.every(({ state }) => state !== 'failed')
  io.stdout.write(json ? `${JSON.stringify({ ok, checks })}\n` : summaryOf(checks))
  return ok
}

function summaryOf(checks: readonly Finding[]): string {
  const count = (state: Finding['state']) => checks.filter((one) => one.state === state).length
  const skipped = count('skipped')
  const rest = skipped > 0 ? `, ${skipped} skipped` : ''
  return `\n${plural(checks.length, 'check')}: ${count('failed')} failed, ${plural(count('warning'), 'warning')}${rest}.\n`
}

async function* examine(
  { config: path, signedRequest = false, willStart = false }: DoctorOptions,
  io: CommandIo,
  onProviders: (names: readonly string[]) => void,
): AsyncGenerator<Finding> {
  const { env } = io
  const { checked, findings } = await readConfig(path, env)
  if (checked !== null) onProviders(providerNames(checked.config.delivery))
  yield* findings
  yield await checkKernelClock(env)
  const { daemon, finding } = await lookAtDaemon(path, io)
  yield finding
  if (checked !== null) {
    const { config, secretFiles } = checked
    yield* checkSurroundings(config, io, (provider, keys) =>
      checkSignature(provider, keys, { ...io, signedRequest }),
    )
    if (!signedRequest) yield { name: 'service', state: 'skipped', what: notSigned }
    yield await checkFileSystem(config)
    yield await checkFlush(config)
    yield await checkWear(daemon)
    yield* checkListeners(config, daemon)
    yield* checkCertificates(config)
    yield* await checkFiles({ path, config, secretFiles, env })
  }
  yield* await checkUnit(checked?.config ?? null, { env, willStart })
}

async function readConfig(
  path: string,
  env: NodeJS.ProcessEnv,
): Promise<{ checked: CheckedConfig | null; findings: Finding[] }> {
  const name = 'config'
  try {
    const checked = await checkConfig(path, env)
    const warnings = checked.warnings.map(({ what, act }): Finding => ({
      name,
      state: 'warning',
      what,
      act,
    }))
    return { checked, findings: [{ name, state: 'ok', what: `${path} is valid.` }, ...warnings] }
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    const { what, why, act } = error
    return { checked: null, findings: [{ name, state: 'failed', what, why, act }] }
  }
}

async function checkKernelClock(env: NodeJS.ProcessEnv): Promise<Finding> {
  const name = 'kernel clock'
  if (await systemKernelClock(realPlaces(env)).isSynchronised(null))
    return { name, state: 'ok', what: 'The operating system keeps the clock synchronised.' }
  return {
    name,
    state: 'warning',
    what: 'Nothing says that the clock of this machine is synchronised.',
    why: 'The gateway then knows the time only from the answers of the service.',
    act: 'Run systemd-timesyncd or chrony (`timedatectl set-ntp true`), or set clocks.trust_local in a container.',
  }
}

function otherVersion({ pid, version }: Pick<Status, 'pid' | 'version'>): string {
  return (
    `A daemon of another version answers (pid ${pid}, version ${version ?? 'unknown'}), which says no verdict. ` +
    'What needs a running daemon is skipped.'
  )
}

async function lookAtDaemon(
  config: string,
  io: CommandIo,
): Promise<{ daemon: RunningDaemon | null; finding: Finding }> {
  const name = 'daemon'
  try {
    const daemon = await findDaemon({ config }, io)
    const request = { daemon, path: '/status', method: 'GET', timeoutMs: daemonMs } as const
    const status = (await requestDaemon({ ...request, stop: io.stop })) as Status
    const isLocal =
      daemon.url.startsWith('unix:') || isLoopback(new URL(daemon.url).hostname.replace(/^\[|\]$/g, ''))
    const { pid, verdict, sentence } = status
    // Version 0.1.0 has no verdict.
    if (verdict === undefined || sentence === undefined)
      return { daemon: null, finding: { name, state: 'skipped', what: otherVersion(status) } }
    const what = `The daemon runs (pid ${pid}): ${verdict}. ${sentence}`
    if (verdict === 'ok') return { daemon: { status, isLocal }, finding: { name, state: 'ok', what } }
    const act = '`telemetry-gateway status` says what to do.'
    return { daemon: { status, isLocal }, finding: { name, state: 'warning', what, act } }
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    const isUnknown = error.code !== 'DAEMON_UNREACHABLE'
    const what = isUnknown
      ? 'The config does not say where the daemon is.'
      : `No daemon answers for this config. ${error.why.split('\n', 1).join('')} What needs a running daemon is skipped.`
    return { daemon: null, finding: { name, state: 'skipped', what } }
  }
}
