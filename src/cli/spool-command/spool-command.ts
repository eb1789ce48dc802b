// spool-command.ts: `spool`: looks through a spool, and saves what can be read from a damaged one.

import { Command } from 'commander'
import { GatewayError } from '../../std/gateway-error.ts'
import { formatSize } from '../../std/quantity.ts'
import { visible } from '../../std/quote.ts'
import type { SpoolCheck } from '../../spool/spool.ts'
import { requestDaemon } from '../daemon-client.ts'
import {
  requestOrRead,
  withSpoolOptions,
  type PlaceOptions,
} from '../dead-letters-command/dead-letter-options.ts'
import type { CommandIo, ExitStatus } from '../terminal/terminal.ts'
import { salvageTo, type SalvageReport } from './salvage-files.ts'
import { columns } from '../terminal/text-table.ts'

type Run = (io: CommandIo, done: (status: ExitStatus) => void) => Command

export const spoolCommand: Run = (io, done) =>
  new Command('spool')
    .description('looks through the spool, or saves what can be read from a damaged one')
    .addCommand(verifyCommand(io, done))
    .addCommand(salvageCommand(io, done))

const verifyCommand: Run = (io, done) =>
  withSpoolOptions(new Command('verify'))
    .description('reads every record of the spool and compares it with the totals')
    .addHelpText(
      'after',
      '\nA daemon that runs looks itself; where none runs, the spool is opened. Exit status 1: something is wrong.',
    )
    .action(async (options: PlaceOptions) => {
      const asked = { path: '/control/spool/verify', method: 'POST', stop: io.stop, patient: true } as const
      const check = await requestOrRead(
        options,
        io,
        async (url) => (await requestDaemon({ url, ...asked })) as SpoolCheck,
        (spool) => spool.check(io.stop),
      )
      io.stdout.write(options.json ? `${JSON.stringify(check)}\n` : checkText(check))
      done(check.ok ? 0 : 1)
    })

function checkText({ ok, tables, lanes, shelves, problems, problemsHidden }: SpoolCheck): string {
  const lines = [
    ...columns([
      ['table', 'records', 'bytes', 'damaged'],
      ...tables.map(({ table, records, bytes, damaged }) => [
        table,
        String(records),
        formatSize(bytes),
        String(damaged),
      ]),
    ]),
    '',
    ...columns([
      ['lane', 'provider', 'role', 'batches', 'appended', 'settled', 'open'],
      ...lanes.map(({ lane, provider, role, batches, appended, settled, open }) => [
        String(lane),
        provider,
        role,
        ...[batches, appended, settled, open].map(String),
      ]),
    ]),
  ]
  if (shelves.length > 0)
    lines.push(
      '',
      ...columns([
        ['shelf', 'kept', 'taken', 'damaged', 'there'],
        ...shelves.map(({ shelf, kept, taken, damaged, messages }) => [
          shelf,
          ...[kept, taken, damaged, messages].map(String),
        ]),
      ]),
    )
  const hidden = problemsHidden > 0 ? [`and ${problemsHidden} more`] : []
  const verdict = ok
    ? ['All records can be read and add up.']
    : ['Wrong:', ...[...problems, ...hidden].map((problem) => `  ${visible(problem)}`)]
  return `${[...lines, '', ...verdict].join('\n')}\n`
}

const salvageCommand: Run = (io, done) =>
  new Command('salvage')
    .description('writes everything that can be read from a spool as NDJSON; the spool stays as it is')
    .option('--path <dir>', 'the spool, which no daemon may use')
    .option('--config <file>', 'take the path of the spool from this config')
    .requiredOption('--to <dir>', 'an empty directory with room for a copy of the spool')
    .option('--json', 'the report as JSON')
    .addHelpText('after', '\nWhat it writes is taken in by `dead-letters requeue --file`.')
    .action(async (options: { path?: string; config?: string; to: string; json?: boolean }) => {
      const report = await salvageTo(await pathOf(options, io), options.to, io.stop)
      io.stdout.write(options.json ? `${JSON.stringify(report)}\n` : salvageText(report, options.to))
      done(0)
    })

async function pathOf(
  { path, config }: { path?: string; config?: string },
  { env }: CommandIo,
): Promise<string> {
  if (path !== undefined && config === undefined) return path
  if (config !== undefined && path === undefined) {
    const { loadSpoolPath } = await import('../../config/config.ts')
    return loadSpoolPath(config, { env })
  }
  throw new GatewayError('USAGE', {
    what: 'It is not clear which spool is meant.',
    why: 'There must be either --path or --config.',
    act: 'Give one of them.',
  })
}

/** What `dead-letters requeue --file` reads; the others are for a person. */
const takenIn = ['payloads.ndjson', 'dead-letters.ndjson', 'messages.ndjson']

function salvageText({ steps, problems, files }: SalvageReport, to: string): string {
  const rows = files.map(({ file, lines }) => [file, String(lines)])
  const lines = [
    ...steps,
    `In ${to}:`,
    ...columns(rows.map(([file = '', lines = '']) => [`  ${file}`, lines])),
    ...(problems.length === 0
      ? ['Everything could be read, and adds up.']
      : ['Not all of it could be read, or adds up:', ...problems.map((problem) => `  ${problem}`)]),
    ...files
      .filter(({ file }) => takenIn.includes(file))
      .map(({ file }) => `Take it in with: telemetry-gateway dead-letters requeue --file ${to}/${file}`),
  ]
  return `${lines.map(visible).join('\n')}\n`
}
