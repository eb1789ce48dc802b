// batches-mark-delivered-command.ts: `batches mark-delivered`: settles batches that the service processed.

import { Command } from 'commander'
import { withDaemonOptions } from '../daemon-client/daemon-options.ts'
import type { BuildCommand } from '../terminal/terminal.ts'
import { notes } from '../terminal/text-format.ts'
import { runBatchAction, type BatchActionOptions } from './batch-action.ts'
import { withBatchSelection } from './batch-filter.ts'

export const markDeliveredCommand: BuildCommand = (io, done) =>
  withBatchSelection(withDaemonOptions(new Command('mark-delivered')))
    .description('Settle batches as delivered, without another submission.')
    .option('--yes', 'settle them (default: only show the result)')
    .addHelpText(
      'after',
      notes(
        'Use it when the service confirms that it processed the batch. If it did not, the payloads are lost. ' +
          'The ledger records who marked the batch.',
        'Exit status 1: a batch was skipped.',
      ),
    )
    .action(async (ids: string[], options: BatchActionOptions) => {
      done(await runBatchAction('mark-delivered', { ids }, options, io))
    })
