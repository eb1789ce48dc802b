// config-findings.ts: everything that `check` finds in a config without leaving this machine: the config
// itself, the device table, files with credentials and passwords, and what a person should know (warnings).
//
// All problems are reported together: errors of the config do not hide those of the device table, nor of the
// files that its sound part names.

import { constants } from 'node:fs'
import { access, readFile } from 'node:fs/promises'
import { fileSystemAt, fileSystemWarnings, inMemoryFault } from '../../std/file-system/file-system.ts'
import { codeOf, GatewayError, messageOf } from '../../std/gateway-error.ts'
import { parsePasswordFile } from '../../std/passwords/password-file.ts'
import { NotUtf8Error, readUtf8 } from '../../std/file-system/utf8-text.ts'
import {
  ConfigError,
  configWarnings,
  inspectConfig,
  loadDevicesPlace,
  requireProxies,
  secretFileWarnings,
  type Config,
  type DevicesPlace,
  type LoadedConfig,
} from '../../config/config.ts'
import { providerNames } from '../../delivery/config.ts'
import { DeviceTableError, doubtfulWords, loadDevices, type TableModels } from '../../mapping/mapping.ts'
import { memoryWarning } from './memory-limits.ts'

type Warning = ReturnType<typeof configWarnings>[number]

export type CheckedConfig = {
  config: Config
  secretFiles: readonly string[]
  warnings: readonly Warning[]
}

/** Rejects with CONFIG_UNREADABLE, CONFIG_INVALID or DEVICES_INVALID. */
export async function checkConfig(path: string, env: NodeJS.ProcessEnv): Promise<CheckedConfig> {
  const { loaded, problems } = await inspectConfig(path, { env })
  const isValid = loaded !== null && problems.length === 0
  const files = loaded === null ? { problems: [], warnings: [] } : await checkFiles(loaded)
  const proxy = loaded === null ? null : checkProxies(loaded.config, env)
  const table = await checkDevices(isValid ? placeIn(loaded.config) : await loadDevicesPlace(path, { env }))
  const all = [...problems, ...files.problems].sort((a, b) => a.line - b.line || a.column - b.column)
  const ofConfig = loaded === null || all.length > 0 ? new ConfigError(path, all) : null
  const errors = [ofConfig, proxy, table.error].filter((error) => error !== null)
  if (loaded === null || errors.length > 0) throw together(errors)
  const { config, secretFiles } = loaded
  const memory = await memoryWarning(config)
  const warnings = [
    ...configWarnings(config),
    ...doubtfulWords(config, table.models),
    ...(await fileSystemWarnings(config.spool.path)),
    ...(await secretFileWarnings(secretFiles, env)),
    ...files.warnings,
    ...tableWarnings(config, table.size),
    ...(memory === null ? [] : [memory]),
  ]
  return { config, secretFiles, warnings }
}

type Placed = Pick<LoadedConfig, 'config' | 'positionOf'>

/** The daemon refuses a spool in memory at the start. */
async function spoolProblems({ config: { spool }, positionOf }: Placed) {
  if (spool.allow_in_memory) return []
  const fault = inMemoryFault(spool.path, await fileSystemAt(spool.path))
  if (fault === null) return []
  return [{ ...positionOf(['spool', 'path']), path: 'spool.path', message: fault.message }]
}

function checkProxies(config: Config, env: NodeJS.ProcessEnv): GatewayError | null {
  try {
    requireProxies(config, env)
    return null
  } catch (error) {
    if (error instanceof GatewayError) return error
    throw error
  }
}

function placeIn({ devices, delivery, privacy }: Config): DevicesPlace | null {
  if (devices.file === undefined) return null
  const providers = providerNames(delivery)
  return { file: devices.file, providers, profiles: Object.keys(privacy.profiles) }
}

async function checkDevices(
  place: DevicesPlace | null,
): Promise<{ models: TableModels; size: number; error: GatewayError | null }> {
  if (place === null) return { models: new Map(), size: 0, error: null }
  const { file, ...known } = place
  try {
    const table = await loadDevices({ readFile: (path) => readFile(path) }, { path: file, ...known })
    return { models: table.models?.() ?? new Map(), size: table.size, error: null }
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    return { models: new Map(), size: 0, error }
  }
}

/** With no listed device, nothing is delivered. */
function tableWarnings({ devices: { file, unknown } }: Config, size: number): Warning[] {
  if (size > 0 || unknown === 'accept') return []
  const which =
    file === undefined
      ? 'There is no device table (`devices.file`)'
      : `The device table ${file} has no device`
  const effect = unknown === 'ignore' ? 'every message is ignored' : 'every message is kept in quarantine'
  return [
    {
      what: `${which}, and \`devices.unknown\` is ${unknown}: ${effect}, nothing is delivered.`,
      act: 'Add the devices with `devices add`, or set `devices.unknown` to accept.',
    },
  ]
}

/** One error with the problems of all. */
function together(errors: readonly GatewayError[]): GatewayError {
  const [only, ...more] = errors
  if (only !== undefined && more.length === 0) return only
  const texts = {
    what: errors.map(({ what }) => what).join(' '),
    why: errors.map(({ why }) => why).join('\n'),
    act: errors.map(({ act }) => act).join(' '),
  }
  const problems = errors.flatMap((error) => {
    if (error instanceof ConfigError) return error.problems
    if (!(error instanceof DeviceTableError)) return []
    return error.problems.map(({ line, message }) => ({
      file: error.path,
      line,
      column: 1,
      path: '',
      message,
    }))
  })
  return Object.assign(new GatewayError('CONFIG_INVALID', texts), { problems })
}

type NamedFile = { keys: readonly (string | number)[]; path: string; isPasswords: boolean }

/** The files that the daemon reads itself: it starts without credentials, and then sends nothing. */
function namedFiles({ ingest, delivery }: Config): NamedFile[] {
  const { access, listeners } = ingest.broker
  const credentials = [
    { keys: ['delivery', 'credentials', 'path'], own: delivery.credentials },
    ...(delivery.providers ?? []).map((own, index) => ({
      keys: ['delivery', 'providers', index, 'credentials', 'path'],
      own: own.credentials,
    })),
  ]
  const passwords = [
    { keys: ['ingest', 'broker', 'access', 'password_file'], own: access },
    ...listeners.map((listener, index) => ({
      keys: ['ingest', 'broker', 'listeners', index, 'access', 'password_file'],
      own: listener.access,
    })),
  ]
  return [
    ...credentials.flatMap(({ keys, own }) =>
      own?.source === 'file' ? [{ keys, path: own.path, isPasswords: false }] : [],
    ),
    ...passwords.flatMap(({ keys, own }) =>
      own?.password_file === undefined ? [] : [{ keys, path: own.password_file, isPasswords: true }],
    ),
  ]
}

/** Programs of receivers of alerts that this user cannot start. */
async function commandWarnings({ alerts }: Config): Promise<Warning[]> {
  const warnings: Warning[] = []
  for (const receiver of alerts.receivers) {
    const [path = ''] = receiver.type === 'command' ? receiver.command : []
    if (path === '' || (await access(path, constants.X_OK).then(yes, no))) continue
    warnings.push({
      what: `The command of the receiver "${receiver.name}" cannot be executed: ${path}.`,
      act: 'Check its path and its mode, as the user of the daemon.',
    })
  }
  return warnings
}

const yes = () => true
const no = () => false

async function checkFiles({ config, positionOf, pathOf, failedAt }: LoadedConfig) {
  const problems: ConfigError['problems'][number][] = await spoolProblems({ config, positionOf })
  const warnings: Warning[] = await commandWarnings(config)
  for (const { keys: own, path, isPasswords } of namedFiles(config)) {
    const keys = pathOf(own)
    if (failedAt(keys)) continue
    const option = keys.map((key) => (typeof key === 'number' ? `[${key}]` : `.${key}`)).join('')
    const name = option.slice(1).replaceAll('.[', '[')
    const add = (message: string) => problems.push({ ...positionOf(keys), path: name, message })
    try {
      const text = await readUtf8(path)
      const found = isPasswords ? parsePasswordFile(text) : null
      const [first] = found?.problems ?? []
      if (first !== undefined)
        add(`${name} names a file with an error: ${path}:${first.line} ${first.message}.`)
      else if (found?.users.size === 0)
        warnings.push({
          what: `The file of ${name} has no user: ${path}. No client can log in with a name of it.`,
          act: `Add users with \`passwd ${path} NAME\`. A running daemon reads the file again.`,
        })
    } catch (error) {
      const code = codeOf(error)
      if (code === 'ENOENT' || code === 'ENOTDIR') add(`${name} names a file that does not exist: ${path}.`)
      else if (error instanceof NotUtf8Error)
        add(`${name} names a file with an error: ${path}: ${error.message}.`)
      else if (code === 'EISDIR') add(`${name} names a directory: ${path}.`)
      else
        warnings.push({
          what: `The file of ${name} cannot be read here: ${messageOf(error)}.`,
          act: 'Run the command as the user of the daemon, or with sudo.',
        })
    }
  }
  return { problems, warnings }
}
