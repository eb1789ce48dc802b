// devices-command.ts: `devices`: the devices that the running daemon has seen, the largest clock errors
// first.

import { Command } from 'commander'
import { formatDuration } from '../std/quantity.ts'
import type { DeviceView } from '../ops/ops.ts'
import { requestByOptions, withDaemonOptions, type DaemonOptions } from './daemon-client/daemon-options.ts'
import { columns } from './terminal/text-table.ts'
import { printAnswer, type BuildCommand } from './terminal/terminal.ts'
import { agoText } from './terminal/text-format.ts'

type Devices = { seen: number; devices: readonly DeviceView[] }

/** The transmission of a message takes time, so a smaller difference is not a clock error. */
const skewMinMs = 500

export const devicesCommand: BuildCommand = (io, done) =>
  withDaemonOptions(new Command('devices')).action(async (options: DaemonOptions) => {
    const devices = await requestByOptions(options, io, { path: '/devices', method: 'GET' })
    printAnswer(io, options, devices as Devices, (answer) => textOf(answer, Date.now()))
    done(0)
  })

function textOf({ seen, devices }: Devices, now: number): string {
  if (seen === 0) return 'No device was seen since the last reload of the mapping.\n'
  const rows = devices.map(({ device, assetId, listed, messages, lastSeen, skewMs }) => [
    device,
    listed ? (assetId ?? '-') : 'not listed',
    String(messages),
    agoText(now - lastSeen),
    clockText(skewMs),
  ])
  const rest = devices.length < seen ? [`and ${seen - devices.length} more`] : []
  return `${[...columns([['device', 'asset', 'messages', 'last seen', 'clock'], ...rows]), ...rest].join('\n')}\n`
}

function clockText(skewMs: number): string {
  if (Math.abs(skewMs) < skewMinMs) return 'ok'
  return `${formatDuration(Math.abs(skewMs))} ${skewMs < 0 ? 'ahead' : 'behind, or messages late'}`
}
