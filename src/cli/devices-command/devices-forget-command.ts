// devices-forget-command.ts: `devices forget`: the mapping forgets what it remembers of a device.

import { Command } from 'commander'
import { plural } from '../../std/quantity.ts'
import { requestByOptions, withDaemonOptions, type DaemonOptions } from '../daemon-client/daemon-options.ts'
import { printAnswer, type BuildCommand } from '../terminal/terminal.ts'

export const forgetCommand: BuildCommand = (io, done) =>
  withDaemonOptions(new Command('forget'))
    .description('Forget what the mapping remembers of a device: its lock and fix, its odometer readings.')
    .argument('<key>', 'key of the device, as `devices` lists it')
    .option('--signal <type>', 'forget this signal or value only, such as OBD_LIFETIME_ODOMETER')
    .action(async (key: string, options: DaemonOptions & { signal?: string }) => {
      const { signal } = options
      const query = new URLSearchParams({ device: key, ...(signal !== undefined && { signal }) })
      const request = { path: `/control/devices/forget?${query.toString()}`, method: 'POST' } as const
      const report = (await requestByOptions(options, io, request)) as { forgotten: number }
      printAnswer(io, options, report, ({ forgotten }) =>
        forgotten === 0
          ? 'Nothing was remembered of this device or signal.\n'
          : `${plural(forgotten, 'value')} forgotten. The next reading counts anew.\n`,
      )
      done(report.forgotten === 0 ? 1 : 0)
    })
