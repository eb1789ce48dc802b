// dead-letters.ts: `dead-letters`: what was given up, by reason; and maps it again once the mapping was mended.

import { Command } from 'commander'
import { formatDuration } from '../std/quantity.ts'
import { visible } from '../std/quote.ts'
import type { DeadLettersView, RemapReport } from '../ops/ops.ts'
import { askDaemon } from './ask.ts'
import type { CommandIo, ExitStatus } from './io.ts'
import { urlOf } from './status.ts'
import { columns } from './table.ts'

type Options = { config?: string; url?: string; json?: boolean }
type RemapOptions = Options & { dryRun?: boolean; reason?: string; source?: string }
type Run = (io: CommandIo, done: (status: ExitStatus) => void) => Command

export const deadLettersCommand: Run = (io, done) =>
  new Command('dead-letters')
    .description('what was given up: lists it, maps it again')
    .addCommand(listCommand(io, done), { isDefault: true })
    .addCommand(remapCommand(io, done))

const listCommand: Run = (io, done) =>
  asking(new Command('list'))
    .description('dead letters by stage, reason and source')
    .action(async (options: Options) => {
      const url = await urlOf(options, io)
      const asked = { url, path: '/dead-letters', method: 'GET', stop: io.stop, patient: true } as const
      const view = (await askDaemon(asked)) as DeadLettersView
      io.stdout.write(options.json ? `${JSON.stringify(view)}\n` : listText(view, Date.now()))
      done(0)
    })

const remapCommand: Run = (io, done) =>
  asking(new Command('remap'))
    .description('maps dead letters of the mapping again, with the mapping that is in force now')
    .option('--dry-run', 'only say what would come of it')
    .option('--reason <word>', 'only those with this reason, such as NO_SOURCE')
    .option('--source <name>', 'only those of this source')
    .addHelpText(
      'after',
      '\nWhat still cannot be mapped stays as it is. Ctrl-C ends it; what was done is done.',
    )
    .action(async (options: RemapOptions) => {
      const url = await urlOf(options, io)
      const path = `/control/dead-letters/remap?${queryOf(options)}`
      const report = (await askDaemon({
        url,
        path,
        method: 'POST',
        stop: io.stop,
        patient: true,
      })) as RemapReport
      io.stdout.write(options.json ? `${JSON.stringify(report)}\n` : reportText(report))
      done(0)
    })

function asking(command: Command): Command {
  return command
    .option('--config <file>', 'take the address from ops.listen of this config')
    .option('--url <url>', 'base URL of the daemon (default: http://127.0.0.1:8080)')
    .option('--json', 'the answer as it came')
}

function queryOf({ dryRun, reason, source }: RemapOptions): string {
  const query = new URLSearchParams()
  if (dryRun) query.set('dryRun', '1')
  if (reason !== undefined) query.set('reason', reason)
  if (source !== undefined) query.set('source', source)
  return query.toString()
}

function listText({ scanned, more, groups }: DeadLettersView, now: number): string {
  if (scanned === 0) return 'There are no dead letters.\n'
  const rows = groups.map(({ stage, reason, source, count, oldestAt, latestAt, detail }) => [
    String(count),
    stage,
    reason,
    source ?? '-',
    ago(now - oldestAt),
    ago(now - latestAt),
    detail,
  ])
  const head = ['letters', 'stage', 'reason', 'source', 'oldest', 'latest', 'the latest says']
  const note = more ? [`Only the oldest ${scanned} were looked at.`] : []
  return `${[...columns([head, ...rows]), ...note].join('\n')}\n`
}

function ago(ms: number): string {
  return `${formatDuration(Math.max(0, ms))} ago`
}

function reportText({
  dryRun,
  letters,
  remapped,
  payloads,
  ignored,
  kept,
  stillRefused,
}: RemapReport): string {
  const would = dryRun ? 'would become' : 'became'
  const lines = [
    `${letters} letters were looked at: ${remapped} can be mapped and ${would} ${payloads} payloads.`,
    ...Object.entries(ignored).map(([reason, count]) => `  ${count} left out on purpose: ${reason}`),
    ...(kept > 0 ? [`  ${kept} wait for their device, their clock or their expression`] : []),
    ...Object.entries(stillRefused).map(([reason, count]) => `  ${count} stay: ${reason}`),
    ...(dryRun ? ['Nothing was changed.'] : []),
  ]
  return `${lines.map(visible).join('\n')}\n`
}
