// conditions-command.ts: `conditions`: those that were open in the last 30 days, and which of the open ones a
// person knows of.

import { Command } from 'commander'
import { formatDuration } from '../std/quantity.ts'
import { visible } from '../std/quote.ts'
import { requestByOptions, withDaemonOptions, type DaemonOptions } from './daemon-client/daemon-options.ts'
import { wholeNumber } from './terminal/option-values.ts'
import { printAnswer, type BuildCommand, type CommandIo } from './terminal/terminal.ts'
import { listsByDefault, notes } from './terminal/text-format.ts'

type Past = {
  conditions: {
    code: string
    key: string | null
    severity: string
    since: string
    clearedAt: string
    what: string
  }[]
  more: boolean
}
type Acknowledged = { code: string; key: string | null; untilAt: string | null }
type Which = DaemonOptions & { key?: string }

export const conditionsCommand: BuildCommand = (io, done) =>
  new Command('conditions')
    .addCommand(listCommand(io, done), { isDefault: true })
    .addCommand(acknowledgeCommand(io, done))
    .addCommand(unacknowledgeCommand(io, done))
    .addHelpText('after', listsByDefault('conditions'))

const listCommand: BuildCommand = (io, done) =>
  withDaemonOptions(new Command('list'))
    .description('List the conditions that were open in the last 30 days. `status` shows those that are.')
    .option('--limit <count>', 'print at most this many, newest first', wholeNumber(1, 1000), 50)
    .action(async (options: DaemonOptions & { limit: number }) => {
      const request = { path: `/conditions?limit=${options.limit}`, method: 'GET' } as const
      printAnswer(io, options, (await requestByOptions(options, io, request)) as Past, pastText)
      done(0)
    })

const acknowledgeCommand: BuildCommand = (io, done) =>
  withDaemonOptions(new Command('acknowledge'))
    .description('Say that you know of a condition: it is not sent again for a time.')
    .argument('<code>', 'code of the condition, as `status` shows it')
    .option('--key <key>', 'its key, where it has one')
    .option('--for <time>', 'for how long, such as 3d')
    .option('--until <date>', 'or until when, such as 2026-12-24 or 2026-12-24T06:00')
    .addHelpText(
      'after',
      notes('It stays open, and is sent where it gets worse, something else has it, too, or it is over.'),
    )
    .action(async (code: string, options: Which & { for?: string; until?: string }) => {
      const { for: lasts, until } = options
      await change(
        'acknowledge',
        { code, ...(lasts && { for: lasts }), ...(until && { until }) },
        options,
        io,
      )
      done(0)
    })

const unacknowledgeCommand: BuildCommand = (io, done) =>
  withDaemonOptions(new Command('unacknowledge'))
    .description('A condition is sent again.')
    .argument('<code>', 'code of the condition')
    .option('--key <key>', 'its key, where it has one')
    .action(async (code: string, options: Which) => {
      await change('unacknowledge', { code }, options, io)
      done(0)
    })

async function change(
  action: string,
  query: Record<string, string>,
  options: Which,
  io: CommandIo,
): Promise<void> {
  const { key } = options
  const params = new URLSearchParams({ ...query, ...(key !== undefined && { key }) })
  const request = { path: `/control/conditions/${action}?${params.toString()}`, method: 'POST' } as const
  const answer = (await requestByOptions(options, io, request)) as Acknowledged
  printAnswer(io, options, answer, ({ code, untilAt }) =>
    untilAt === null ? `${code} is sent again.\n` : `${code} is not sent again until ${untilAt}.\n`,
  )
}

function pastText({ conditions, more }: Past): string {
  if (conditions.length === 0) return 'No condition was cleared in the last 30 days.\n'
  const lines = conditions.flatMap(({ code, key, severity, since, clearedAt, what }) => {
    const lastedMs = Math.max(0, Date.parse(clearedAt) - Date.parse(since))
    return [
      `${since}  ${severity} ${code}${key === null ? '' : ` ${key}`}, for ${formatDuration(lastedMs)}`,
      `  ${what}`,
    ]
  })
  return `${[...lines, ...(more ? ['There are more. Raise --limit.'] : [])].map(visible).join('\n')}\n`
}
