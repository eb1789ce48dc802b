// dead-letters-purge-command.ts: `dead-letters purge`: deletes dead letters. Their data is lost, so it wants to be told twice.

import { Command } from 'commander'
import { visible } from '../../std/quote.ts'
import type { PurgeReport } from '../../dead-letters/dead-letters.ts'
import { toDeadLetterParams } from '../../ops/ops.ts'
import { requestDaemon } from '../daemon-client.ts'
import { countOf } from '../terminal/result-text.ts'
import {
  withDaemonOptions,
  requiredQuery,
  withFilterOptions,
  type FilterOptions,
  type PlaceOptions,
} from './dead-letter-options.ts'
import type { CommandIo, ExitStatus } from '../terminal/terminal.ts'
import { daemonUrl } from '../status-command.ts'

export function purgeCommand(io: CommandIo, done: (status: ExitStatus) => void): Command {
  return withFilterOptions(withDaemonOptions(new Command('purge')))
    .argument('[id...]')
    .description('deletes dead letters for good; without --yes it says what would go')
    .option('--all', 'all of them')
    .option('--yes', 'do it')
    .addHelpText('after', '\nTo keep a copy first: dead-letters export --to FILE.')
    .action(async (ids: string[], options: PlaceOptions & FilterOptions & { yes?: boolean }) => {
      const url = await daemonUrl(options, io)
      const params = toDeadLetterParams(requiredQuery(ids, options))
      if (options.all === true) params.set('all', '1')
      if (options.yes === true) params.set('yes', '1')
      const path = `/control/dead-letters/purge?${params.toString()}`
      const report = (await requestDaemon({
        url,
        path,
        method: 'POST',
        stop: io.stop,
        untimed: true,
      })) as PurgeReport
      const missing = Math.max(0, new Set(ids).size - report.deadLetters)
      io.stdout.write(
        options.json ? `${JSON.stringify(report)}\n` : textOf(report, ids.length > 0 ? missing : 0),
      )
      done(ids.length > 0 && missing > 0 ? 1 : 0)
    })
}

function textOf({ dryRun, deadLetters: letters, reasons }: PurgeReport, missing: number): string {
  const lines = [
    `${countOf(letters, 'dead letter')} ${dryRun ? 'would be' : 'were'} deleted for good.`,
    ...Object.entries(reasons).map(([reason, count]) => `  ${count} ${reason}`),
    ...(missing > 0 ? [`  ${missing} of the ids are no such dead letters`] : []),
    ...(dryRun ? ['Nothing was changed; add --yes to do it.'] : []),
  ]
  return `${lines.map(visible).join('\n')}\n`
}
