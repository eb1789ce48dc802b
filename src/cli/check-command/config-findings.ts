// config-findings.ts: everything that `check` finds in a config without leaving this machine: the config
// itself, the device table, files with credentials and passwords, and what a person should know (warnings).
//
// All problems are reported together: errors of the config do not hide those of the device table.

import { constants } from 'node:fs'
import { access, readFile } from 'node:fs/promises'
import { codeOf, GatewayError, messageOf } from '../../std/gateway-error.ts'
import { parsePasswordFile } from '../../std/passwords/password-file.ts'
import {
  ConfigError,
  configWarnings,
  loadConfig,
  loadDevicesPlace,
  secretFileWarnings,
  type Config,
  type DevicesPlace,
  type LoadedConfig,
} from '../../config/config.ts'
import { providerNames } from '../../delivery/config.ts'
import { doubtfulWords, loadDevices, type TableModels } from '../../mapping/mapping.ts'
import { memoryWarning } from './memory-limits.ts'

type Warning = ReturnType<typeof configWarnings>[number]

export type CheckedConfig = {
  config: Config
  secretFiles: readonly string[]
  warnings: readonly Warning[]
}

/** Rejects with CONFIG_UNREADABLE, CONFIG_INVALID or DEVICES_INVALID. */
export async function checkConfig(path: string, env: NodeJS.ProcessEnv): Promise<CheckedConfig> {
  const loaded = await loadWithDevices(path, env)
  const { config, secretFiles } = loaded
  const files = await checkFiles(loaded)
  const table = await checkDevices(placeIn(config))
  if (files.problems.length > 0) throw together(new ConfigError(path, files.problems), table.error)
  if (table.error !== null) throw table.error
  const memory = await memoryWarning(config)
  const warnings = [
    ...configWarnings(config),
    ...doubtfulWords(config, table.models),
    ...(await secretFileWarnings(secretFiles, env)),
    ...files.warnings,
    ...(memory === null ? [] : [memory]),
  ]
  return { config, secretFiles, warnings }
}

async function loadWithDevices(path: string, env: NodeJS.ProcessEnv): Promise<LoadedConfig> {
  try {
    return await loadConfig(path, { env })
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    const place = await loadDevicesPlace(path, { env })
    throw together(error, place === null ? null : (await checkDevices(place)).error)
  }
}

function placeIn({ devices, delivery, privacy }: Config): DevicesPlace | null {
  if (devices.file === undefined) return null
  const providers = providerNames(delivery)
  return { file: devices.file, providers, profiles: Object.keys(privacy.profiles) }
}

async function checkDevices(
  place: DevicesPlace | null,
): Promise<{ models: TableModels; error: GatewayError | null }> {
  if (place === null) return { models: new Map(), error: null }
  const { file, ...known } = place
  try {
    const table = await loadDevices({ readFile: (path) => readFile(path) }, { path: file, ...known })
    return { models: table.models?.() ?? new Map(), error: null }
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    return { models: new Map(), error }
  }
}

/** One error with the problems of both. */
function together(config: ConfigError, devices: GatewayError | null): GatewayError {
  if (devices === null) return config
  const texts = {
    what: `${config.what} ${devices.what}`,
    why: `${config.why}\n${devices.why}`,
    act: `${config.act} ${devices.act}`,
  }
  const rows = devices.why.split('\n').flatMap((text) => {
    const [, file = '', line = '', message = ''] = /^(.*):(\d+) {2}(.*)$/.exec(text) ?? []
    return file === '' ? [] : [{ file, line: Number(line), column: 1, path: '', message }]
  })
  return Object.assign(new GatewayError('CONFIG_INVALID', texts), { problems: [...config.problems, ...rows] })
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

async function checkFiles({ config, positionOf }: LoadedConfig) {
  const problems: ConfigError['problems'][number][] = []
  const warnings: Warning[] = await commandWarnings(config)
  for (const { keys, path, isPasswords } of namedFiles(config)) {
    const option = keys.map((key) => (typeof key === 'number' ? `[${key}]` : `.${key}`)).join('')
    const name = option.slice(1).replaceAll('.[', '[')
    const add = (message: string) => problems.push({ ...positionOf(keys), path: name, message })
    try {
      const text = await readFile(path, 'utf8')
      const [first] = isPasswords ? parsePasswordFile(text).problems : []
      if (first !== undefined)
        add(`${name} names a file with an error: ${path}:${first.line} ${first.message}.`)
    } catch (error) {
      const code = codeOf(error)
      if (code === 'ENOENT' || code === 'ENOTDIR') add(`${name} names a file that does not exist: ${path}.`)
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
