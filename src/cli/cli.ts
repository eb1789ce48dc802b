// cli.ts: the command line: which commands exist and how one runs. Entry file of this folder.
//
// A command is an operation of the daemon (operation-command.ts), or one file `NAME-command.ts`, or a folder
// of that name where it needs several. It exports a function that builds its commander Command; the list
// below has its summary and loads it only when it is called, so that `status` is fast and works where another
// package is broken. Nothing here touches the process: main.ts does.
//
//   daemon-client/   requests to the running daemon, or to its spool where none runs
//   terminal/        streams and exit status, tables, errors, option values, progress of long work
//
// Exit status: 0 success, 1 failure, 2 wrong usage or invalid config. `--json` prints JSON, also for errors.

import { Command, CommanderError } from 'commander'
import { GatewayError } from '../std/gateway-error.ts'
import { writeError } from '../std/journal.ts'
import { withoutLogins } from '../std/shown-url.ts'
import { reportError } from './terminal/error-report.ts'
import { readVersion } from './terminal/package-version.ts'
import { outputEnded, type BuildCommand, type CommandIo, type ExitStatus } from './terminal/terminal.ts'

type Entry = { summary: string; load: () => Promise<BuildCommand> }

const commands: Record<string, Entry> = {
  trial: {
    summary: 'Run vehicles, gateway and a local ingestion API on this machine. Needs no config.',
    load: async () => (await import('./trial-command/trial-command.ts')).trialCommand,
  },
  init: {
    summary: 'Write the first config of a gateway, with its devices and passwords.',
    load: async () => (await import('./init-command/init-command.ts')).initCommand,
  },
  run: {
    summary: 'Run the daemon.',
    load: async () => (await import('./run-command.ts')).runCommand,
  },
  check: {
    summary: 'Check a config and list all problems with line and column.',
    load: async () => (await import('./check-command/check-command.ts')).checkCommand,
  },
  status: {
    summary: 'Show the state of the running daemon.',
    load: async () => (await import('./status-command.ts')).statusCommand,
  },
  map: {
    summary: 'Map messages of files or stdin and print the payloads.',
    load: async () => (await import('./map-command/map-command.ts')).mapCommand,
  },
  learn: {
    summary: 'Listen to a broker and propose sources for its messages.',
    load: async () => (await import('./learn-command/learn-command.ts')).learnCommand,
  },
  tap: {
    summary: 'Show messages of the running daemon as they arrive, raw and mapped.',
    load: async () => (await import('./tap-command.ts')).tapCommand,
  },
  reload: {
    summary: 'Reload the config, presets and the device table of the running daemon.',
    load: operationOf('reload'),
  },
  probe: {
    summary: 'Retry the ingestion API now.',
    load: operationOf('probe'),
  },
  'dead-letters': {
    summary: 'List, show, requeue, edit, export and purge dead letters.',
    load: async () => (await import('./dead-letters-command/dead-letters-command.ts')).deadLettersCommand,
  },
  batches: {
    summary: 'List sealed batches; retry, reissue, split, settle or drop held ones.',
    load: groupOf('batches'),
  },
  quarantine: {
    summary: 'List, release and drop messages in quarantine.',
    load: groupOf('quarantine'),
  },
  alerts: {
    summary: 'List the receivers of alerts, and send a test through them.',
    load: async () => (await import('./alerts-command/alerts-command.ts')).alertsCommand,
  },
  conditions: {
    summary: 'List conditions that were open, and say which of the open ones you know of.',
    load: groupOf('conditions'),
  },
  audit: {
    summary: 'Show the changes that operators made.',
    load: async () => (await import('./spool-command/audit-command.ts')).auditCommand,
  },
  spool: {
    summary: 'Verify, repair, copy and restore the spool: the data on the disk.',
    load: async () => (await import('./spool-command/spool-command.ts')).spoolCommand,
  },
  ledger: {
    summary: 'Show what happened to payloads: outcome, time and requestId.',
    load: async () => (await import('./ledger-command/ledger-command.ts')).ledgerCommand,
  },
  clients: {
    summary: 'Close the connections of a client, a user or an address.',
    load: groupOf('clients'),
  },
  devices: {
    summary: 'List and show devices: which are silent, since when, and why. Add, accept and forget them.',
    load: async () => (await import('./devices-command/devices-command.ts')).devicesCommand,
  },
  passwd: {
    summary: 'Add, change, verify and delete users of a password file.',
    load: async () => (await import('./passwd-command.ts')).passwdCommand,
  },
  sandbox: {
    summary: 'Run a local ingestion API for trials and tests.',
    load: async () => (await import('./sandbox-command/sandbox-command.ts')).sandboxCommand,
  },
  doctor: {
    summary: 'Examine machine, config, service and daemon, one line for each check.',
    load: async () => (await import('./doctor-command/doctor-command.ts')).doctorCommand,
  },
  publish: {
    summary: 'Publish one message by hand and follow it to its requestId.',
    load: async () => (await import('./publish-command/publish-command.ts')).publishCommand,
  },
  simulate: {
    summary: 'Publish messages of simulated vehicles to a broker.',
    load: async () => (await import('./simulate-command.ts')).simulateCommand,
  },
  'support-bundle': {
    summary: 'Write one archive for a person who helps: status, config, log, metrics, without secrets.',
    load: async () =>
      (await import('./support-bundle-command/support-bundle-command.ts')).supportBundleCommand,
  },
  version: {
    summary: 'Print the version of the gateway and of Node.',
    load: async () => (await import('./version-command.ts')).versionCommand,
  },
  docs: {
    summary: 'Write the generated parts of the documentation.',
    load: async () => (await import('./docs-command.ts')).docsCommand,
  },
}

/** Of a command that is an operation of the daemon: it is made of the row of that. */
function operationOf(name: string): Entry['load'] {
  return async () => {
    const { operationCommand } = await import('./operation-command.ts')
    return (io, done) => operationCommand(name, io, done)
  }
}

function groupOf(name: string): Entry['load'] {
  return async () => (await import('./operation-command.ts')).groupCommand(name)
}

/** Runs the command of `argv` (without node and script). */
export async function runCommandLine(argv: readonly string[], io: CommandIo): Promise<ExitStatus> {
  let status: ExitStatus | null = null
  const json = argv.includes('--json')
  const program = newProgram(io, json)
  const words = argv.filter((word) => !word.startsWith('-'))
  const called = words[0] === 'help' ? words[1] : words[0]
  for (const [name, { summary, load }] of Object.entries(commands)) {
    const isCalled = name === called
    const command = isCalled
      ? (await load())({ ...io, json }, (ended) => void (status = ended))
      : new Command(name)
    program.addCommand(withInheritedSettings(program, command.description(summary)))
  }
  try {
    if (argv.length === 0) {
      program.outputHelp({ error: true })
      return 2
    }
    const isUnknownHelp = words[0] === 'help' && called !== undefined && !Object.hasOwn(commands, called)
    // Without it commander prints the whole help for a command that does not exist.
    await program.parseAsync(isUnknownHelp ? [called] : [...argv], { from: 'user' })
  } catch (error) {
    // --help and --version end here, too, with 0.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
    if (io.stop.reason === outputEnded && followsFromEnd(error)) return 0
    return reportError(error, io.stderr, { json, env: io.env })
  }
  return status ?? 0
}

/** All commands with their options, for a manual: none of them runs. */
export async function wholeProgram(io: CommandIo): Promise<Command> {
  const program = newProgram(io, false)
  for (const { summary, load } of Object.values(commands))
    program.addCommand(
      withInheritedSettings(program, (await load())(io, () => undefined).description(summary)),
    )
  return program
}

/** An error that the end of the output brought about. Others are reported also then. */
function followsFromEnd(error: unknown): boolean {
  if (error === outputEnded) return true
  return error instanceof GatewayError && /^(DAEMON|BROKER)_UNREACHABLE$/.test(error.code)
}

const usageHint = 'Run it with --help to see its usage.'

function newProgram({ stdout, stderr, env }: CommandIo, json: boolean): Command {
  return new Command('telemetry-gateway')
    .description(
      'Receive telemetry over MQTT and deliver it in signed batches. Acknowledged data is never lost.',
    )
    .option('-V, --version', 'print the version')
    .on('option:version', () => {
      const version = readVersion()
      stdout.write(`${version}\n`)
      throw new CommanderError(0, 'commander.version', version)
    })
    .helpOption('-h, --help', 'print this help')
    .helpCommand('help [command]', 'Print the help of a command.')
    .showHelpAfterError(json ? false : usageHint)
    .exitOverride()
    .configureOutput({
      writeOut: (text) => void stdout.write(text),
      writeErr: (text) => writeError(stderr, env, text),
      outputError: (text, print) => print(usageError(withoutValue(text.replace(/^error: /, '')), json)),
      getOutHasColors: () => false,
      getErrHasColors: () => false,
    })
    .addHelpText('after', '\nExit status: 0 success, 1 failure, 2 wrong usage or invalid config.')
}

/** The value of an unknown option, which may be a password. */
function withoutValue(text: string): string {
  return withoutLogins(text.replace(/'(--?[\w-]+)=.*'/s, "'$1'"))
}

function usageError(text: string, json: boolean): string {
  if (!json) return `USAGE\n  ${text}`
  const error = { code: 'USAGE', what: text.trim(), why: 'The command line is wrong.', act: usageHint }
  return `${JSON.stringify({ error })}\n`
}

/** Also for subcommands: a wrong option of one must not end the process. */
function withInheritedSettings(parent: Command, command: Command): Command {
  command.copyInheritedSettings(parent)
  nameUnknownFirst(command)
  for (const subcommand of command.commands) withInheritedSettings(command, subcommand)
  return command
}

type CommanderInternals = Command & {
  missingMandatoryOptionValue(option: unknown): void
  unknownOption(flag: string): void
}

/**
 * An unknown option is often the misspelt one that is missing. Commander names the missing one first and has
 * no setting for the order (a test fails where an update changes these methods).
 */
function nameUnknownFirst(command: Command): void {
  const internals = command as CommanderInternals
  const nameMissing = internals.missingMandatoryOptionValue.bind(command)
  internals.missingMandatoryOptionValue = (option) => {
    const unknown = internals.args.find((word) => /^--?[A-Za-z]/.test(word))
    if (unknown !== undefined) internals.unknownOption(unknown)
    nameMissing(option)
  }
}
