// reload-command.ts: `reload`: lets the running daemon read config, presets and device table again.

import { Command } from 'commander'
import { formatDuration, plural } from '../std/quantity.ts'
import { visible } from '../std/quote.ts'
import type { ReloadReport } from '../ops/ops.ts'
import { requestByOptions, withDaemonOptions, type DaemonOptions } from './daemon-client/daemon-options.ts'
import { printAnswer, type BuildCommand } from './terminal/terminal.ts'
import { notes } from './terminal/text-format.ts'

type Reloaded = Extract<ReloadReport, { kind: 'reloaded' }>

export const reloadCommand: BuildCommand = (io, done) =>
  withDaemonOptions(new Command('reload'))
    .addHelpText(
      'after',
      notes(
        'The daemon also reloads automatically when a file changes. If a file has problems, the command ' +
          'lists them and nothing changes.',
      ),
    )
    .action(async (options: DaemonOptions) => {
      const request = { path: '/control/reload', method: 'POST', timeoutMs: Infinity } as const
      printAnswer(io, options, (await requestByOptions(options, io, request)) as Reloaded, textOf)
      done(0)
    })

function textOf({ sources, tookMs, restartNeeded, warnings }: Reloaded): string {
  const loaded = `The mapping is in force: ${plural(sources, 'source')}, loaded in ${formatDuration(tookMs)}.\n`
  const text = [loaded, ...warnings.map((warning) => `Warning: ${visible(warning)}\n`)].join('')
  if (restartNeeded.length === 0) return text
  return `${text}All other changes are in force. Restart the daemon to apply ${restartNeeded.join(', ')}.\n`
}
