// batches-retry-command.ts: `batches retry`: sends batches again now, unchanged.

import { Command } from 'commander'
import { withDaemonOptions } from '../daemon-client/daemon-options.ts'
import type { BuildCommand } from '../terminal/terminal.ts'
import { notes } from '../terminal/text-format.ts'
import { runBatchAction, type BatchActionOptions } from './batch-action.ts'
import { withBatchSelection } from './batch-filter.ts'

export const retryCommand: BuildCommand = (io, done) =>
  withBatchSelection(withDaemonOptions(new Command('retry')))
    .description('Send batches again now: the same bytes under the same batchId.')
    .addHelpText(
      'after',
      notes(
        'A retry has no second effect if the service recognizes the batchId. Many batches are sent one after ' +
          'the other. While the endpoint is not available, they wait for it.',
        'Exit status 1: a batch was skipped.',
      ),
    )
    .action(async (ids: string[], options: BatchActionOptions) => {
      done(await runBatchAction('retry', { ids }, options, io))
    })
