// audit-command.ts: `audit`: the changes that operators made, who made them, and what they did.

import { Command } from 'commander'
import { isoTimes, type IsoTimes } from '../std/iso-times.ts'
import { formatDuration } from '../std/quantity.ts'
import { bounded, visible } from '../std/quote.ts'
import { callerText, readAudit, type AuditAnswer, type AuditEntry } from '../ops/ops.ts'
import { requestOrOpen, withSpoolOptions, type SpoolOptions } from './daemon-client/spool-access.ts'
import { time, wholeNumber } from './terminal/option-values.ts'
import { printAnswer, type BuildCommand } from './terminal/terminal.ts'
import { notes } from './terminal/text-format.ts'

type Options = SpoolOptions & { limit: number; since?: number; until?: number }

export const auditCommand: BuildCommand = (io, done) =>
  withSpoolOptions(new Command('audit'))
    .option('--since <time>', 'only changes at this time or later', time)
    .option('--until <time>', 'only changes at this time or earlier', time)
    .option('--limit <changes>', 'print at most this many, newest first', wholeNumber(1, 1000), 50)
    .addHelpText(
      'after',
      notes(
        'A time is 14:03 (today), 2026-11-21T14:03, 2h (ago), or milliseconds since 1970. On the control ' +
          'socket the user and SUDO_USER are what the command says; over TCP the user has given a password.',
      ),
    )
    .action(async (options: Options) => {
      const { limit, since, until } = options
      const query = { limit, ...(since !== undefined && { since }), ...(until !== undefined && { until }) }
      const params = new URLSearchParams(
        Object.entries(query).map(([key, value]): [string, string] => [key, String(value)]),
      )
      const request = { path: `/audit?${params.toString()}`, method: 'GET' } as const
      const answer = await requestOrOpen<IsoTimes<AuditAnswer>>(options, io, request, async (path) =>
        isoTimes(await readAudit(path, query)),
      )
      printAnswer(io, options, answer, textOf)
      done(0)
    })

function textOf({ changes, more, damaged }: IsoTimes<AuditAnswer>): string {
  const lines = changes.flatMap(linesOf)
  if (changes.length === 0) lines.push('The audit log has no such change.')
  if (more) lines.push('There are more. Raise --limit, or give --until.')
  if (damaged > 0) lines.push(`Lines that cannot be read: ${damaged}.`)
  return `${lines.map(visible).join('\n')}\n`
}

function linesOf({ at, change, request, by, outcome, result, tookMs }: IsoTimes<AuditEntry>): string[] {
  const how = outcome === 'unknown' ? 'unknown: the process ended before it was done' : outcome
  const took = tookMs === null ? '' : ` after ${formatDuration(tookMs)}`
  const facts = Object.entries(result).map(([name, value]) => `${name} ${String(value)}`)
  return [
    `${at}  ${change}  ${how}${took}`,
    `  by ${callerText(by)}`,
    ...(request === '' ? [] : [`  with ${bounded(request, 300)}`]),
    ...(facts.length === 0 ? [] : [`  ${bounded(facts.join(', '), 500)}`]),
  ]
}
