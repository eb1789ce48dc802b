// dead-letters-purge-command.ts: `dead-letters purge`: deletes dead letters. Their data is lost, so it wants to be told twice.

import { Command } from 'commander'
import { visible } from '../../std/quote.ts'
import type { PurgeReport } from '../../dead-letters/dead-letters.ts'
import { toLetterParams } from '../../ops/ops.ts'
import { askDaemon } from '../daemon-client.ts'
import { countOf } from '../terminal/result-text.ts'
import { asking, chosen, filtering, type FilterOptions, type PlaceOptions } from './dead-letter-options.ts'
import type { CommandIo, ExitStatus } from '../terminal/terminal.ts'
import { urlOf } from '../status-command.ts'

export function purgeCommand(io: CommandIo, done: (status: ExitStatus) => void): Command {
  return filtering(asking(new Command('purge')))
    .argument('[id...]')
    .description('deletes dead letters for good; without --yes it says what would go')
    .option('--all', 'all of them')
    .option('--yes', 'do it')
    .addHelpText('after', '\nTo keep a copy first: dead-letters export --to FILE.')
    .action(async (ids: string[], options: PlaceOptions & FilterOptions & { yes?: boolean }) => {
      const url = await urlOf(options, io)
      const params = toLetterParams(chosen(ids, options))
      if (options.all === true) params.set('all', '1')
      if (options.yes === true) params.set('yes', '1')
      const path = `/control/dead-letters/purge?${params.toString()}`
      const report = (await askDaemon({
        url,
        path,
        method: 'POST',
        stop: io.stop,
        patient: true,
      })) as PurgeReport
      const missing = Math.max(0, new Set(ids).size - report.letters)
      io.stdout.write(
        options.json ? `${JSON.stringify(report)}\n` : textOf(report, ids.length > 0 ? missing : 0),
      )
      done(ids.length > 0 && missing > 0 ? 1 : 0)
    })
}

function textOf({ dryRun, letters, reasons }: PurgeReport, missing: number): string {
  const lines = [
    `${countOf(letters, 'dead letter')} ${dryRun ? 'would be' : 'were'} deleted for good.`,
    ...Object.entries(reasons).map(([reason, count]) => `  ${count} ${reason}`),
    ...(missing > 0 ? [`  ${missing} of the ids are no such dead letters`] : []),
    ...(dryRun ? ['Nothing was changed; add --yes to do it.'] : []),
  ]
  return `${lines.map(visible).join('\n')}\n`
}
