// batches-split-command.ts: `batches split`: sends the payloads of batches in smaller batches.

import { Command } from 'commander'
import { withDaemonOptions } from '../daemon-client/daemon-options.ts'
import { wholeNumber } from '../terminal/option-values.ts'
import type { BuildCommand } from '../terminal/terminal.ts'
import { notes } from '../terminal/text-format.ts'
import { runBatchAction, type BatchActionOptions } from './batch-action.ts'
import { withBatchSelection } from './batch-filter.ts'

export const splitCommand: BuildCommand = (io, done) =>
  withBatchSelection(withDaemonOptions(new Command('split')))
    .description('Send the payloads of batches in smaller batches with new batchIds.')
    .option('--parts <number>', 'new batches for each batch (default: one for each payload)', parts)
    .option('--yes', 'split them (default: only show the result)')
    .addHelpText(
      'after',
      notes(
        'Use it to separate a payload that the service refuses from the others. If the service processed ' +
          'the batch, it processes its payloads twice. Ask the service first.',
        'Exit status 1: a batch was skipped.',
      ),
    )
    .action(async (ids: string[], options: BatchActionOptions & { parts?: number }) => {
      const flags = { parts: options.parts === undefined ? undefined : String(options.parts) }
      done(await runBatchAction('split', { ids, flags }, options, io))
    })

const parts = wholeNumber(2, 100_000)
