// absent-daemon.ts: why no daemon answers, as far as this machine knows it. Only for a place on this machine.
//
//   systemd      the unit starts, restarts, stopped, failed, was never started, or runs with another config
//   the config   there is none, or it names no service
//   the sockets  the user may not open one, no process listens on it, or there is none

import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { codeOf } from '../../std/gateway-error.ts'
import { noService } from '../init-command/new-config.ts'
import { errorsOfRun, readUnit, serviceUnit, type UnitProperties } from './service-unit.ts'

/** A place where no daemon answered. `code`: of the failed connection; null where something else answered. */
export type TriedPlace = { place: string; code: string | null }

export type Search = {
  tried: readonly TriedPlace[]
  /** The config that names the daemon. */
  config: string
  /** Nothing else than the service was asked for, whatever its config is. */
  isService: boolean
}

export type Absence = { why: string; act: string }

const properties = [
  'LoadState',
  'ActiveState',
  'SubState',
  'Result',
  'UnitFileState',
  'MainPID',
  'ExecMainStatus',
  'NRestarts',
  'StatusText',
  'InactiveEnterTimestamp',
  'InvocationID',
  'ExecStart',
] as const

const log = `sudo journalctl -u ${serviceUnit} -n 50`
const start = `\`sudo systemctl start ${serviceUnit}\``
/** Of ExecStart: systemd-run and the unit write it alike. */
const configArgument = /--config[ =](\S+)/

export async function whyAbsent(search: Search, env: NodeJS.ProcessEnv): Promise<Absence> {
  const { tried, config, isService } = search
  const unit = await readUnit(env, properties)
  const isLoaded = unit !== null && unit.get('LoadState') !== 'not-found'
  const unitConfig = configArgument.exec(unit?.get('ExecStart') ?? '')?.[1]
  const isOther = !isService && unitConfig !== undefined && resolve(config) !== unitConfig
  const isRunning = unit?.get('ActiveState') === 'active'
  if (isLoaded && !isOther && !isRunning) return ofUnit(unit, unitConfig ?? config, env)
  const denied = tried.find(({ code }) => code === 'EACCES')
  if (denied) return notPermitted(denied)
  if (isLoaded && isRunning) return elsewhere(unit, unitConfig)
  if (isService && (await isUnconfigured(config)))
    return isLoaded ? unconfigured(config) : notInstalled(config)
  const left = tried.find(({ place, code }) => code === 'ECONNREFUSED' && place.endsWith('.sock'))
  const why = left
    ? `No process listens on ${left.place}: the daemon ended without stopping in order, such as by a kill.`
    : 'No daemon runs with this config, or it runs as another user or with another config.'
  return {
    why,
    act: `Start it: ${isLoaded && !isOther ? start : `\`telemetry-gateway run --config ${config}\``}. ${giveAnother}`,
  }
}

const giveAnother =
  'If it runs, give --config with its config, --socket with the path of its control socket, or --url.'

async function ofUnit(unit: UnitProperties, config: string, env: NodeJS.ProcessEnv): Promise<Absence> {
  const [active, sub, result] = ['ActiveState', 'SubState', 'Result'].map((name) => unit.get(name) ?? '')
  const invocation = unit.get('InvocationID') ?? ''
  const isAgain = sub === 'auto-restart'
  if (active === 'activating' && !isAgain) {
    const progress = unit.get('StatusText') ?? ''
    return {
      why: `The service is starting${progress === '' ? '' : `: ${progress.replace(/\.$/, '')}`}.`,
      act: 'Wait: `telemetry-gateway status --watch` shows when it is ready.',
    }
  }
  if (active === 'deactivating') return { why: 'The service is stopping.', act: `Start it again: ${start}.` }
  if (unit.get('LoadState') === 'masked')
    return { why: 'The unit of the service is masked.', act: `Run \`sudo systemctl unmask ${serviceUnit}\`.` }
  if (result === 'exec-condition' || (await isUnconfigured(config))) return unconfigured(config)
  if (active === 'failed' || isAgain) {
    const status = unit.get('ExecMainStatus') ?? ''
    const isRefused = status === '2'
    const restarts = isAgain ? `, and systemd starts it again (restart ${unit.get('NRestarts') ?? ''})` : ''
    const ended = isRefused
      ? 'The service refused its config or has no keys (exit status 2)'
      : `The service ended with ${result === 'exit-code' ? `exit status ${status}` : result}`
    const said = await errorsOfRun(env, invocation)
    const text = said.length === 0 ? '' : `\n${said.map(readable).join('\n')}`
    const check = `\`sudo telemetry-gateway check --config ${config}\``
    return {
      why: `${ended}${restarts}.${text}`,
      act: isRefused ? `Correct it, check it with ${check}, then run ${start}.` : `Read the log: \`${log}\`.`,
    }
  }
  const since = unit.get('InactiveEnterTimestamp') ?? ''
  const boot = unit.get('UnitFileState') === 'disabled'
  const why =
    since === '' ? 'The service was not started since the boot' : `The service was stopped at ${since}`
  return {
    why: `${why}${boot ? ', and it is disabled: it does not start at boot' : ''}.`,
    act: `Start it: ${start}${boot ? `, and at each boot: \`sudo systemctl enable ${serviceUnit}\`` : ''}.`,
  }
}

function elsewhere(unit: UnitProperties, config: string | undefined): Absence {
  const pid = unit.get('MainPID') ?? ''
  const named = config === undefined ? '' : ` with the config ${config}`
  return {
    why: `The service runs (pid ${pid})${named}, and does not listen at these places.`,
    act: config === undefined ? giveAnother : `Give --config ${config}, or --socket with its control socket.`,
  }
}

function notPermitted({ place }: TriedPlace): Absence {
  return {
    why: `You may not open ${place}.`,
    act:
      'Run the command with sudo, or as a member of the group telemetry-gateway ' +
      '(`sudo usermod -aG telemetry-gateway NAME`, then log in again).',
  }
}

function unconfigured(config: string): Absence {
  return {
    why: `The gateway is not configured yet: ${config} names no service.`,
    act: `Run \`sudo telemetry-gateway init\`, then start it: ${start}.`,
  }
}

/** In a checkout, too. */
function notInstalled(config: string): Absence {
  return {
    why: `This machine has no unit ${serviceUnit} and no config ${config} that names a service.`,
    act: `${giveAnother} Without one: \`npm start\` in a checkout tries the gateway out, \`telemetry-gateway init\` writes a config.`,
  }
}

/** False also where the user may not read it: then nothing is known. */
async function isUnconfigured(config: string): Promise<boolean> {
  try {
    return (await readFile(config, 'utf8')).includes(noService)
  } catch (error) {
    return codeOf(error) === 'ENOENT'
  }
}

/** Of a line of the log, its sentence. */
function readable(line: string): string {
  if (!line.startsWith('{')) return line
  try {
    const { msg } = JSON.parse(line) as { msg?: unknown }
    return typeof msg === 'string' ? msg : line
  } catch {
    return line
  }
}
