// batches-drop-command.ts: `batches drop`: turns the payloads of batches into dead letters, or deletes them.

import { Command } from 'commander'
import { withDaemonOptions } from '../daemon-client/daemon-options.ts'
import type { BuildCommand } from '../terminal/terminal.ts'
import { notes } from '../terminal/text-format.ts'
import { runBatchAction, type BatchActionOptions } from './batch-action.ts'
import { withBatchSelection } from './batch-filter.ts'

export const dropCommand: BuildCommand = (io, done) =>
  withBatchSelection(withDaemonOptions(new Command('drop')))
    .description('Turn the payloads of batches into dead letters.')
    .option('--discard', 'delete the payloads instead. Their data is then lost')
    .option('--yes', 'drop them (default: only show the result)')
    .addHelpText(
      'after',
      notes(
        'Each payload becomes a dead letter with the reason DROPPED_BY_OPERATOR. A requeue of all leaves ' +
          'these out: name the reason to send them.',
        'Exit status 1: a batch was skipped.',
      ),
    )
    .action(async (ids: string[], options: BatchActionOptions & { discard?: boolean }) => {
      const flags = { discard: options.discard === true ? '1' : undefined }
      done(await runBatchAction('drop', { ids, flags }, options, io))
    })
