// config.ts: the configuration as a whole. The door of this folder.
//
// Promises
//   One file, one schema: each stage declares its options in its own config.ts, and parsing, error texts,
//   config/reference.md and config/gateway.schema.json all come from there.
//   Everything that is wrong is said at once, each with line and column, the option, the rule and the value found.
//   No message shows a secret. Secrets come from the environment or from files, never from the config itself.
//
// How
//   config-reader.ts does it: the text becomes a tree that knows its lines (yaml-source.ts), ${env:NAME} and ${file:PATH} are
//   put in (substitute.ts), presets are put into the sources that name them (preset-files.ts), the schema judges, and what
//   it found is put into words (schema-errors.ts, schema-shape.ts). What is wrong in a preset is told with the preset's line.
//   Relative paths in the config - in ${file:PATH} and in options that are paths - start at the folder of the
//   config file, not where the daemon was started: the same file means the same thing under systemd and in a shell.
//
// What can go wrong, and what then happens
//   the file cannot be read   CONFIG_UNREADABLE
//   anything is wrong in it   CONFIG_INVALID (ConfigError) with the list; nothing has been started, exit status 2

import { readFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { z } from 'zod'
import { codeOf, GatewayError, messageOf } from '../std/gateway-error.ts'
import { deliverySchema, providerNames } from '../delivery/config.ts'
import { ingestSchema } from '../ingest/config.ts'
import { ledgerSchema } from '../ledger/config.ts'
import { logSchema, opsSchema, type OpsConfig } from '../ops/config.ts'
import { spoolSchema } from '../spool/config.ts'
import { ConfigError } from './config-error.ts'
import { createPresets } from './preset-files.ts'
import { readText } from './config-reader.ts'
import { checkSources, mappingShape, withOneProvider } from './sources-section.ts'

export { createMappingReader, loadCases, loadPresetCases } from './case-files.ts'
export { ConfigError } from './config-error.ts'
export { packagedNames } from './preset-files.ts'
export { referenceText, schemaText } from './config-reference.ts'

export const configSchema = z.strictObject({
  ingest: ingestSchema,
  ...mappingShape,
  spool: spoolSchema.prefault({}),
  delivery: deliverySchema,
  ledger: ledgerSchema,
  ops: opsSchema,
  log: logSchema,
})

export type Config = z.output<typeof configSchema>

export type LoadedConfig = {
  /** The file as it was named. */
  path: string
  /** Paths in it are absolute. */
  config: Config
  /** The files of the presets that it names; what they say stands in the sources. */
  presetFiles: readonly string[]
}

export type LoadConfigDeps = {
  env: Readonly<Record<string, string | undefined>>
  /** Reads a file as UTF-8; for tests. */
  readFile?: (path: string) => Promise<string>
}

/** Reads the config at `path`; rejects with CONFIG_UNREADABLE or ConfigError. */
export async function loadConfig(path: string, deps: LoadConfigDeps): Promise<LoadedConfig> {
  const text = await readConfig(path, deps)
  const folder = dirname(resolve(path))
  const substituteFrom = { env: deps.env, readText: relativeReader(path, deps) }
  const presets = createPresets(substituteFrom, { folder })
  const steps = { expand: presets.expand, check: checkSources }
  const result = await readText(text, configSchema, substituteFrom, steps)
  if (result.kind === 'problems') throw new ConfigError(path, result.problems)
  const { config } = result
  const sources = withOneProvider(config.sources, providerNames(config.delivery))
  return { path, config: withAbsolutePaths({ ...config, sources }, folder), presetFiles: presets.files() }
}

/** The section `ops` alone: who only asks the daemon needs none of its secrets and may not be able to read them. */
export async function loadOpsConfig(path: string, deps: LoadConfigDeps): Promise<OpsConfig> {
  const text = await readConfig(path, deps)
  const substituteFrom = { env: deps.env, readText: relativeReader(path, deps) }
  const result = await readText(text, z.object({ ops: opsSchema }), substituteFrom, { sections: ['ops'] })
  if (result.kind === 'problems') throw new ConfigError(path, result.problems)
  return result.config.ops
}

/** `spool.path` alone, absolute: for commands that open the spool where no daemon runs. */
export async function loadSpoolPath(path: string, deps: LoadConfigDeps): Promise<string> {
  const text = await readConfig(path, deps)
  const substituteFrom = { env: deps.env, readText: relativeReader(path, deps) }
  const schema = z.object({ spool: spoolSchema.prefault({}) })
  const result = await readText(text, schema, substituteFrom, { sections: ['spool'] })
  if (result.kind === 'problems') throw new ConfigError(path, result.problems)
  return resolve(dirname(resolve(path)), result.config.spool.path)
}

async function readConfig(path: string, { readFile: read = readUtf8 }: LoadConfigDeps): Promise<string> {
  try {
    return await read(path)
  } catch (error) {
    throw new GatewayError('CONFIG_UNREADABLE', {
      what: `Cannot read the config ${path}.`,
      why: codeOf(error) === 'ENOENT' ? 'There is no such file.' : `${messageOf(error)}.`,
      act: 'Give its path with --config; config/examples has some to begin with.',
      cause: error,
    })
  }
}

/** Reads what `${file:PATH}` names. */
function relativeReader(path: string, { readFile: read = readUtf8 }: LoadConfigDeps) {
  return (file: string) => read(resolve(dirname(resolve(path)), file))
}

function readUtf8(path: string): Promise<string> {
  return readFile(path, 'utf8')
}

/** Options that are paths start at the folder of the config file. */
function withAbsolutePaths(config: Config, folder: string): Config {
  const { spool, devices, delivery } = config
  const { credentials, providers } = delivery
  return {
    ...config,
    spool: { ...spool, path: resolve(folder, spool.path) },
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

type Credentials = Config['delivery']['credentials']

function at(credentials: Credentials, folder: string): Credentials {
  return credentials.source === 'file'
    ? { ...credentials, path: resolve(folder, credentials.path) }
    : credentials
}
