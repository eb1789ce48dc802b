// init-command.ts: `init`: the first config of a gateway. It asks at a terminal, or takes everything from its
// options, writes config, device table, users and keys, checks them, examines the machine, and says what is
// next. Exit status 0: the files are written and the config is valid, also where `doctor` finds something.
//
//   setup-answers   what it must know, from options and questions: a table
//   new-config      the config as text
//   setup-files     the files: never half-written, nothing of a person replaced without --force
//   config-additions   more sources and providers for a config that is there

import { existsSync } from 'node:fs'
import { buffer } from 'node:stream/consumers'
import { join, resolve } from 'node:path'
import { Command } from 'commander'
import { systemClock } from '../../std/clock.ts'
import { readUtf8, utf8Text } from '../../std/file-system/utf8-text.ts'
import { GatewayError, messageOf } from '../../std/gateway-error.ts'
import { plural } from '../../std/quantity.ts'
import { checkConfig } from '../check-command/config-findings.ts'
import { deviceRules } from '../../mapping/mapping.ts'
import { examineMachine } from '../doctor-command/doctor-command.ts'
import { interrupted } from '../terminal/questions.ts'
import { columns } from '../../std/text-table/text-table.ts'
import { terminalWidth, type BuildCommand, type CommandIo } from '../terminal/terminal.ts'
import { notes } from '../terminal/text-format.ts'
import { textOfLines } from '../../std/text-table/text-lines.ts'
import type { Setup } from './new-config.ts'
import { addToConfig } from './config-additions.ts'
import {
  completeAddition,
  completeSetup,
  withSetupOptions,
  type AccessKeys,
  type SetupOptions,
} from './setup-answers.ts'
import { makeSpool, refuseReplacing, writeSetup, type WrittenSetup } from './setup-files.ts'

type InitOptions = SetupOptions & {
  to: string
  keys?: string
  force?: boolean
  doctor: boolean
  json?: boolean
}

const defaultFolder = '/etc/telemetry-gateway'

export const initCommand: BuildCommand = (io, done) =>
  withSetupOptions(new Command('init').option('--to <dir>', 'write into this directory', defaultFolder))
    .option('--keys <file>', 'JSON with accessKeyId and secretAccessKey; - is standard input')
    .option('--force', 'also where a person wrote a config there; it is kept under another name')
    .option('--no-doctor', 'do not examine the machine at the end')
    .option('--json', 'print one JSON document; asks nothing')
    .addHelpText(
      'after',
      notes(
        'At a terminal it asks for what the options do not say. Otherwise --service is required, and the rest has ' +
          'defaults.',
        'Each new device gets a user with a new password. It is printed once and stored as a hash.',
        '--add-source and --add-provider change the config that is there. Comments and order stay.',
        'Ctrl-C before the end leaves everything as it was.',
      ),
    )
    .action(async (options: InitOptions) => {
      const { json = false, force = false } = options
      const folder = resolve(options.to)
      const input = options.input && !json
      if (options.addSource !== undefined || options.addProvider !== undefined) {
        await extend(io, folder, { ...options, input })
        done(0)
        return
      }
      await refuseReplacing(folder, { force, keys: options.keys !== undefined })
      const given = options.keys === undefined ? null : await readKeys(io, options.keys)
      const answered = await completeSetup(io, { ...options, input }, given !== null)
      const keys = given ?? answered.keys
      await refuseReplacing(folder, { force, keys: keys !== null })
      const warnings: string[] = []
      let rules: DeviceRule[] = []
      const setup = absolute(answered.setup)
      const written = await writeSetup(folder, { setup, keys, now: systemClock.now() }, async (config) => {
        const found = await checked(config, folder, io)
        warnings.push(...found.warnings)
        rules = found.rules
        if (io.stop.aborted) throw interrupted()
      })
      const notMade = await makeSpool(setup.spoolPath, systemClock.now())
      if (notMade !== null) warnings.push(notMade)
      const config = join(folder, 'gateway.yaml')
      if (json) io.stdout.write(`${JSON.stringify({ config, ...written, warnings, sources: rules })}\n`)
      else io.stdout.write(writtenText(written, warnings, terminalWidth(io.stdout)))
      let isHealthy = true
      if (options.doctor && !json) {
        io.stdout.write('\nThe machine, as `telemetry-gateway doctor` sees it:\n')
        isHealthy = await examineMachine({ config, willStart: true }, io)
      }
      if (!json) io.stdout.write(nextSteps(written, answered.setup, { isHealthy, rules }))
      done(0)
    })

/** Adds to the config in the folder. */
async function extend(io: CommandIo, folder: string, options: InitOptions): Promise<void> {
  const path = join(folder, 'gateway.yaml')
  const { source, provider } = await completeAddition(io, options)
  const keys = options.keys === undefined ? null : resolve(options.keys)
  let found: Awaited<ReturnType<typeof checked>> = { warnings: [], rules: [] }
  const additions = await addToConfig(
    path,
    { source, provider: provider === null ? null : { ...provider, keys } },
    async (candidate) => {
      found = await checked(candidate, path, io, candidate)
      if (io.stop.aborted) throw interrupted()
    },
  )
  const rules = found.rules.filter((rule) => rule.source === source?.name)
  if (options.json) {
    io.stdout.write(
      `${JSON.stringify({ config: path, additions, warnings: found.warnings, sources: rules })}\n`,
    )
    return
  }
  io.stdout.write(
    textOfLines([
      `Added to ${path}:`,
      ...additions.flatMap(({ section, text }) => [
        `  ${section}:`,
        ...text
          .trimEnd()
          .split('\n')
          .map((line) => `    ${line}`),
      ]),
      '',
      'The config is valid. A running daemon takes over new sources within seconds; a new provider needs a restart.',
      ...found.warnings.map((warning) => `  warning  ${warning}`),
      ...rules.flatMap((rule) => [
        '',
        `Devices of ${rule.source}:`,
        ...rule.rules.map((each) => `  ${each}`),
      ]),
    ]),
  )
}

/** Paths on the command line start at the working directory, those in a config at its folder. */
function absolute(setup: Setup): Setup {
  const { tls, spoolPath } = setup
  return {
    ...setup,
    spoolPath: resolve(spoolPath),
    tls: tls === null ? null : { cert: resolve(tls.cert), key: resolve(tls.key) },
  }
}

async function readKeys(io: CommandIo, path: string): Promise<AccessKeys> {
  try {
    const text = path === '-' ? utf8Text(await buffer(io.stdin)) : await readUtf8(path)
    const { accessKeyId, secretAccessKey } = JSON.parse(text) as Record<string, unknown>
    if (typeof accessKeyId === 'string' && typeof secretAccessKey === 'string' && accessKeyId !== '')
      return JSON.parse(text) as AccessKeys
    throw new Error('accessKeyId or secretAccessKey is missing')
  } catch (error) {
    const isSyntax = error instanceof SyntaxError
    throw new GatewayError('INPUT_UNREADABLE', {
      what: `The keys in ${path === '-' ? 'standard input' : path} cannot be used.`,
      // The message of the parser quotes the text.
      why: isSyntax ? 'It is not JSON.' : `${messageOf(error)}.`,
      act: 'Give {"accessKeyId": "...", "secretAccessKey": "..."}. Nothing was written.',
      ...(isSyntax ? {} : { cause: error }),
    })
  }
}

/** What a device of a source must do. */
type DeviceRule = { source: string; rules: readonly string[] }

/** The sentences of the warnings. The problems name the files as they will be called. */
async function checked(
  config: string,
  folder: string,
  { env }: CommandIo,
  temporary = resolve(config, '..'),
): Promise<{ warnings: string[]; rules: DeviceRule[] }> {
  try {
    const { config: valid, warnings } = await checkConfig(config, env)
    return {
      warnings: warnings.map(({ what, act }) => `${what} ${act}`.replaceAll(temporary, folder)),
      rules: valid.sources.map((source) => ({ source: source.name, rules: deviceRules(source) })),
    }
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    const { what, why } = error
    throw new GatewayError(error.code, {
      what: what.replaceAll(temporary, folder),
      why: why.replaceAll(temporary, folder),
      act: 'Run the command again with other answers. Nothing was written.',
      cause: error,
    })
  }
}

function writtenText(
  { files, kept, passwords }: WrittenSetup,
  warnings: readonly string[],
  width: number,
): string {
  const rows = passwords.map(({ user, password }) => [`  ${user}`, password])
  return textOfLines([
    '',
    'Written:',
    ...files.map((file) => `  ${file}`),
    ...kept.map((file) => `  ${file}  (as it was before)`),
    ...(rows.length === 0
      ? []
      : [
          '',
          `User names and passwords of ${plural(rows.length, 'device')}. They are shown only now; note them:`,
          ...columns(rows, width),
        ]),
    '',
    'The config is valid.',
    ...warnings.map((warning) => `  warning  ${warning}`),
  ])
}

/** Where a package and README install the unit. */
const units = ['/usr/lib/systemd/system', '/lib/systemd/system', '/etc/systemd/system'].map(
  (place) => `${place}/telemetry-gateway.service`,
)

function nextSteps(
  { folder, hasKeys, passwords }: WrittenSetup,
  { listen, devices }: Setup,
  { isHealthy, rules }: { isHealthy: boolean; rules: readonly DeviceRule[] },
): string {
  const config = join(folder, 'gateway.yaml')
  const isService = folder === defaultFolder && units.some((path) => existsSync(path))
  const [device] = devices
  const keys = `Write the keys of the ingestion API into ${join(folder, 'ingestion.json')}:`
  const steps: [text: string, ...lines: string[]][] = [
    ...(hasKeys ? [] : [[keys, '{"accessKeyId": "...", "secretAccessKey": "..."}'] as [string, string]]),
    ...(isHealthy
      ? []
      : [
          [
            'Correct what failed above, and look again:',
            `sudo telemetry-gateway doctor --config ${config}`,
          ] as [string, string],
        ]),
    isService
      ? [
          'Start it, now and at each boot:',
          'sudo systemctl enable telemetry-gateway',
          'sudo systemctl restart telemetry-gateway',
        ]
      : ['Start it:', `telemetry-gateway run --config ${config}`],
    [
      'Look at it:',
      isService ? 'sudo telemetry-gateway status' : `telemetry-gateway status --config ${config}`,
    ],
    device === undefined
      ? ['Add devices:', `sudo telemetry-gateway devices add KEY --password --config ${config}`]
      : [
          `Connect the devices to ${listen.replace('0.0.0.0', 'ADDRESS-OF-THIS-MACHINE')}, with QoS 1` +
            `${passwords.length > 0 ? ' and the passwords above' : ''}.`,
        ],
    ['Set up each device as its source asks:', ...rules.flatMap(ruleLines)],
    ['See which device is silent, and why:', `sudo telemetry-gateway devices --config ${config}`],
  ]
  function ruleLines({ source, rules: own }: DeviceRule): string[] {
    return own.map((rule) => (rules.length > 1 ? `${source}: ${rule}` : rule))
  }
  const lines = steps.flatMap(([text, ...commands], index) => [
    `  ${index + 1}. ${text}`,
    ...commands.map((command) => `       ${command}`),
  ])
  return textOfLines(['', 'Next:', ...lines])
}
