// devices-show-command.ts: `devices show`: everything that is known of one device, with its last messages.

import { Command } from 'commander'
import { requestByOptions, withDaemonOptions, type DaemonOptions } from '../daemon-client/daemon-options.ts'
import { textOfLines } from '../../std/text-table/text-lines.ts'
import { printAnswer, type BuildCommand } from '../terminal/terminal.ts'
import { notes } from '../terminal/text-format.ts'
import { deviceText, linesOfBlocks, type ShownDevice } from '../../ops/ops.ts'
import { messagesText } from './device-messages-text.ts'

export const showCommand: BuildCommand = (io, done) =>
  withDaemonOptions(new Command('show'))
    .description(
      'Show a device: its connection, its last position, what the service answered, what was lost.',
    )
    .argument('<key>', 'key of the device, its asset, its MQTT client id or its MQTT user name')
    .option('--explain', 'explain each value of the last messages, as `map --explain` does')
    .addHelpText(
      'after',
      notes(
        'The last 20 messages since the start of the daemon are shown raw, with their payloads and what became of ' +
          'each, up to the requestId of the service. None are kept for assets with a privacy profile.',
      ),
    )
    .action(async (key: string, options: DaemonOptions & { explain?: boolean }) => {
      const query = `messages=1${options.explain ? '&explain=1' : ''}`
      const request = { path: `/devices/${encodeURIComponent(key)}?${query}`, method: 'GET' } as const
      const device = (await requestByOptions(options, io, request)) as ShownDevice
      const now = Date.parse(device.now)
      printAnswer(io, options, device, (view, width) =>
        textOfLines(linesOfBlocks(deviceText(view, { now }), width)).concat(messagesText(view, width)),
      )
      done(0)
    })
