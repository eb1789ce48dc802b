// devices-show-command.ts: `devices show`: everything that is known of one device.

import { Command } from 'commander'
import type { DeviceView } from '../../ops/ops.ts'
import { requestByOptions, withDaemonOptions, type DaemonOptions } from '../daemon-client/daemon-options.ts'
import { printAnswer, type BuildCommand } from '../terminal/terminal.ts'
import { deviceText } from './devices-text.ts'

export const showCommand: BuildCommand = (io, done) =>
  withDaemonOptions(new Command('show'))
    .description(
      'Show a device: its connection, its last position, what the service answered, what was lost.',
    )
    .argument('<key>', 'key of the device, as `devices` lists it')
    .action(async (key: string, options: DaemonOptions) => {
      const request = { path: `/devices/${encodeURIComponent(key)}`, method: 'GET' } as const
      const device = (await requestByOptions(options, io, request)) as DeviceView
      printAnswer(io, options, device, (view) => deviceText(view, Date.now()))
      done(0)
    })
