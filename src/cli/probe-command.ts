// probe-command.ts: `probe`: has the running daemon try now what waits for a back-off or for the next probe, and says what came
// of it. Credentials are read again for it. Exit status 0 when the service takes batches of all providers, else 1.

import { Command } from 'commander'
import { formatDuration } from '../std/quantity.ts'
import type { ProbeReport } from '../ops/ops.ts'
import { requestDaemon } from './daemon-client.ts'
import type { CommandIo, ExitStatus } from './terminal/terminal.ts'
import { daemonUrl } from './status-command.ts'
import { columns } from './terminal/text-table.ts'

type ProbeOptions = { config?: string; url?: string; json?: boolean }

export function probeCommand(io: CommandIo, done: (status: ExitStatus) => void): Command {
  return new Command('probe')
    .description('has the running daemon try the ingestion API now, with credentials read again')
    .option('--config <file>', 'take the address from ops.listen of this config')
    .option('--url <url>', 'base URL of the daemon (default: http://127.0.0.1:8080)')
    .option('--json', 'the answer as it came')
    .addHelpText(
      'after',
      '\nSIGHUP does the same. Where nothing waits to be sent, there is nothing to try with.',
    )
    .action(async (options: ProbeOptions) => {
      const url = await daemonUrl(options, io)
      const asked = { url, path: '/control/probe', method: 'POST', stop: io.stop, patient: true } as const
      const report = (await requestDaemon(asked)) as ProbeReport
      io.stdout.write(options.json ? `${JSON.stringify(report)}\n` : textOf(report))
      done(report.providers.every(({ endpoint }) => endpoint === 'available') ? 0 : 1)
    })
}

function textOf({ now, providers }: ProbeReport): string {
  const rows = providers.map(({ name, endpoint, nextAttemptAt, lastRequestId, inFlight }) => [
    name,
    endpoint,
    nextAttemptAt === null || endpoint === 'available' ? '-' : nextText(nextAttemptAt - now, inFlight),
    lastRequestId ?? '-',
  ])
  const lines = columns([['provider', 'endpoint', 'next try', 'last requestId'], ...rows])
  const closed = providers.some(({ endpoint }) => endpoint !== 'available')
  return `${[...lines, ...(closed ? ['', '`status` says why.'] : [])].join('\n')}\n`
}

function nextText(inMs: number, inFlight: number): string {
  if (inFlight > 0) return 'under way'
  return inMs <= 0 ? 'with the next payload' : `in ${formatDuration(inMs)}`
}
