// dead-letters-purge-command.ts: `dead-letters purge`: deletes dead letters. Their data is lost, so it needs
// --yes.

import { Command } from 'commander'
import { plural } from '../../std/quantity.ts'
import type { PurgeReport } from '../../dead-letters/dead-letters.ts'
import {
  changeRequest,
  requestByOptions,
  withDaemonOptions,
  type DaemonOptions,
} from '../daemon-client/daemon-options.ts'
import { printAnswer, type BuildCommand } from '../terminal/terminal.ts'
import { countLines, textOfLines, notes } from '../terminal/text-format.ts'
import { paramsOf, requiredQuery, withFilterOptions, type FilterOptions } from './dead-letter-filter.ts'

type Options = DaemonOptions & FilterOptions & { yes?: boolean }

export const purgeCommand: BuildCommand = (io, done) =>
  withFilterOptions(withDaemonOptions(new Command('purge')))
    .argument('[id...]', 'dead letters to delete')
    .description('Delete dead letters. Their data is then lost.')
    .option('--all', 'delete all dead letters')
    .option('--yes', 'delete them (default: only show what would be deleted)')
    .addHelpText(
      'after',
      notes(
        'To keep a copy, run first: dead-letters export --to FILE.',
        'Exit status 1: an id does not exist.',
      ),
    )
    .action(async (ids: string[], options: Options) => {
      const { all, yes } = options
      const params = paramsOf(requiredQuery(options, ids), { all, yes })
      const request = changeRequest('dead-letters/purge', params)
      const report = (await requestByOptions(options, io, request)) as PurgeReport
      const missing = Math.max(0, new Set(ids).size - report.deadLetters - report.shared)
      printAnswer(io, options, report, (answer) => textOf(answer, missing))
      done(missing > 0 ? 1 : 0)
    })

function textOf({ dryRun, deadLetters, shared, reasons }: PurgeReport, missing: number): string {
  return textOfLines([
    `${plural(deadLetters, 'dead letter')} ${dryRun ? 'would be deleted' : 'deleted'}.`,
    ...countLines(reasons, (count, reason) => `${count} ${reason}`),
    ...(shared > 0 ? [`  ${shared} left: records of other devices are in them, too`] : []),
    ...(missing > 0 ? [`  ${plural(missing, 'id')} not found`] : []),
    ...(dryRun ? ['Nothing was changed. Add --yes to delete them.'] : []),
  ])
}
