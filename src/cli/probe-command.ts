// probe-command.ts: `probe`: makes the running daemon read its credentials again and retry waiting batches
// now, and prints the result. Exit status 0 when all endpoints are available, else 1.

import { Command } from 'commander'
import type { IsoTimes } from '../std/iso-times.ts'
import { formatDuration } from '../std/quantity.ts'
import type { ProbeReport } from '../ops/ops.ts'
import { requestByOptions, withDaemonOptions, type DaemonOptions } from './daemon-client/daemon-options.ts'
import { columns } from './terminal/text-table.ts'
import { printAnswer, type BuildCommand } from './terminal/terminal.ts'
import { notes } from './terminal/text-format.ts'

export const probeCommand: BuildCommand = (io, done) =>
  withDaemonOptions(new Command('probe'))
    .addHelpText(
      'after',
      notes(
        'Reads the credentials again first. Sends nothing if no payload waits. SIGHUP does the same.',
        'Exit status 1: an endpoint is not available.',
      ),
    )
    .action(async (options: DaemonOptions) => {
      const request = { path: '/control/probe', method: 'POST', timeoutMs: Infinity } as const
      const report = (await requestByOptions(options, io, request)) as IsoTimes<ProbeReport>
      printAnswer(io, options, report, textOf)
      done(report.providers.every(({ endpoint }) => endpoint === 'available') ? 0 : 1)
    })

function textOf({ now, providers }: IsoTimes<ProbeReport>, width: number): string {
  const rows = providers.map(({ name, endpoint, nextAttemptAt, lastRequestId, inFlight }) => [
    name,
    endpoint,
    nextAttemptAt === null || endpoint === 'available'
      ? '-'
      : nextText(Date.parse(nextAttemptAt) - Date.parse(now), inFlight),
    lastRequestId ?? '-',
  ])
  const lines = columns([['provider', 'endpoint', 'next attempt', 'last requestId'], ...rows], width)
  const isFailing = providers.some(({ endpoint }) => endpoint !== 'available')
  return `${[...lines, ...(isFailing ? ['', '`status` shows the reason.'] : [])].join('\n')}\n`
}

function nextText(inMs: number, inFlight: number): string {
  if (inFlight > 0) return 'running'
  return inMs <= 0 ? 'with the next payload' : `in ${formatDuration(inMs)}`
}
