// sandbox-command.ts: `sandbox`: the Telemetry Ingestion Service of the sandbox stage as a process of its
// own.

import { Command, InvalidArgumentError, Option } from 'commander'
import { systemClock, whenAborted } from '../../std/clock.ts'
import { parseSize } from '../../std/quantity.ts'
import { quote } from '../../std/quote.ts'
import { shownUrl } from '../../std/shown-url.ts'
import { newRandomId } from '../../domain/ids.ts'
import {
  createSandbox,
  repeatModes,
  requirements,
  sandboxAccount,
  type Answered,
  type SandboxAccount,
  type SandboxOptions,
} from '../../sandbox/sandbox.ts'
import { outputFile, wholeNumber } from '../terminal/option-values.ts'
import type { BuildCommand, CommandIo } from '../terminal/terminal.ts'
import { accountsOf, usage, type AccountOptions } from './account-options.ts'
import { readFaultsFile } from './faults-file.ts'
import { notes } from '../terminal/text-format.ts'

type Flags = AccountOptions & {
  listen: string
  basePath: string
  faults?: string
  accepted?: string
  acceptedSync?: true
  repeat: (typeof repeatModes)[number]
  require?: (typeof requirements)[number][]
  maxPayloads: number
  maxBody: number
  missingProviderStatus: number
  log?: true
  json?: true
}

const MiB = 1024 ** 2

export const sandboxCommand: BuildCommand = (io, done) =>
  new Command('sandbox')
    .requiredOption(
      '--listen <host:port>',
      'listen on this address; port 0 lets the system choose (required)',
    )
    .addOption(repeatable('--account <id:secret>', 'register an account', 'a sandbox account'))
    .addOption(repeatable('--session-token <id:token>', 'session token that the account must send'))
    .addOption(
      repeatable('--aggregator <id[=provider,...]>', 'the account must name a provider, one of these'),
    )
    .addOption(new Option('--base-path <path>', 'path before /v2/telemetry').default('', 'none'))
    .option('--faults <file>', 'inject the faults of this YAML or JSON file; - is stdin (default: none)')
    .option(
      '--accepted <file>',
      'append each accepted payload to this file as a line of JSON (default: none)',
      outputFile,
    )
    .option('--accepted-sync', 'force these lines to the disk before the answer (default: no)')
    .addOption(
      new Option('--repeat <mode>', 'answer to a repeated batchId: as before, processed again, or 409')
        .choices(repeatModes)
        .default('same'),
    )
    .addOption(
      new Option(
        '--require <field...>',
        'what a payload must have (default: identity content position signal)',
      ).choices(requirements),
    )
    .option('--max-payloads <number>', 'largest batch, in payloads', wholeNumber(1, 1_000_000), 10_000)
    .addOption(
      new Option('--max-body <size>', 'largest request body').argParser(bodySize).default(10 * MiB, '10MiB'),
    )
    .option(
      '--missing-provider-status <status>',
      'HTTP status for an aggregator without a provider',
      wholeNumber(400, 599),
      400,
    )
    .option('--log', 'write a line for each answer to stderr')
    .option('--json', 'print the address as JSON')
    .addHelpText('after', notes('Ctrl-C ends it.'))
    .action(async (flags: Flags) => {
      await runSandbox(io, flags)
      done(0)
    })

function repeatable(flags: string, description: string, defaultText = 'none'): Option {
  return new Option(flags, `${description}; repeatable`)
    .argParser((value, before: string[]) => [...before, value])
    .default([], defaultText)
}

async function runSandbox(io: CommandIo, flags: Flags): Promise<void> {
  const accounts = accountsOf(flags)
  const address = addressOf(flags.listen)
  const deps = { clock: systemClock, newId: newRandomId, random: Math.random }
  const sandbox = createSandbox(deps, optionsOf(io, flags, accounts))
  const { url } = await sandbox.listen(address)
  const ids = accounts.map(({ accessKeyId }) => accessKeyId)
  // Only the secret of the built-in account is shown.
  const secret = flags.account.length > 0 ? '' : ` with the secret ${sandboxAccount.secret.reveal()}`
  const text = `Ingestion API listening at ${url}, account ${ids.join(', ')}${secret}.`
  io.stdout.write(`${flags.json ? JSON.stringify({ url, accounts: ids }) : text}\n`)
  await whenAborted(io.stop)
  await sandbox.close()
}

function optionsOf(io: CommandIo, flags: Flags, accounts: readonly SandboxAccount[]): SandboxOptions {
  return {
    accounts,
    basePath: basePathOf(flags.basePath),
    payloadsMax: flags.maxPayloads,
    bodyBytesMax: flags.maxBody,
    missingProviderStatus: flags.missingProviderStatus,
    repeat: flags.repeat,
    acceptedSync: flags.acceptedSync ?? false,
    ...(flags.require ? { required: flags.require } : {}),
    ...(flags.accepted === undefined ? {} : { acceptedPath: flags.accepted }),
    ...(flags.faults === undefined ? {} : { faults: readFaultsFile(flags.faults) }),
    ...(flags.log ? { onAnswer: (answered) => void io.stderr.write(`${answerLine(answered)}\n`) } : {}),
  }
}

function answerLine({ status, method, path, requestId, reason, message }: Answered): string {
  const why = reason === null ? '' : ` ${reason}: ${message}`
  return `${status} ${method} ${quote(path, 100)} ${requestId}${why}`
}

function addressOf(listen: string): { host: string; port: number } {
  const match = /^(?:\[([\da-fA-F:]+)\]|([^:\s/]+)):(\d{1,5})$/.exec(listen)
  const host = match?.[1] ?? match?.[2]
  const port = Number(match?.[3])
  if (host === undefined || port > 65_535)
    throw usage(
      `--listen is not an address: ${shownUrl(listen)}.`,
      'Write it as HOST:PORT, such as 127.0.0.1:8081 or [::1]:8081.',
    )
  return { host, port }
}

function basePathOf(path: string): string {
  if (/^(?:\/[\w.~-]+)*$/.test(path) && !`${path}/`.startsWith('/sandbox/')) return path
  throw usage(`--base-path is not a path: ${quote(path)}.`, 'Write it as /stage, without a slash at its end.')
}

function bodySize(text: string): number {
  const bytes = parseSize(text)
  if (bytes !== undefined && bytes >= 1 && bytes <= 1024 * MiB) return bytes
  throw new InvalidArgumentError('Give a size with its unit, such as 512KiB or 10MiB, up to 1GiB.')
}
