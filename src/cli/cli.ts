// cli.ts: the command line: which commands there are, and how one is run.
//
// Each command is a file that builds its commander Command. It is loaded only when it is asked for: `status` must
// answer fast and work where half of the packages are broken. Nothing here touches the process; main.ts does.

import { Command, CommanderError } from 'commander'
import { reportError } from './terminal/error-report.ts'
import type { CommandIo, ExitStatus } from './terminal/terminal.ts'
import { readVersion } from './package-version.ts'

/** Builds a command; it calls `done` with its exit status or rejects its action with a GatewayError. */
type Build = (io: CommandIo, done: (status: ExitStatus) => void) => Command

type Entry = { summary: string; load: () => Promise<Build> }

const commands: Record<string, Entry> = {
  trial: {
    summary: 'the whole road on this machine, nothing to configure',
    load: async () => (await import('./trial-command/trial-command.ts')).trialCommand,
  },
  run: {
    summary: 'the daemon',
    load: async () => (await import('./run-command.ts')).runCommand,
  },
  check: {
    summary: 'every problem of the config, with line and column',
    load: async () => (await import('./check-command/check-command.ts')).checkCommand,
  },
  status: {
    summary: 'what the running daemon says about itself',
    load: async () => (await import('./status-command.ts')).statusCommand,
  },
  map: {
    summary: 'what messages become: payloads, or why not',
    load: async () => (await import('./map-command/map-command.ts')).mapCommand,
  },
  learn: {
    summary: 'listens to a broker and proposes the sources for what it hears',
    load: async () => (await import('./learn-command/learn-command.ts')).learnCommand,
  },
  tap: {
    summary: 'messages of the running daemon as they come, raw and mapped',
    load: async () => (await import('./tap-command.ts')).tapCommand,
  },
  reload: {
    summary: 'has the running daemon read mapping and device table again',
    load: async () => (await import('./reload-command.ts')).reloadCommand,
  },
  probe: {
    summary: 'has the running daemon try the ingestion API now',
    load: async () => (await import('./probe-command.ts')).probeCommand,
  },
  'dead-letters': {
    summary: 'what was given up: lists, shows, requeues, edits, exports and deletes it',
    load: async () => (await import('./dead-letters-command/dead-letters-command.ts')).deadLettersCommand,
  },
  quarantine: {
    summary: 'messages of unlisted devices and wrong clocks: lists, releases, drops them',
    load: async () => (await import('./quarantine-command.ts')).quarantineCommand,
  },
  spool: {
    summary: 'looks through the spool, or saves what can be read from a damaged one',
    load: async () => (await import('./spool-command/spool-command.ts')).spoolCommand,
  },
  ledger: {
    summary: 'what became of each payload, and with which requestId',
    load: async () => (await import('./ledger-command/ledger-command.ts')).ledgerCommand,
  },
  devices: {
    summary: 'devices that the running daemon has seen, and their clocks',
    load: async () => (await import('./devices-command.ts')).devicesCommand,
  },
  sandbox: {
    summary: 'the ingestion API as a server of its own, for trying out',
    load: async () => (await import('./sandbox-command/sandbox-command.ts')).sandboxCommand,
  },
  simulate: {
    summary: 'vehicles that publish real MQTT to a broker',
    load: async () => (await import('./simulate-command.ts')).simulateCommand,
  },
  docs: {
    summary: 'write the generated parts of the documentation',
    load: async () => (await import('./docs-command.ts')).docsCommand,
  },
}

/** Runs the command of `argv` (without node and script). */
export async function runCommandLine(argv: readonly string[], io: CommandIo): Promise<ExitStatus> {
  let status: ExitStatus | null = null
  const program = new Command('telemetry-gateway')
    .description('MQTT in, signed batches out, and nothing acknowledged is ever lost.')
    .version(readVersion(), '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .showHelpAfterError('Add --help to see how it is used.')
    .exitOverride()
    .configureOutput({
      writeOut: (text) => void io.stdout.write(text),
      writeErr: (text) => void io.stderr.write(text),
      outputError: (text, write) => write(`USAGE\n  ${text.replace(/^error: /, '')}`),
      getOutHasColors: () => false,
      getErrHasColors: () => false,
    })
    .addHelpText('after', '\nExit status: 0 fine, 1 failed, 2 wrong use or wrong config.')
  const asked = argv.find((word) => !word.startsWith('-')) ?? ''
  for (const [name, { summary, load }] of Object.entries(commands)) {
    const command =
      name === asked
        ? (await load())(io, (ended) => void (status = ended))
        : new Command(name).description(summary)
    program.addCommand(withSettingsOf(program, command))
  }
  try {
    if (argv.length === 0) {
      program.outputHelp({ error: true })
      return 2
    }
    await program.parseAsync([...argv], { from: 'user' })
  } catch (error) {
    // Help and version end here as well, with 0.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
    return reportError(error, io.stderr, { json: argv.includes('--json') })
  }
  return status ?? 0
}

/** For the commands of a command as well: a wrong option of theirs must not end the process by itself. */
function withSettingsOf(parent: Command, command: Command): Command {
  command.copyInheritedSettings(parent)
  for (const inner of command.commands) withSettingsOf(command, inner)
  return command
}
