// config.ts: the entry file of the folder. Loads and checks the configuration file.
//
// Guarantees
//   One file, one schema: each stage declares its options in its own config.ts. Parsing, error texts,
//   config/reference.md and config/gateway.schema.json all come from there.
//   All problems are reported at once, each with line and column, the option, the rule and the value found.
//   No message shows a secret. Secrets come from the environment or from files, never from the config itself.
//
// How it works (config-reader.ts)
//   yaml-source.ts     parses the text into a tree that keeps line and column of every value
//   substitute.ts      replaces ${env:NAME} and ${file:PATH}
//   preset-files.ts    merges presets into the sources; a problem in a preset has the line of the preset file
//   schema-errors.ts   turns what the schema found into sentences, with schema-shape.ts, renamed-keys.ts and
//                      suggestion.ts
//   Relative paths, in ${file:PATH} and in options that are paths, start at the folder of the config file,
//   not at the working directory: the same file works the same under systemd and in a shell.
//
//   sound-part.ts      the part without problems, whose own checks run too
//   Problems of a valid part, such as a missing file, are found by `check`, with inspectConfig().
//
// Failures
//   the file cannot be read   CONFIG_UNREADABLE
//   the file has problems     CONFIG_INVALID (ConfigError) with the list; nothing was started, exit status 2

import { dirname, resolve } from 'node:path'
import { z } from 'zod'
import { codeOf, GatewayError, messageOf } from '../std/gateway-error.ts'
import { alertsSchema } from '../alerts/config.ts'
import { deliveryOptions, deliverySchema, providerNames, proxyFor, sectionProxy } from '../delivery/config.ts'
import { ingestSchema } from '../ingest/config.ts'
import { ledgerSchema } from '../ledger/config.ts'
import {
  controlSocketPath,
  logSchema,
  opsPlacesSchema,
  opsZoneSchema,
  opsSchema,
  socketPathProblem,
  type HostPort,
} from '../ops/config.ts'
import { spoolSchema } from '../spool/config.ts'
import { ConfigError, requireConfig } from './config-error.ts'
import { createPresets } from './preset-files.ts'
import { NotUtf8Error, readUtf8 } from '../std/file-system/utf8-text.ts'
import { readText, type LocatedProblem, type ReadConfig } from './config-reader.ts'
import { checkPorts } from './port-conflicts.ts'
import { filesOfSecrets } from './secret-files.ts'
import {
  checkNames,
  checkSources,
  devicesPlaceOf,
  devicesPlaceSchema,
  mappingShape,
  withOneProvider,
  type DevicesPlace,
} from './sources-section.ts'
import type { SubstituteDeps } from './substitute.ts'
import type { YamlSource } from './yaml-source.ts'

export { createMappingReader, loadCases, loadPresetCases, testedBy } from './case-files.ts'
export { configWarnings } from './config-warnings.ts'
export {
  certificateCure,
  certificatesOf,
  certificateState,
  certificateText,
  certificateWarnings,
  namesOfCertificate,
  type CertificateSections,
  type CertificateState,
  type ConfigCertificate,
} from './certificates/certificates.ts'
export { addListed, openDeviceTable, type TableChange } from './device-table-file/device-table-file.ts'
export { connectionsWithin, openFilesWarnings } from './open-files/open-files.ts'
export { secretFileWarnings } from './secret-files.ts'
export { ConfigError } from './config-error.ts'
export type { DevicesPlace } from './sources-section.ts'
export { packagedNames, packagedPreset } from './preset-files.ts'
export { fieldRows, referenceText, schemaText } from './config-reference.ts'

export const configSchema = z.strictObject({
  ingest: ingestSchema.describe('How devices connect.'),
  ...mappingShape,
  spool: spoolSchema.prefault({}).describe('Where acknowledged data is stored until it is delivered.'),
  delivery: deliverySchema.describe('How payloads are sent to the ingestion API.'),
  ledger: ledgerSchema,
  ops: opsSchema.describe('HTTP server for status, health and metrics, and the stop of the daemon.'),
  alerts: alertsSchema,
  log: logSchema.describe('The log of the daemon.'),
})

export type Config = z.output<typeof configSchema>

export type LoadedConfig = {
  /** The file as it was named. */
  path: string
  /** Paths in it are absolute. */
  config: Config
  /** Every file that was read for it. */
  files: readonly string[]
  /** The preset files that it names. They are merged into the sources already. */
  presetFiles: readonly string[]
  /** The files that have secrets. */
  secretFiles: readonly string[]
  /** Line and column of an option of the file. */
  positionOf: YamlSource['positionOf']
  /** The path in the file of an option of `config`. They differ where `config` is a part of it. */
  pathOf: ReadConfig<Config>['pathOf']
  /** Whether the value of an option of the file was not found, which is a problem already. */
  failedAt: ReadConfig<Config>['failedAt']
}

export type LoadConfigDeps = {
  env: Readonly<Record<string, string | undefined>>
  /** Reads a file as UTF-8; for tests. */
  readFile?: (path: string) => Promise<string>
}

/** Reads the config at `path`; rejects with CONFIG_UNREADABLE or ConfigError. */
export async function loadConfig(path: string, deps: LoadConfigDeps): Promise<LoadedConfig> {
  const { loaded, problems } = await inspectConfig(path, deps)
  if (loaded === null || problems.length > 0) throw new ConfigError(path, problems)
  return loaded
}

/**
 * Reads the config at `path`, also one with problems. `loaded`: the part without problems, so that what it
 * names can be checked as well; null where there is none. Rejects with CONFIG_UNREADABLE, or with ConfigError
 * where the file is not UTF-8.
 */
export async function inspectConfig(
  path: string,
  deps: LoadConfigDeps,
): Promise<{ loaded: LoadedConfig | null; problems: readonly LocatedProblem[] }> {
  const text = await readConfig(path, deps)
  const folder = dirname(resolve(path))
  const read = new Map<string, string>()
  const substitution = substitutionFor(path, deps, read)
  const presets = createPresets(substitution, { folder })
  const check = (written: unknown) => [...checkNames(written), ...checkPorts(written)]
  const steps = { expand: presets.expand, check, checkSound: checkSources }
  const result = await readText(text, configSchema, substitution, steps)
  const sound = result.kind === 'config' ? result : result.sound
  const loaded = sound === null ? null : loadedOf(sound)
  const socket = loaded === null ? [] : controlSocketProblems(loaded, deps)
  const problems = [...(result.kind === 'config' ? [] : result.problems), ...socket]
  return { loaded, problems }

  function loadedOf({ config: written, ...places }: ReadConfig<Config>): LoadedConfig {
    const sources = withOneProvider(written.sources, providerNames(written.delivery))
    const config = withAbsolutePaths({ ...written, sources }, folder)
    const secretFiles = [...filesOfSecrets(config, read), ...namedSecretFiles(config)]
    const files = [resolve(path), ...read.keys(), ...presets.files()]
    return { ...places, path, config, files, presetFiles: presets.files(), secretFiles }
  }
}

/** The path of the socket depends on spool.path and on the environment, so the schema cannot check it. */
function controlSocketProblems(
  { config: { ops, spool }, positionOf, failedAt }: LoadedConfig,
  { env }: Pick<LoadConfigDeps, 'env'>,
): LocatedProblem[] {
  const runtimeDirectory = env['RUNTIME_DIRECTORY'] ?? ''
  const problem = socketPathProblem(controlSocketPath({ ...ops, spoolPath: spool.path, runtimeDirectory }))
  const keys = ops.control_socket === undefined ? ['spool', 'path'] : ['ops', 'control_socket']
  if (problem === null || failedAt(keys)) return []
  const message = `${keys.join('.')} ${problem}. A shorter ops.control_socket is enough.`
  return [{ ...positionOf(keys), path: keys.join('.'), message }]
}

/** Where the daemon of a config is. A client needs no secret and may be unable to read them. */
export type DaemonPlaces = { listen: HostPort; controlSocket: string | null; spoolPath: string }

/** `controlSocket`: null where the config names none. */
export async function loadDaemonPlaces(path: string, deps: LoadConfigDeps): Promise<DaemonPlaces> {
  const sections = { ops: opsPlacesSchema, spool: spoolSchema.pick({ path: true }).prefault({}) }
  const options = ['ops.listen', 'ops.control_socket', 'spool.path']
  const { ops, spool } = await loadSections(path, sections, deps, options)
  const at = (file: string) => resolve(dirname(resolve(path)), file)
  const controlSocket = ops.control_socket === undefined ? null : at(ops.control_socket)
  return { listen: ops.listen, controlSocket, spoolPath: at(spool.path) }
}

/**
 * `spool.path`, absolute, and `ops.time_zone`: for commands that open the spool where no daemon runs. Nothing
 * else of the config has to be right.
 */
export async function loadSpoolPlace(
  path: string,
  deps: LoadConfigDeps,
): Promise<{ spoolPath: string; timeZone: string | undefined }> {
  const sections = { spool: spoolSchema.prefault({}), ops: opsZoneSchema }
  const { spool, ops } = await loadSections(path, sections, deps, ['spool', 'ops.time_zone'])
  return { spoolPath: resolve(dirname(resolve(path)), spool.path), timeZone: ops.time_zone }
}

/** The device table, also of a config with problems elsewhere. Null: none, or its options have problems. */
export async function loadDevicesPlace(path: string, deps: LoadConfigDeps): Promise<DevicesPlace | null> {
  const text = await readConfig(path, deps)
  const only = { sections: ['devices.file', 'delivery.providers', 'privacy.profiles'] }
  const result = await readText(text, devicesPlaceSchema, substitutionFor(path, deps), only)
  return result.kind === 'problems' ? null : devicesPlaceOf(result.config, dirname(resolve(path)))
}

async function loadSections<Sections extends z.ZodRawShape>(
  path: string,
  sections: Sections,
  deps: LoadConfigDeps,
  read: readonly string[] = Object.keys(sections),
) {
  const text = await readConfig(path, deps)
  const only = { sections: read }
  const result = await readText(text, z.object(sections), substitutionFor(path, deps), only)
  return requireConfig(path, result).config
}

async function readConfig(path: string, { readFile: read = readUtf8 }: LoadConfigDeps): Promise<string> {
  try {
    return await read(path)
  } catch (error) {
    if (error instanceof NotUtf8Error) {
      const { line, column, message } = error
      throw new ConfigError(path, [{ line, column, path: '', message: `${message}.` }])
    }
    const isNoFile = ['ENOENT', 'ENOTDIR', 'EISDIR'].includes(codeOf(error) ?? '')
    throw new GatewayError('CONFIG_UNREADABLE', {
      what: `Cannot read the config ${path}.`,
      why: codeOf(error) === 'ENOENT' ? 'There is no such file.' : `${messageOf(error)}.`,
      act: isNoFile
        ? 'Give the path of a config with --config. config/examples has examples.'
        : 'Let the user of this process read the file, and check the disk that it is on.',
      cause: error,
    })
  }
}

/** `texts` receives each file that is inserted. */
function substitutionFor(
  path: string,
  { env, readFile: read = readUtf8 }: LoadConfigDeps,
  texts = new Map<string, string>(),
): SubstituteDeps {
  const readText = async (file: string) => {
    const at = resolve(dirname(resolve(path)), file)
    const text = await read(at)
    texts.set(at, text)
    return text
  }
  return { env, readText }
}

/** Throws CONFIG_INVALID where a variable of the environment names no proxy, and a request would use it. */
export function requireProxies({ delivery, alerts }: Config, env: NodeJS.ProcessEnv): void {
  const proxy = sectionProxy(delivery)
  const requests = [...alerts.receivers, ...alerts.heartbeats].flatMap((one) =>
    'url' in one && one.proxy !== 'none' ? [{ baseUrl: one.url.reveal(), proxy }] : [],
  )
  for (const one of [...deliveryOptions(delivery).providers, ...requests])
    proxyFor(one.baseUrl, one.proxy, env)
}

/** Files that the stages read themselves. */
function namedSecretFiles({ ingest, delivery }: Config): string[] {
  const { access, listeners } = ingest.broker
  const credentials = [delivery.credentials, ...(delivery.providers ?? []).map((own) => own.credentials)]
  return [
    ...[access, ...listeners.map((listener) => listener.access)].map((own) => own?.password_file),
    ...credentials.map((own) => (own?.source === 'file' ? own.path : undefined)),
  ].filter((path) => path !== undefined)
}

/** Options that are paths start at the folder of the config file. */
function withAbsolutePaths(config: Config, folder: string): Config {
  const { ingest, spool, devices, delivery, ops } = config
  const { credentials, providers } = delivery
  return {
    ...config,
    ingest: { ...ingest, broker: withPasswordFiles(ingest.broker, folder) },
    spool: { ...spool, path: resolve(folder, spool.path) },
    ops: {
      ...ops,
      ...(ops.control_socket === undefined ? {} : { control_socket: resolve(folder, ops.control_socket) }),
    },
    devices: { ...devices, ...(devices.file === undefined ? {} : { file: resolve(folder, devices.file) }) },
    delivery: {
      ...delivery,
      credentials: at(credentials, folder),
      ...(providers && {
        providers: providers.map((own) => ({
          ...own,
          ...(own.credentials && { credentials: at(own.credentials, folder) }),
        })),
      }),
    },
  }
}

type Broker = Config['ingest']['broker']

function withPasswordFiles(broker: Broker, folder: string): Broker {
  const at = (access: Broker['access']) =>
    access.password_file === undefined
      ? access
      : { ...access, password_file: resolve(folder, access.password_file) }
  const listeners = broker.listeners.map((listener) =>
    listener.access === undefined ? listener : { ...listener, access: at(listener.access) },
  )
  return { ...broker, access: at(broker.access), listeners }
}

type Credentials = Config['delivery']['credentials']

function at(credentials: Credentials, folder: string): Credentials {
  return credentials.source === 'file'
    ? { ...credentials, path: resolve(folder, credentials.path) }
    : credentials
}
