// restore-command.ts: `spool restore`: makes a spool of a snapshot, and says what will be sent again.

import { Command } from 'commander'
import { systemClock, zonedTime } from '../../std/clock.ts'
import { plural } from '../../std/quantity.ts'
import type { RestoreReport } from '../../spool/spool.ts'
import { audited } from '../daemon-client/audited-change.ts'
import { printAnswer, type BuildCommand } from '../terminal/terminal.ts'
import { notes } from '../terminal/text-format.ts'
import { textOfLines } from '../../std/text-table/text-lines.ts'
import { spoolPathOf, type SpoolPathOptions } from './spool-path.ts'

type RestoreCommandOptions = SpoolPathOptions & { from: string; yes?: boolean; json?: boolean }

export const restoreCommand: BuildCommand = (io, done) =>
  new Command('restore')
    .description('Make a spool of a snapshot. A spool that is there already stays unless --yes is given.')
    .requiredOption('--from <dir>', 'directory of the snapshot, or of a copy of a spool (required)')
    .option('--path <dir>', 'spool directory, which no daemon may use')
    .option('--config <file>', 'use spool.path of this config')
    .option('--yes', 'replace the spool that is there; it is kept under another name')
    .option('--json', 'print the report as JSON')
    .addHelpText('after', notes('Exit status 1: there is a spool already and --yes is missing.'))
    .action(async (options: RestoreCommandOptions) => {
      // Loaded late: it brings the database.
      const { restoreSpool } = await import('../../spool/spool.ts')
      const spoolPath = await spoolPathOf(options, io)
      const { from, yes: replace = false } = options
      const restore = () =>
        restoreSpool(from, spoolPath, {
          replace,
          now: () => systemClock.now(),
          newId: () => crypto.randomUUID(),
          signal: io.stop,
        })
      const request = new URLSearchParams({ from }).toString()
      // Without --yes it may only show what would be replaced.
      const isChange = replace ? undefined : ({ state }: RestoreReport) => state === 'restored'
      const change = { spoolPath, change: 'spool/restore', request, ...(isChange && { isChange }) }
      const report = await audited(io, change, restore)
      printAnswer(io, options, report, restoreText)
      done(report.state === 'restored' ? 0 : 1)
    })

const batchesShown = 20

function restoreText(report: RestoreReport): string {
  const { state, from, path, snapshotAt, replaced, payloads, batches, batchesHidden } = report
  const { deadLetters, keptMessages } = report
  const since = snapshotAt === null ? 'since the copy was made' : `since ${zonedTime(snapshotAt)}`
  const shown = batches.slice(0, batchesShown).map(({ batchId, payloads: count }) => {
    return `  batch ${batchId}: ${plural(count, 'payload')}`
  })
  const hidden = batches.length - shown.length + batchesHidden
  return textOfLines([
    `The snapshot holds ${plural(payloads, 'payload')}, ${plural(deadLetters, 'dead letter')} and ` +
      `${plural(keptMessages, 'kept message')}.`,
    `Sent again: what of these payloads was delivered ${since}, with the same payloadIds.`,
    ...(batches.length === 0 ? [] : ['Sealed batches go again under their batchIds:', ...shown]),
    ...(hidden > 0 ? [`  and ${hidden} more`] : []),
    `Not in the snapshot: what devices sent ${since}. They do not send it again.`,
    ...(state === 'planned'
      ? [
          `There is a spool at ${path} already. Nothing was changed.`,
          'Repeat the command with --yes to replace it. It is kept under another name.',
        ]
      : [
          `The spool at ${path} is restored from ${from}.`,
          ...(replaced === null ? [] : [`The spool that was there is in ${replaced}.`]),
        ]),
  ])
}
