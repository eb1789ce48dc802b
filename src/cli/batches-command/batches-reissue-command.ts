// batches-reissue-command.ts: `batches reissue`: sends the payloads of batches under new batchIds.

import { Command } from 'commander'
import { withDaemonOptions } from '../daemon-client/daemon-options.ts'
import type { BuildCommand } from '../terminal/terminal.ts'
import { notes } from '../terminal/text-format.ts'
import { runBatchAction, type BatchActionOptions } from './batch-action.ts'
import { withBatchSelection } from './batch-filter.ts'

export const reissueCommand: BuildCommand = (io, done) =>
  withBatchSelection(withDaemonOptions(new Command('reissue')))
    .description('Send the payloads of batches again, each batch under a new batchId.')
    .option('--yes', 'reissue them (default: only show the result)')
    .addHelpText(
      'after',
      notes(
        'If the service processed the batch, it processes its payloads twice: a new batchId is a new batch ' +
          'for it. Ask the service first.',
        'Exit status 1: a batch was skipped.',
      ),
    )
    .action(async (ids: string[], options: BatchActionOptions) => {
      done(await runBatchAction('reissue', { ids }, options, io))
    })
