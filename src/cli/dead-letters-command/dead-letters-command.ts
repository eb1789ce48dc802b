// dead-letters-command.ts: `dead-letters`: list dead letters by cause and work with them. `list` and `remap`
// are here;
// each other subcommand has a file of its own.

import { Command } from 'commander'
import { isoTimes, type IsoTimes } from '../../std/iso-times.ts'
import { plural } from '../../std/quantity.ts'
import { listDeadLetters, type DeadLetterList } from '../../dead-letters/dead-letters.ts'
import type { RemapReport } from '../../ops/ops.ts'
import { requestByOptions, withDaemonOptions, type DaemonOptions } from '../daemon-client/daemon-options.ts'
import { requestOrRead, withSpoolOptions, type SpoolOptions } from '../daemon-client/spool-access.ts'
import { printAnswer, type BuildCommand } from '../terminal/terminal.ts'
import { agoSince, textOfLines, notes, listsByDefault } from '../terminal/text-format.ts'
import { paramsOf, queryOf, withFilterOptions, type FilterOptions } from './dead-letter-filter.ts'
import { editCommand } from './dead-letters-edit-command.ts'
import { exportCommand } from './dead-letters-export-command.ts'
import { purgeCommand } from './dead-letters-purge-command.ts'
import { requeueCommand } from './dead-letters-requeue-command.ts'
import { showCommand } from './dead-letters-show-command.ts'
import { remapLines } from './remap-text.ts'

type RemapOptions = DaemonOptions & { dryRun?: boolean; reason?: string; source?: string }

/** Single dead letters that `--ids` shows. */
const shownMax = 100

export const deadLettersCommand: BuildCommand = (io, done) =>
  new Command('dead-letters')
    .addCommand(listCommand(io, done), { isDefault: true })
    .addCommand(showCommand(io, done))
    .addCommand(requeueCommand(io, done))
    .addCommand(editCommand(io, done))
    .addCommand(exportCommand(io, done))
    .addCommand(purgeCommand(io, done))
    .addCommand(remapCommand(io, done))
    .addHelpText('after', listsByDefault('dead-letters'))

const listCommand: BuildCommand = (io, done) =>
  withFilterOptions(withSpoolOptions(new Command('list')))
    .description('List dead letters by cause.')
    .option('--ids', `also list single dead letters with their ids, the oldest ${shownMax}`)
    .action(async (options: SpoolOptions & FilterOptions & { ids?: boolean }) => {
      const query = queryOf(options)
      const path = `/dead-letters?${paramsOf(query).toString()}`
      const request = { path, method: 'GET', timeoutMs: Infinity } as const
      const list = await requestOrRead(options, io, request, async (spool) =>
        isoTimes(await listDeadLetters(spool, query, shownMax)),
      )
      const isFiltered = Object.keys(query).length > 0
      printAnswer(io, options, list, (answer) =>
        listText(answer, Date.now(), { ids: options.ids ?? false, isFiltered }),
      )
      done(0)
    })

const remapCommand: BuildCommand = (io, done) =>
  withDaemonOptions(new Command('remap'))
    .description('Map dead letters of the mapping stage again, with the mapping in force.')
    .option('--dry-run', 'only show the result')
    .option('--reason <code>', 'only with this reason, for example NO_SOURCE')
    .option('--source <name>', 'only of this source')
    .addHelpText(
      'after',
      notes(
        'Messages that still cannot be mapped stay dead letters. Ctrl-C stops the command; completed ' +
          'writes are kept.',
      ),
    )
    .action(async ({ dryRun, reason, source, ...options }: RemapOptions) => {
      const filter = {
        ...(reason === undefined ? {} : { reason }),
        ...(source === undefined ? {} : { source }),
      }
      const path = `/control/dead-letters/remap?${paramsOf(filter, { dryRun }).toString()}`
      const request = { path, method: 'POST', timeoutMs: Infinity } as const
      const report = (await requestByOptions(options, io, request)) as RemapReport
      printAnswer(io, options, report, (answer) => textOfLines(remapLines([answer], answer.dryRun)))
      done(0)
    })

function listText(
  { scanned, more, groups, deadLetters }: IsoTimes<DeadLetterList>,
  now: number,
  { ids, isFiltered }: { ids: boolean; isFiltered: boolean },
): string {
  if (scanned === 0) return isFiltered ? 'No dead letter matches.\n' : 'There are no dead letters.\n'
  const lines = groups.flatMap((group) => {
    const { stage, reason, source, provider, fields, count, devices, oldestAt, latestAt, detail } = group
    const isPayload = stage === 'delivery'
    const origin = isPayload ? `provider ${provider ?? '-'}` : `source ${source ?? '-'}`
    return [
      `${plural(count, isPayload ? 'payload' : 'message')}: ${fields ?? reason}, ${plural(devices, 'device')}`,
      `  ${stage}, ${reason}, ${origin}; oldest ${agoSince(oldestAt, now)}, latest ${agoSince(latestAt, now)}`,
      `  latest: ${detail}`,
    ]
  })
  if (ids)
    for (const { id, at, stage, reason, device, detail } of deadLetters)
      lines.push(`${id}  ${at}  ${stage} ${reason}  ${device ?? '-'}  ${detail}`)
  if (more)
    lines.push(`Only the oldest ${plural(scanned, 'dead letter')} ${scanned === 1 ? 'is' : 'are'} included.`)
  return textOfLines(lines)
}
