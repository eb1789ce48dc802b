// devices-command.ts: `devices`: the devices that the running daemon has seen, the worst clocks first.

import { Command } from 'commander'
import { formatDuration } from '../std/quantity.ts'
import type { DeviceView } from '../ops/ops.ts'
import { requestDaemon } from './daemon-client.ts'
import type { CommandIo, ExitStatus } from './terminal/terminal.ts'
import { daemonUrl } from './status-command.ts'
import { columns } from './terminal/text-table.ts'

type Options = { config?: string; url?: string; json?: boolean }
type DevicesView = { seen: number; devices: readonly DeviceView[] }

export function devicesCommand(io: CommandIo, done: (status: ExitStatus) => void): Command {
  return new Command('devices')
    .description('devices that the running daemon has seen, the worst clocks first')
    .option('--config <file>', 'take the address from ops.listen of this config')
    .option('--url <url>', 'base URL of the daemon (default: http://127.0.0.1:8080)')
    .option('--json', 'the answer as it came')
    .action(async (options: Options) => {
      const url = await daemonUrl(options, io)
      const asked = { url, path: '/devices', method: 'GET', stop: io.stop } as const
      const view = (await requestDaemon(asked)) as DevicesView
      io.stdout.write(options.json ? `${JSON.stringify(view)}\n` : textOf(view, Date.now()))
      done(0)
    })
}

function textOf({ seen, devices }: DevicesView, now: number): string {
  if (seen === 0) return 'No device was seen since the mapping was put in force.\n'
  const rows = devices.map(({ device, assetId, listed, messages, lastSeen, skewMs }) => [
    device,
    assetId ?? (listed ? 'its own' : 'not listed'),
    String(messages),
    `${formatDuration(Math.max(0, now - lastSeen))} ago`,
    skewText(skewMs),
  ])
  const note = devices.length < seen ? [`and ${seen - devices.length} more`] : []
  const head = ['device', 'asset', 'messages', 'last seen', 'clock']
  return `${[...columns([head, ...rows]), ...note].join('\n')}\n`
}

/** Half a second is the way of the message. */
function skewText(skewMs: number): string {
  if (Math.abs(skewMs) < 500) return 'right'
  return `${formatDuration(Math.abs(skewMs))} ${skewMs < 0 ? 'ahead' : 'behind, or late'}`
}
