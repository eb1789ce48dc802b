// sandbox-command.ts: `sandbox`, the Telemetry Ingestion Service as a process of its own.

import { Command, InvalidArgumentError, Option } from 'commander'
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
import { systemClock } from '../../std/clock.ts'
import { GatewayError } from '../../std/gateway-error.ts'
import { parseSize } from '../../std/quantity.ts'
import { quote } from '../../std/quote.ts'
import { Secret } from '../../std/secret.ts'
import { readFaultsFile } from './faults-file.ts'
import type { CommandIo, ExitStatus } from '../terminal/terminal.ts'

type Flags = {
  listen: string
  account: string[]
  sessionToken: string[]
  aggregator: string[]
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

/** Runs until `io.stop`; its faults are thrown as GatewayError. */
export function sandboxCommand(io: CommandIo, done: (status: ExitStatus) => void): Command {
  const collect = (value: string, before: string[]) => [...before, value]
  return new Command('sandbox')
    .description('the Telemetry Ingestion Service on this machine, for trying out and for tests')
    .requiredOption('--listen <host:port>', 'address to listen on; port 0 lets the system choose')
    .option('--account <id:secret>', 'registers an account; more than once', collect, [])
    .option('--session-token <id:token>', 'the session token that the account must send', collect, [])
    .option('--aggregator <id[=provider,...]>', 'the account must name one of these providers', collect, [])
    .option('--base-path <path>', 'stands before /v2/telemetry', '')
    .option('--faults <file>', 'YAML or JSON: how to misbehave')
    .option('--accepted <file>', 'appends each accepted payload as a line of JSON')
    .option('--accepted-sync', 'forces these lines to the disk before the answer')
    .addOption(
      new Option('--repeat <mode>', 'what a known batchId gets').choices(repeatModes).default('same'),
    )
    .addOption(
      new Option('--require <field...>', 'what a payload must have (default: a careful choice)').choices(
        requirements,
      ),
    )
    .option('--max-payloads <n>', 'largest batch', whole(1, 1_000_000), 10_000)
    .option('--max-body <size>', 'largest body (default: 10MiB)', bodySize, 10 * 1024 ** 2)
    .option('--missing-provider-status <status>', 'for an aggregator without provider', whole(400, 599), 400)
    .option('--log', 'writes a line for each answer to stderr')
    .option('--json', 'prints the address as JSON')
    .action(async (flags: Flags) => {
      await runSandbox(io, flags)
      done(0)
    })
}

async function runSandbox(io: CommandIo, flags: Flags): Promise<void> {
  const accounts = accountsOf(flags)
  const address = addressOf(flags.listen)
  const random = () => Math.random()
  const deps = { clock: systemClock, newId: newRandomId, random }
  const sandbox = createSandbox(deps, optionsOf(io, flags, accounts))
  const { url } = await sandbox.listen(address)
  const ids = accounts.map(({ accessKeyId }) => accessKeyId)
  // Of an account that was given on the command line only the id is shown.
  const secret = flags.account.length > 0 ? '' : ` with the secret ${sandboxAccount.secret.reveal()}`
  const sentence = `Ingestion service listening at ${url}, account ${ids.join(', ')}${secret}.`
  io.stdout.write(`${flags.json ? JSON.stringify({ url, accounts: ids }) : sentence}\n`)
  await stopped(io.stop)
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
    ...(flags.log ? { onAnswer: (answered) => void io.stderr.write(`${lineOf(answered)}\n`) } : {}),
  }
}

function lineOf({ status, method, path, requestId, reason, message }: Answered): string {
  const why = reason === null ? '' : ` ${reason}: ${message}`
  return `${status} ${method} ${quote(path, 100)} ${requestId}${why}`
}

function accountsOf(flags: Flags): SandboxAccount[] {
  const accounts = new Map<string, SandboxAccount>()
  for (const text of flags.account) {
    const { id, rest } = cutAt(text, ':', '--account', 'ID:SECRET')
    if (accounts.has(id)) throw usage(`The account ${quote(id)} is given twice.`, 'Give each account once.')
    accounts.set(id, { accessKeyId: id, secret: new Secret(rest) })
  }
  if (accounts.size === 0) accounts.set(sandboxAccount.accessKeyId, { ...sandboxAccount })
  const registered = (id: string, option: string) => {
    const account = accounts.get(id)
    if (account) return account
    throw usage(`${option} names ${quote(id)}, which is no account here.`, 'Register it with --account.')
  }
  for (const text of flags.sessionToken) {
    const { id, rest } = cutAt(text, ':', '--session-token', 'ID:TOKEN')
    registered(id, '--session-token').sessionToken = new Secret(rest)
  }
  for (const text of flags.aggregator) {
    const [id = '', providers] = text.split('=', 2)
    const account = registered(id, '--aggregator')
    account.aggregator = true
    if (providers !== undefined) account.providers = providers.split(',')
  }
  return [...accounts.values()]
}

function cutAt(text: string, separator: string, option: string, form: string): { id: string; rest: string } {
  const at = text.indexOf(separator)
  // What stands here may be a secret, so the value is not repeated.
  if (at < 1 || at === text.length - 1) throw usage(`${option} cannot be read.`, `Write it as ${form}.`)
  return { id: text.slice(0, at), rest: text.slice(at + 1) }
}

function addressOf(listen: string): { host: string; port: number } {
  const match = /^(?:\[([\da-fA-F:]+)\]|([^:\s/]+)):(\d{1,5})$/.exec(listen)
  const host = match?.[1] ?? match?.[2]
  const port = Number(match?.[3])
  if (host === undefined || port > 65_535)
    throw usage(
      `--listen cannot be ${quote(listen)}.`,
      'Write it as HOST:PORT, such as 127.0.0.1:8081 or [::1]:8081.',
    )
  return { host, port }
}

function basePathOf(path: string): string {
  if (/^(?:\/[\w.~-]+)*$/.test(path) && !`${path}/`.startsWith('/sandbox/')) return path
  throw usage(`--base-path cannot be ${quote(path)}.`, 'Write it as /stage, without a slash at its end.')
}

function whole(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = Number(text)
    if (/^\d+$/.test(text) && value >= least && value <= most) return value
    throw new InvalidArgumentError(`Give a whole number from ${least} to ${most}.`)
  }
}

function bodySize(text: string): number {
  const bytes = parseSize(text)
  if (bytes !== undefined && bytes >= 1 && bytes <= 1024 ** 3) return bytes
  throw new InvalidArgumentError('Give a size up to 1GiB, such as 512KiB or 10MiB.')
}

function usage(what: string, act: string): GatewayError {
  return new GatewayError('USAGE', { what, why: 'The command line is wrong.', act })
}

function stopped(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
