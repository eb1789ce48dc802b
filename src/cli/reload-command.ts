// reload-command.ts: `reload`: has the running daemon read config, presets and device table again, and says what came of it.

import { Command } from 'commander'
import { formatDuration } from '../std/quantity.ts'
import type { ReloadReport } from '../ops/ops.ts'
import { requestDaemon } from './daemon-client.ts'
import type { CommandIo, ExitStatus } from './terminal/terminal.ts'
import { daemonUrl } from './status-command.ts'

type ReloadOptions = { config?: string; url?: string; json?: boolean }

export function reloadCommand(io: CommandIo, done: (status: ExitStatus) => void): Command {
  return new Command('reload')
    .description('has the running daemon read mapping and device table again')
    .option('--config <file>', 'take the address from ops.listen of this config')
    .option('--url <url>', 'base URL of the daemon (default: http://127.0.0.1:8080)')
    .option('--json', 'the answer as it came')
    .addHelpText(
      'after',
      '\nWhat is wrong is shown with its places and changes nothing. The daemon reads changed files by itself as well.',
    )
    .action(async (options: ReloadOptions) => {
      const url = await daemonUrl(options, io)
      const asked = { url, path: '/control/reload', method: 'POST', stop: io.stop, patient: true } as const
      const report = (await requestDaemon(asked)) as Extract<ReloadReport, { kind: 'reloaded' }>
      io.stdout.write(options.json ? `${JSON.stringify(report)}\n` : textOf(report))
      done(0)
    })
}

function textOf({ sources, tookMs, restartNeeded }: Extract<ReloadReport, { kind: 'reloaded' }>): string {
  const text = `The mapping of ${sources} sources is in force, ready in ${formatDuration(tookMs)}.\n`
  if (restartNeeded.length === 0) return text
  return `${text}What changed in ${restartNeeded.join(', ')} is in force after a restart.\n`
}
