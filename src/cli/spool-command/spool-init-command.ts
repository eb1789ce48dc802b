// spool-init-command.ts: `spool init`: makes a spool on purpose, for `spool.create: false`.

import { Command } from 'commander'
import { systemClock } from '../../std/clock.ts'
import { giveToOwner } from '../../storage/storage.ts'
import { printAnswer, type BuildCommand } from '../terminal/terminal.ts'
import { notes } from '../terminal/text-format.ts'
import { textOfLines } from '../../std/text-table/text-lines.ts'
import { spoolPathOf, type SpoolPathOptions } from './spool-path.ts'

type InitOptions = SpoolPathOptions & { json?: boolean }

export const spoolInitCommand: BuildCommand = (io, done) =>
  new Command('init')
    .description('Make a new spool, for a config with `spool.create: false`. A spool that is there stays.')
    .option('--path <dir>', 'spool directory')
    .option('--config <file>', 'use spool.path of this config')
    .option('--json', 'print the report as JSON')
    .addHelpText(
      'after',
      notes('Mount the file system of the spool first. Run it as the user of the gateway.'),
    )
    .action(async (options: InitOptions) => {
      // Loaded late: it brings the database.
      const { initSpool } = await import('../../spool/spool.ts')
      const path = await spoolPathOf(options, io)
      const made = await initSpool(path, systemClock.now())
      await giveToOwner(path)
      printAnswer(io, options, { path, state: made === null ? 'present' : 'made' }, ({ state }) =>
        textOfLines([
          state === 'made'
            ? `A new spool is made at ${path}.`
            : `There is a spool at ${path} already. It is not changed.`,
        ]),
      )
      done(0)
    })
