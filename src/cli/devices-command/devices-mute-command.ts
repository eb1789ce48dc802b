// devices-mute-command.ts: `devices mute`, `devices unmute`: whether the silence of a device is a problem.

import { Command } from 'commander'
import { GatewayError } from '../../std/gateway-error.ts'
import { quote } from '../../std/quote.ts'
import { requestByOptions, withDaemonOptions, type DaemonOptions } from '../daemon-client/daemon-options.ts'
import { printAnswer, type BuildCommand, type CommandIo } from '../terminal/terminal.ts'
import { notes } from '../terminal/text-format.ts'

type Muted = { device: string; mutedUntil: string | null }
type MuteOptions = DaemonOptions & { for?: string; until?: string }

const name = 'key of the device, its asset or its client id'

export const muteCommand: BuildCommand = (io, done) =>
  withDaemonOptions(new Command('mute'))
    .description('The silence of a device is no problem for a time: it is in the workshop.')
    .argument('<device>', name)
    .option('--for <time>', 'for how long, such as 7d')
    .option('--until <date>', 'until when, such as 2026-12-24 or 2026-12-24T06:00')
    .addHelpText('after', notes('DEVICE_SILENT and FLEET_PART_SILENT leave it out. It is delivered as ever.'))
    .action(async (device: string, options: MuteOptions) => {
      const { for: time, until } = options
      if ((time === undefined) === (until === undefined))
        throw new GatewayError('USAGE', {
          what: 'Give --for or --until.',
          why: 'Without an end, a device that is forgotten would never be missed.',
          act: 'For a week: --for 7d.',
        })
      await change(
        'mute',
        { device, ...(time !== undefined ? { for: time } : { until: until! }) },
        options,
        io,
      )
      done(0)
    })

export const unmuteCommand: BuildCommand = (io, done) =>
  withDaemonOptions(new Command('unmute'))
    .description('The silence of a device is a problem again.')
    .argument('<device>', name)
    .action(async (device: string, options: DaemonOptions) => {
      await change('unmute', { device }, options, io)
      done(0)
    })

async function change(
  action: string,
  query: Record<string, string>,
  options: DaemonOptions,
  io: CommandIo,
): Promise<void> {
  const path = `/control/devices/${action}?${new URLSearchParams(query).toString()}`
  const report = (await requestByOptions(options, io, { path, method: 'POST' })) as Muted
  printAnswer(io, options, report, ({ device, mutedUntil }) =>
    mutedUntil === null
      ? `The silence of ${quote(device, 80)} is a problem again.\n`
      : `The silence of ${quote(device, 80)} is no problem until ${mutedUntil}` +
        `${action === 'unmute' ? ': column muted_until of the device table' : ''}.\n`,
  )
}
