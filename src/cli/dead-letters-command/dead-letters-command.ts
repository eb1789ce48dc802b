// dead-letters-command.ts: `dead-letters`: what was given up, by what is wrong with it; and works with it once that is mended.

import { Command } from 'commander'
import { formatDuration } from '../../std/quantity.ts'
import { visible } from '../../std/quote.ts'
import { toDeadLetterParams, type RemapReport } from '../../ops/ops.ts'
import { listDeadLetters, type DeadLetterList } from '../../dead-letters/dead-letters.ts'
import { requestDaemon } from '../daemon-client.ts'
import { countOf } from '../terminal/result-text.ts'
import { editCommand } from './dead-letters-edit-command.ts'
import { exportCommand } from './dead-letters-export-command.ts'
import { purgeCommand } from './dead-letters-purge-command.ts'
import {
  withDaemonOptions,
  requestOrRead,
  withFilterOptions,
  withSpoolOptions,
  queryOf,
  type FilterOptions,
  type PlaceOptions,
} from './dead-letter-options.ts'
import { requeueCommand } from './dead-letters-requeue-command.ts'
import { showCommand } from './dead-letters-show-command.ts'
import type { CommandIo, ExitStatus } from '../terminal/terminal.ts'
import { daemonUrl } from '../status-command.ts'

type RemapOptions = PlaceOptions & { dryRun?: boolean; reason?: string; source?: string }
type Run = (io: CommandIo, done: (status: ExitStatus) => void) => Command

const shownMax = 100

export const deadLettersCommand: Run = (io, done) =>
  new Command('dead-letters')
    .description('what was given up: lists, shows, requeues, edits, exports and deletes it')
    .addCommand(listCommand(io, done), { isDefault: true })
    .addCommand(showCommand(io, done))
    .addCommand(requeueCommand(io, done))
    .addCommand(editCommand(io, done))
    .addCommand(exportCommand(io, done))
    .addCommand(purgeCommand(io, done))
    .addCommand(remapCommand(io, done))

const listCommand: Run = (io, done) =>
  withFilterOptions(withSpoolOptions(new Command('list')))
    .description('dead letters by what is wrong with them')
    .option('--ids', 'also the oldest ones, one by one, with their ids')
    .addHelpText('after', '\nWhere no daemon runs, it reads the spool of --config or --path.')
    .action(async (options: PlaceOptions & FilterOptions & { ids?: boolean }) => {
      const query = queryOf(options)
      const path = `/dead-letters?${toDeadLetterParams(query).toString()}`
      const view = await requestOrRead(
        options,
        io,
        async (url) =>
          (await requestDaemon({ url, path, method: 'GET', stop: io.stop, untimed: true })) as DeadLetterList,
        (spool) => listDeadLetters(spool, query, shownMax),
      )
      const text = () =>
        listText(view, Date.now(), { ids: options.ids ?? false, isPart: Object.keys(query).length > 0 })
      io.stdout.write(options.json ? `${JSON.stringify(view)}\n` : text())
      done(0)
    })

const remapCommand: Run = (io, done) =>
  withDaemonOptions(new Command('remap'))
    .description('maps dead letters of the mapping again, with the mapping that is in force now')
    .option('--dry-run', 'only say what would come of it')
    .option('--reason <word>', 'only those with this reason, such as NO_SOURCE')
    .option('--source <name>', 'only those of this source')
    .addHelpText(
      'after',
      '\nWhat still cannot be mapped stays as it is. Ctrl-C ends it; what was done is done.',
    )
    .action(async (options: RemapOptions) => {
      const url = await daemonUrl(options, io)
      const path = `/control/dead-letters/remap?${remapParams(options)}`
      const report = (await requestDaemon({
        url,
        path,
        method: 'POST',
        stop: io.stop,
        untimed: true,
      })) as RemapReport
      io.stdout.write(options.json ? `${JSON.stringify(report)}\n` : reportText(report))
      done(0)
    })

function remapParams({ dryRun, reason, source }: RemapOptions): string {
  const query = new URLSearchParams()
  if (dryRun) query.set('dryRun', '1')
  if (reason !== undefined) query.set('reason', reason)
  if (source !== undefined) query.set('source', source)
  return query.toString()
}

type Shown = { id: string; at: number; stage: string; reason: string; device: string | null; detail: string }

function listText(
  { scanned, more, groups, deadLetters: letters }: DeadLetterList,
  now: number,
  { ids, isPart }: { ids: boolean; isPart: boolean },
): string {
  if (scanned === 0) return isPart ? 'There are no such dead letters.\n' : 'There are no dead letters.\n'
  const ago = (at: number) => `${formatDuration(Math.max(0, now - at))} ago`
  const lines = groups.flatMap((group) => {
    const { stage, reason, source, provider, fields, count, devices, oldestAt, latestAt, detail } = group
    const what = stage === 'delivery' ? 'payload' : 'message'
    const whose = stage === 'delivery' ? `provider ${provider ?? '-'}` : `source ${source ?? '-'}`
    return [
      `${countOf(count, what)}: ${fields ?? reason}, ${countOf(devices, 'device')}`,
      `  ${stage}, ${reason}, ${whose}; oldest ${ago(oldestAt)}, latest ${ago(latestAt)}`,
      `  the latest says: ${detail}`,
    ]
  })
  if (ids)
    for (const { id, at, stage, reason, device, detail } of letters as readonly Shown[])
      lines.push(`${id}  ${new Date(at).toISOString()}  ${stage} ${reason}  ${device ?? '-'}  ${detail}`)
  if (more) lines.push(`Only the oldest ${scanned} were looked at.`)
  return `${lines.map(visible).join('\n')}\n`
}

function reportText({
  dryRun,
  deadLetters,
  remapped,
  payloads,
  ignored,
  kept,
  stillRefused,
}: RemapReport): string {
  const would = dryRun ? 'would become' : 'became'
  const lines = [
    `${deadLetters} letters were looked at: ${remapped} can be mapped and ${would} ${payloads} payloads.`,
    ...Object.entries(ignored).map(([reason, count]) => `  ${count} left out on purpose: ${reason}`),
    ...(kept > 0 ? [`  ${kept} wait for their device, their clock or their expression`] : []),
    ...Object.entries(stillRefused).map(([reason, count]) => `  ${count} stay: ${reason}`),
    ...(dryRun ? ['Nothing was changed.'] : []),
  ]
  return `${lines.map(visible).join('\n')}\n`
}
