// spool-command.ts: `spool`: make, verify, repair or salvage a spool, copy it and restore the copy.

import { Command } from 'commander'
import { systemClock } from '../../std/clock.ts'
import { audited } from '../daemon-client/audited-change.ts'
import { readSpool } from '../daemon-client/spool-access.ts'
import { groupCommand } from '../operation-command.ts'
import { directory } from '../terminal/option-values.ts'
import { columns } from '../../std/text-table/text-table.ts'
import { withProgress } from '../terminal/progress.ts'
import { printAnswer, type BuildCommand } from '../terminal/terminal.ts'
import { notes } from '../terminal/text-format.ts'
import { textOfLines } from '../../std/text-table/text-lines.ts'
import { spoolInitCommand } from './spool-init-command.ts'
import { repairCommand } from './repair-command.ts'
import { restoreCommand } from './restore-command.ts'
import { spoolPathOf } from './spool-path.ts'
import { waitingCommand } from './waiting-command.ts'
import { salvageTo, type SalvageReport } from './salvage-files.ts'

type SalvageOptions = { path?: string; config?: string; to: string; json?: boolean }

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

export const spoolCommand = groupCommand(
  'spool',
  {
    init: spoolInitCommand,
    waiting: waitingCommand,
    repair: repairCommand,
    salvage: salvageCommand,
    restore: restoreCommand,
  },
  {
    verify: {
      atRest: (path, _, io) => readSpool(path, io, (spool, report) => spool.check(io.stop, report)),
    },
    snapshot: {
      async atRest(spoolPath, values, io) {
        const { to } = values as { to: string }
        const { snapshotResting } = await import('../../spool/spool.ts')
        const change = { spoolPath, change: 'spool/snapshot', request: `to=${encodeURIComponent(to)}` }
        return audited(io, change, () =>
          snapshotResting(spoolPath, to, { now: systemClock.now(), signal: io.stop }),
        )
      },
    },
  },
)
