// devices-import-command.ts: `devices import`: adds the rows of a CSV file to the device table.

import { readFile } from 'node:fs/promises'
import { buffer } from 'node:stream/consumers'
import { Command } from 'commander'
import { unreadable } from '../../std/gateway-error.ts'
import { plural } from '../../std/quantity.ts'
import { loadConfig, openDeviceTable, type TableChange } from '../../config/config.ts'
import { withDaemonOptions, type DaemonOptions } from '../daemon-client/daemon-options.ts'
import { printAnswer, type BuildCommand } from '../terminal/terminal.ts'
import { notes } from '../terminal/text-format.ts'
import { inForceText, putInForce } from './table-in-force.ts'
import { daemonOf, requireConfig } from './devices-add-command.ts'

export const importCommand: BuildCommand = (io, done) =>
  withDaemonOptions(new Command('import'))
    .description('Add the devices of a CSV file to the device table of the config.')
    .argument('<file>', 'CSV file with the columns of the device table; - is stdin')
    .option('--replace', 'replace the rows of devices that are listed with other fields')
    .addHelpText(
      'after',
      notes(
        'Needs --config. Either all devices of the file are added, or none: every problem is found before.',
      ),
    )
    .action(async (file: string, options: DaemonOptions & { replace?: boolean }) => {
      const { config } = await loadConfig(requireConfig(options), { env: io.env })
      const table = await openDeviceTable(config)
      const read = file === '-' ? buffer(io.stdin) : readFile(file)
      const bytes = await read.catch((error: unknown) => {
        throw unreadable(file, error, 'Check the path and its permissions.')
      })
      const rows = table.read(bytes, file)
      const change = await table.change(rows, options.replace ? 'replace' : 'report')
      const inForce = await putInForce(io, daemonOf(options))
      printAnswer(io, options, { ...change, inForce }, importedText)
      done(0)
    })

function importedText({ file, added, replaced, same, inForce }: TableChange & { inForce: boolean }): string {
  const counts = [
    `${plural(added, 'device')} added to ${file}`,
    ...(replaced > 0 ? [`${replaced} replaced`] : []),
    ...(same > 0 ? [`${same} listed already`] : []),
  ]
  return `${counts.join(', ')}.\n${inForceText(inForce)}`
}
