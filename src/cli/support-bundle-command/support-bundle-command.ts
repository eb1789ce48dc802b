// support-bundle-command.ts: `support-bundle`: what a person needs who helps from afar, in one archive.
//
//   versions.json   gateway, Node, system          config.yaml   without comments and secrets
//   check.json      problems and warnings          status.json   of the running daemon, or why it is missing
//   metrics.txt     of the running daemon          verify.json   what `spool verify` finds
//   log.ndjson      the last lines of the log
//
// Secrets and positions are replaced (redaction.ts). A part that cannot be had says why; it stops no other.

import { execFile } from 'node:child_process'
import { createWriteStream } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { release } from 'node:os'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { gzipSync } from 'node:zlib'
import { Command } from 'commander'
import { systemClock } from '../../std/clock.ts'
import { readUtf8 } from '../../std/file-system/utf8-text.ts'
import { GatewayError, messageOf, unreadable, unwritable } from '../../std/gateway-error.ts'
import { formatSize } from '../../std/quantity.ts'
import { checkConfig } from '../check-command/config-findings.ts'
import { requestDaemon, requestDaemonLines, type Daemon } from '../daemon-client/daemon-client.ts'
import { findDaemon, serviceConfig as defaultConfig } from '../daemon-client/find-daemon.ts'
import { readSpool, requestOrOpen } from '../daemon-client/spool-access.ts'
import { readVersion } from '../terminal/package-version.ts'
import { write, type BuildCommand, type CommandIo } from '../terminal/terminal.ts'
import { notes } from '../terminal/text-format.ts'
import { redacted, secretsOf, shownConfig } from './redaction.ts'
import { tarArchive, type ArchiveFile } from './tar-archive.ts'

type BundleOptions = {
  config: string
  to: string
  log?: string
  positions?: boolean
  verify: boolean
  json?: boolean
}

const logLines = 5000
const logBytesMax = 16 * 1024 ** 2
const folder = 'support-bundle'

export const supportBundleCommand: BuildCommand = (io, done) =>
  new Command('support-bundle')
    .option('--config <file>', 'config of the daemon', defaultConfig)
    .option('--to <file>', 'write into this new file; - is stdout', 'support-bundle.tar.gz')
    .option('--log <file>', 'take the log from this file (default: the journal of the unit)')
    .option('--positions', 'leave positions of vehicles in it')
    .option('--no-verify', 'without reading every record of the spool')
    .option('--json', 'print what was written as JSON')
    .addHelpText(
      'after',
      notes(
        'Contains versions, config, check, status, metrics, log and a check of the spool. Secrets are replaced, ' +
          'and positions without --positions. Look into it before you send it.',
      ),
    )
    .action(async (options: BundleOptions) => {
      const files = await collect(options, io)
      const archive = gzipSync(tarArchive(files, Math.floor(systemClock.now() / 1000)))
      await writeBundle(options, io, archive)
      const names = files.map(({ name }) => name)
      if (options.to !== '-')
        io.stdout.write(
          options.json
            ? `${JSON.stringify({ to: options.to, bytes: archive.length, files: names })}\n`
            : `${options.to} written (${formatSize(archive.length)}): ${names.join(', ')}.\n`,
        )
      done(0)
    })

async function collect(options: BundleOptions, io: CommandIo): Promise<ArchiveFile[]> {
  const { config: path, positions = false } = options
  const text = await readUtf8(path).catch(() => null)
  const checked = await partOf(async () => {
    const { warnings, secretFiles } = await checkConfig(path, io.env)
    return { ok: true, warnings, secretFiles }
  })
  const files = 'secretFiles' in checked ? (checked.secretFiles as readonly string[]) : []
  const config = text === null ? { shown: `# ${path} cannot be read.\n`, secrets: [] } : shownConfig(text)
  const secrets = [...(await secretsOf(path, text ?? '', { env: io.env, files })), ...config.secrets]
  const daemon = await findDaemon({ config: path }, io).catch(() => null)
  const { stop } = io
  const parts: ArchiveFile[] = [
    { name: 'versions.json', text: jsonText(versions()) },
    { name: 'config.yaml', text: config.shown },
    { name: 'check.json', text: jsonText(checked) },
    {
      name: 'status.json',
      text: jsonText(
        await partOf(() => requestDaemon({ daemon: known(daemon), path: '/status', method: 'GET', stop })),
      ),
    },
    { name: 'metrics.txt', text: await metricsOf(daemon, io) },
    { name: 'log.ndjson', text: await logOf(options, io) },
  ]
  if (options.verify) {
    const request = { path: '/control/spool/verify', method: 'POST', timeoutMs: Infinity } as const
    const check = await partOf(() =>
      requestOrOpen({ config: path }, io, request, (directory) =>
        readSpool(directory, io, (spool, report) => spool.check(stop, report)),
      ),
    )
    parts.push({ name: 'verify.json', text: jsonText(check) })
  }
  return parts.map(({ name, text: shown }) => ({
    name: `${folder}/${name}`,
    text: redacted(shown, { secrets, positions }),
  }))
}

function jsonText(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`
}

function versions() {
  const { version: node, platform, arch } = process
  const at = new Date(systemClock.now()).toISOString()
  return { at, version: readVersion(), node, platform, arch, system: release() }
}

/** Its result, or the error as an object. */
async function partOf(make: () => Promise<unknown>): Promise<object> {
  try {
    return Object(await make()) as object
  } catch (error) {
    if (!(error instanceof GatewayError)) return { error: { what: messageOf(error) } }
    const { code, what, why, act } = error
    return { error: { code, what, why, act } }
  }
}

function known(daemon: Daemon | null): Daemon {
  if (daemon !== null) return daemon
  throw new GatewayError('DAEMON_UNREACHABLE', {
    what: 'The config does not say where the daemon is.',
    why: 'It cannot be read.',
    act: 'Run the command as root or as the user of the daemon.',
  })
}

async function metricsOf(daemon: Daemon | null, { stop }: CommandIo): Promise<string> {
  const lines: string[] = []
  const failed = await partOf(async () => {
    const request = { daemon: known(daemon), path: '/metrics', method: 'GET', stop } as const
    for await (const line of requestDaemonLines(request)) lines.push(line)
  })
  return 'error' in failed ? jsonText(failed) : `${lines.join('\n')}\n`
}

/** The end of the log. */
async function logOf({ log }: BundleOptions, { env }: CommandIo): Promise<string> {
  if (log !== undefined) {
    const text = await readFile(log, 'utf8').catch((error: unknown) => {
      throw unreadable(`the log ${log}`, error, 'Give a file that you may read, or omit --log.')
    })
    return text
      .split('\n')
      .slice(-logLines - 1)
      .join('\n')
  }
  const args = ['-u', 'telemetry-gateway', '-o', 'cat', '-n', String(logLines), '--no-pager']
  return new Promise((resolve) => {
    execFile('journalctl', args, { env, maxBuffer: logBytesMax, timeout: 30_000 }, (error, stdout) =>
      resolve(error === null ? stdout : jsonText({ error: { what: `No journal: ${messageOf(error)}` } })),
    )
  })
}

async function writeBundle({ to }: BundleOptions, io: CommandIo, archive: Buffer): Promise<void> {
  if (to === '-') {
    io.stdout.write(archive)
    return write(io, '')
  }
  try {
    await pipeline(Readable.from([archive]), createWriteStream(to, { flags: 'wx', mode: 0o600, flush: true }))
  } catch (error) {
    throw unwritable(to, error, 'Give a file that does not exist yet, on a disk with space.')
  }
}
