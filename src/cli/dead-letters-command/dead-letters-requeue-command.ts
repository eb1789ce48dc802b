// dead-letters-requeue-command.ts: `dead-letters requeue`: sends dead letters of the spool again. With --file
// it imports lines of `export` or `spool salvage` (import-file.ts).

import { Command } from 'commander'
import { plural } from '../../std/quantity.ts'
import type { RequeueReport } from '../../dead-letters/dead-letters.ts'
import {
  changeRequest,
  requestByOptions,
  withDaemonOptions,
  type DaemonOptions,
} from '../daemon-client/daemon-options.ts'
import type { BuildCommand, CommandIo } from '../terminal/terminal.ts'
import { countLines, textOfLines, notes } from '../terminal/text-format.ts'
import { paramsOf, requiredQuery, withFilterOptions, type FilterOptions } from './dead-letter-filter.ts'
import { importFile } from './import-file.ts'
import { importText } from './import-text.ts'
import { remapLines, sumOf, totals } from './remap-text.ts'

type Options = DaemonOptions & FilterOptions & { dryRun?: boolean; file?: string; withoutLedger?: boolean }

export const requeueCommand: BuildCommand = (io, done) =>
  withFilterOptions(withDaemonOptions(new Command('requeue')))
    .argument('[id...]', 'dead letters to requeue')
    .description('Send dead letters again: payloads as they are, messages through the mapping in force.')
    .option('--all', 'requeue all dead letters')
    .option('--dry-run', 'only show the result')
    .option('--file <file>', 'import this file of `export` or `spool salvage` instead; - is stdin')
    .option('--without-ledger', 'with --file: import also what the ledger may have as delivered')
    .addHelpText(
      'after',
      notes(
        'A dead letter is removed in the same write that adds its payload. An import skips payloads that ' +
          'are in the spool, or delivered by the ledger. Ctrl-C stops the command; completed writes are ' +
          'kept. After an interruption give the same command again: it continues where it stopped.',
        'Exit status 1: an id does not exist.',
      ),
    )
    .action(async (ids: string[], options: Options) => {
      const { file, dryRun = false, json } = options
      const print = <Report>(reports: readonly Report[], textOf: (all: readonly Report[]) => string) => {
        const lines = reports.map((report) => `${JSON.stringify(report)}\n`).join('')
        io.stdout.write(json ? lines : textOf(reports))
      }
      if (file !== undefined) {
        print(await importFile(file, ids, options, io), (reports) => importText(reports, dryRun))
        done(0)
        return
      }
      const reports = [await requeue(ids, options, io)]
      print(reports, (all) => requeueText(all, dryRun))
      done(reports.some(({ missing }) => missing.length > 0) ? 1 : 0)
    })

async function requeue(ids: readonly string[], options: Options, io: CommandIo): Promise<RequeueReport> {
  const { all, dryRun } = options
  const params = paramsOf(requiredQuery(options, ids), { all, dryRun })
  return (await requestByOptions(options, io, changeRequest('dead-letters/requeue', params))) as RequeueReport
}

function requeueText(reports: readonly RequeueReport[], dryRun: boolean): string {
  const payloads = sumOf(reports.map((report) => report.payloads))
  const remaps = reports.flatMap(({ remap }) => (remap === null ? [] : [remap]))
  return textOfLines([
    ...(payloads > 0 || remaps.length === 0
      ? [`${plural(payloads, 'payload')} ${dryRun ? 'would' : 'will'} be sent to the ingestion API again.`]
      : []),
    ...countLines(totals(reports.map(({ left }) => left)), (count, why) => `${count} stay: ${why}`),
    ...reports.flatMap(({ missing }) => missing).map((id) => `  not found: ${id}`),
    ...remapLines(remaps, dryRun),
    ...(dryRun && remaps.length === 0 ? ['Nothing was changed.'] : []),
  ])
}
