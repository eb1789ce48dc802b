// devices-forget-command.ts: `devices forget`: what is known of a device is deleted.

import { Command } from 'commander'
import { plural } from '../../std/quantity.ts'
import { requestByOptions, withDaemonOptions, type DaemonOptions } from '../daemon-client/daemon-options.ts'
import { printAnswer, type BuildCommand } from '../terminal/terminal.ts'
import { notes } from '../terminal/text-format.ts'

/** Values that the mapping remembered, and records. */
type Forgotten = { forgotten: number; records: number; ledgerEntries?: number }

export const forgetCommand: BuildCommand = (io, done) =>
  withDaemonOptions(new Command('forget'))
    .description('Forget a device: its history in `devices`, and what the mapping remembers of it.')
    .argument('<key>', 'key of the device, as `devices` lists it')
    .option('--signal <type>', 'forget this signal or value only, such as OBD_LIFETIME_ODOMETER')
    .option('--ledger', 'delete the entries of the device in the ledger, too')
    .addHelpText(
      'after',
      notes(
        'The mapping remembers the last lock and fix of a device, and its odometer readings. Messages in the ' +
          'spool and dead letters stay. A device that sends again begins anew.',
        'After --ledger, an import of dead letters does not know any more what of the device was delivered.',
      ),
    )
    .action(async (key: string, options: DaemonOptions & { signal?: string; ledger?: boolean }) => {
      const { signal, ledger } = options
      const query = new URLSearchParams({
        device: key,
        ...(signal !== undefined && { signal }),
        ...(ledger && { ledger: '1' }),
      })
      const path = `/control/devices/forget?${query.toString()}`
      const request = { path, method: 'POST', timeoutMs: Infinity } as const
      const report = (await requestByOptions(options, io, request)) as Forgotten
      printAnswer(io, options, report, textOf)
      done(report.forgotten + report.records + (report.ledgerEntries ?? 0) === 0 ? 1 : 0)
    })

function textOf({ forgotten, records, ledgerEntries = 0 }: Forgotten): string {
  const parts = [
    ...(records > 0 ? ['Its history is deleted.'] : []),
    ...(ledgerEntries > 0 ? [`${plural(ledgerEntries, 'entry', 'entries')} of the ledger deleted.`] : []),
    ...(forgotten > 0 ? [`${plural(forgotten, 'value')} forgotten. The next reading counts anew.`] : []),
  ]
  return parts.length === 0 ? 'Nothing was remembered of this device or signal.\n' : `${parts.join(' ')}\n`
}
