// spool-command.ts: `spool`: make, verify, repair or salvage a spool, copy it and restore the copy.

import { Command } from 'commander'
import { formatSize } from '../../std/quantity.ts'
import type { SpoolCheck } from '../../spool/spool.ts'
import { requestOrRead, withSpoolOptions, type SpoolOptions } from '../daemon-client/spool-access.ts'
import { directory } from '../terminal/option-values.ts'
import { columns } from '../terminal/text-table.ts'
import { withProgress } from '../terminal/progress.ts'
import { printAnswer, type BuildCommand } from '../terminal/terminal.ts'
import { textOfLines, notes } from '../terminal/text-format.ts'
import { assignLaneCommand } from './assign-lane-command.ts'
import { spoolInitCommand } from './spool-init-command.ts'
import { repairCommand } from './repair-command.ts'
import { restoreCommand } from './restore-command.ts'
import { snapshotCommand } from './snapshot-command.ts'
import { spoolPathOf } from './spool-path.ts'
import { waitingCommand } from './waiting-command.ts'
import { salvageTo, type SalvageReport } from './salvage-files.ts'

type SalvageOptions = { path?: string; config?: string; to: string; json?: boolean }

export const spoolCommand: BuildCommand = (io, done) =>
  new Command('spool')
    .addCommand(spoolInitCommand(io, done))
    .addCommand(verifyCommand(io, done))
    .addCommand(waitingCommand(io, done))
    .addCommand(repairCommand(io, done))
    .addCommand(salvageCommand(io, done))
    .addCommand(snapshotCommand(io, done))
    .addCommand(restoreCommand(io, done))
    .addCommand(assignLaneCommand(io, done))

const verifyCommand: BuildCommand = (io, done) =>
  withSpoolOptions(new Command('verify'))
    .description('Read every record of the spool and compare it with the totals.')
    .addHelpText('after', notes('Exit status 1: a file or a record is damaged, or a total is wrong.'))
    .action(async (options: SpoolOptions) => {
      const request = { path: '/control/spool/verify', method: 'POST', timeoutMs: Infinity } as const
      const check = await requestOrRead(options, io, request, (spool, report) => spool.check(io.stop, report))
      printAnswer(io, options, check, checkText)
      done(check.ok ? 0 : 1)
    })

function checkText(check: SpoolCheck, width: number): string {
  const { ok, tables, lanes, shelves, problems, problemsHidden } = check
  const tableRows = tables.map(({ table, records, bytes, damaged }) => [
    table,
    String(records),
    formatSize(bytes),
    String(damaged),
  ])
  const laneRows = lanes.map(({ lane, provider, role, batches, appended, settled, open }) => [
    String(lane),
    provider,
    role,
    ...[batches, appended, settled, open].map(String),
  ])
  const shelfRows = shelves.map(({ shelf, kept, taken, damaged, messages }) => [
    shelf,
    ...[kept, taken, damaged, messages].map(String),
  ])
  const hidden = problemsHidden > 0 ? [`and ${problemsHidden} more`] : []
  return textOfLines([
    ...columns([['table', 'records', 'size', 'damaged'], ...tableRows], width),
    '',
    ...columns([['lane', 'provider', 'role', 'batches', 'appended', 'settled', 'open'], ...laneRows], width),
    ...(shelfRows.length > 0
      ? ['', ...columns([['shelf', 'kept', 'taken', 'damaged', 'messages'], ...shelfRows], width)]
      : []),
    '',
    ...(ok
      ? ['All records can be read, and the totals are right.']
      : ['Problems:', ...[...problems, ...hidden].map((problem) => `  ${problem}`)]),
  ])
}

const salvageCommand: BuildCommand = (io, done) =>
  new Command('salvage')
    .description('Write everything that can be read from a spool as NDJSON. The spool is not changed.')
    .option('--path <dir>', 'spool directory, which no daemon may use')
    .option('--config <file>', 'use spool.path of this config')
    .requiredOption('--to <dir>', 'write into this empty directory (required)', directory)
    .option('--json', 'print the report as JSON')
    .addHelpText('after', notes('Import the result with `dead-letters requeue --file`.'))
    .action(async (options: SalvageOptions) => {
      const spoolPath = await spoolPathOf(options, io)
      const report = await withProgress(io, { what: 'Salvaging the spool' }, (count) =>
        salvageTo(spoolPath, options.to, io.stop, count),
      )
      printAnswer(io, options, report, (answer, width) => salvageText(answer, { to: options.to, width }))
      done(0)
    })

/** Files that `dead-letters requeue --file` reads. */
const importable = ['payloads.ndjson', 'dead-letters.ndjson', 'messages.ndjson', 'open-parts.ndjson']

function salvageText(
  { notes, problems, problemsHidden, files }: SalvageReport,
  { to, width }: { to: string; width: number },
): string {
  const hidden = problemsHidden > 0 ? [`  and ${problemsHidden} more`] : []
  const rows = files.map(({ file, lines }) => [`  ${file}`, String(lines)])
  return textOfLines([
    ...notes,
    `Lines written to ${to}:`,
    ...columns(rows, width),
    ...(problems.length === 0
      ? ['Everything could be read, and the totals are right.']
      : ['Problems:', ...problems.map((problem) => `  ${problem}`), ...hidden]),
    ...files
      .filter(({ file }) => importable.includes(file))
      .map(({ file }) => `Import it with: telemetry-gateway dead-letters requeue --file ${to}/${file}`),
  ])
}
